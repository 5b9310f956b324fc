"""Owns the table of dialects, the ways in which evaluators are written, and finds the one that code is written in.

A name in the table is a module or a package in the folder `dialects` beside this package. It has:

- `CONTRACT`: the name on the wire.
- `PREBOUND`: whether code may use the modules of `prebound.NAMES` without importing them.
- `applies(namespace, name)`: whether code that has run is written in this dialect; `name` is the entry that the caller
  asked for, or None.
- `find(namespace, *, name, config)`: returns the `Entry`, or raises a `Failure`.
- `describe(namespace, lines)`, optional: returns what a check tells of the evaluator classes in the code.
- `is_plain(compiled)`, optional: whether code that has not run yet can only be of this dialect.

Every module is imported before any user code runs, so that user code cannot change what it uses.
"""

from __future__ import annotations

import os

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.entry import does_not_fit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from evaluator_runner.entry import Entry

__path__ = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "dialects")]

_NAMES = (  # in the order in which they are asked whether they apply
    "nemo",
    "uipath",
    "evaluate_v1",
    "evaluate",
    "main",
)
_MODULES: list[Any] = [__import__(f"{__name__}.{name}", fromlist=["CONTRACT"]) for name in _NAMES]

TABLE: dict[str, Any] = {module.CONTRACT: module for module in _MODULES}
"""The dialects by contract."""


def find(namespace: dict[str, Any], *, contract: str, name: str | None, config: dict[str, Any] | None = None) -> Entry:
    """Return what to call for each row.

    Args:
      namespace: Of the code, which has run.
      contract: That was declared, or `auto`.
      name: Of the function or class, when the caller gave one.
      config: Arguments of a class.

    Raises:
      Failure: nothing, or more than one thing, can be meant, or its parameters do not fit.
    """
    inferred = contract == "auto"
    dialect = _meant(namespace, name) if inferred else TABLE[contract]
    entry: Entry = dialect.find(namespace, name=name, config=config or {})
    entry.contract = dialect.CONTRACT
    entry.source = "inferred" if inferred else "declared"
    if not inferred:
        entry.reason = f"contract {contract} was declared"
    return entry


def describe(namespace: dict[str, Any], lines: list[str]) -> list[dict[str, Any]]:
    """Return what the evaluator classes of the code say of themselves; `lines` are the source, for their errors."""
    return [found for module in _MODULES if hasattr(module, "describe") for found in module.describe(namespace, lines)]


def may_use_prebound(contract: str, name: str | None, compiled: CodeType) -> bool:
    """Whether code that has not run yet may use modules without importing them."""
    if contract != "auto":
        return bool(TABLE[contract].PREBOUND)
    plain = [module for module in _MODULES if hasattr(module, "is_plain") and module.is_plain(compiled)]
    return name is not None or not plain or bool(plain[0].PREBOUND)


def _meant(namespace: dict[str, Any], name: str | None) -> Any:
    for module in _MODULES:
        if module.applies(namespace, name):
            return module
    raise does_not_fit(namespace, name or "evaluate")
