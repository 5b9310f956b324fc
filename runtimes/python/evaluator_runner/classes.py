"""Finds the lines of an evaluator's module-level classes in its syntax tree."""

from __future__ import annotations

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.tracebacks import FILENAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ONLY_AST = 0x400


def lines(namespace: dict[str, Any]) -> dict[str, int]:
    """Return the line of each class's last definition, by the name of the class."""
    code = namespace["__loader__"].get_source("evaluator")
    found: dict[str, int] = {}
    left = [compile(code, FILENAME, "exec", _ONLY_AST, dont_inherit=True)]
    while left:
        node = left.pop()
        if type(node).__name__ == "ClassDef":
            found[node.name] = max(found.get(node.name, 0), node.lineno)
            continue
        for part in ("body", "orelse", "handlers", "finalbody"):
            left.extend(getattr(node, part, ()))
    return found
