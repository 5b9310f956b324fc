"""Finds the pins of packages that the host's own light modules replace, in the versions that they were tested with.

The runner's errors name the same pins, because the runner also reads them from these modules.
"""

import ast
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from evaluator_host.engine.contracts.table import all_dialects
from evaluator_host.engine.sandbox.runtimes import runtime_file
from evaluator_host.types.evaluator import Language


def stand_in_pin(module: str, names: Sequence[str], language: Language) -> str | None:
    """Return the pin of the package that contains a module, if the host's light modules replace the package; else None.

    `names` are the names that the code uses from the module.
    """
    if language is not Language.PYTHON:
        return None
    top, _, rest = module.partition(".")
    pins = _pins().get(top, {})
    part = (rest or next(iter(names), "")).partition(".")[0]
    return pins.get(part, pins.get(""))


@cache
def _pins() -> Mapping[str, Mapping[str, str]]:
    """Return a table of pins for each replaced module, by submodule; the key "" is for all other submodules."""
    found = {}
    for dialect in all_dialects():
        if (sdk := dialect.sdk) is not None:
            for top in (sdk.module.partition(".")[0], *sdk.also):
                file = runtime_file(f"python/{sdk.stand_in.folder}/{top}/__init__.py")
                found[top] = _declared(file.read_text("utf-8")) if file.is_file() else {}
    return MappingProxyType(found)


def _declared(source: str) -> dict[str, str]:
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if node.targets[0].id in ("__pin__", "__pins__")
    }
    whole = {"": values["__pin__"]} if "__pin__" in values else {}
    return {**whole, **values.get("__pins__", {})}
