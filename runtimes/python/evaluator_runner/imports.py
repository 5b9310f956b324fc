"""Owns which imports of an evaluator nothing here provides, found in its syntax tree without running it."""

from __future__ import annotations

import sys

from evaluator_runner.pristine import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ONLY_AST = 0x400
_MOST = 100


def missing_imports(code: str, filename: str) -> list[dict[str, Any]]:
    """Return `{"module", "line"}` of every imported top-level module that cannot be found, once each."""
    try:
        tree = compile(code, filename, "exec", _ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: dict[str, int] = {}
    for module, line in _imports(tree):
        top = module.partition(".")[0]
        if top and top not in found and not _is_provided(top):
            found[top] = line
    return [{"module": module, "line": line} for module, line in list(found.items())[:_MOST]]


def _imports(tree: Any) -> Iterator[tuple[str, int]]:
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        kind = type(node).__name__
        if kind == "Import":
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif kind == "ImportFrom" and not node.level:
            yield node.module or "", node.lineno
        elif kind == "If" and _is_type_checking(node.test):
            nodes.extend(reversed(node.orelse))
        else:
            nodes.extend(reversed(list(_children(node))))


def _children(node: Any) -> Iterator[Any]:
    for name in node._fields:
        value = getattr(node, name, None)
        for item in value if isinstance(value, list) else [value]:
            if hasattr(item, "_fields"):
                yield item


def _is_type_checking(test: Any) -> bool:
    return getattr(test, "id", None) == "TYPE_CHECKING" or getattr(test, "attr", None) == "TYPE_CHECKING"


def _is_provided(module: str) -> bool:
    if module in sys.modules:
        return True
    for finder in sys.meta_path:
        try:
            if finder.find_spec(module, None) is not None:
                return True
        except Exception:  # noqa: BLE001, S112 - a finder of a package may raise anything
            continue
    return False
