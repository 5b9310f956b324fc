"""Finds imports of an evaluator that are not installed, from its syntax tree and without running it."""

from __future__ import annotations

import sys

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ONLY_AST = 0x400
_MOST = 100
_NAMESPACES = frozenset(
    {"azure", "backports", "google", "google.cloud", "jaraco", "ruamel", "zope"}
)  # namespaces that many packages share


def missing_imports(code: str, filename: str) -> list[dict[str, Any]]:
    """Return `{"module", "line"}` of every imported top-level module that cannot be found, once each.

    For a namespace that many packages share, `module` is the name one level below it.
    """
    try:
        tree = compile(code, filename, "exec", _ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: dict[str, int] = {}
    for module, line in _imports(tree):
        top = _own_name(module)
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
            module = node.module or ""
            if module in _NAMESPACES:
                yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield module, node.lineno
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


def _own_name(module: str) -> str:
    """Return the shortest prefix of a module's name that belongs to a single package."""
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        if name not in _NAMESPACES:
            break
    return name


def _is_provided(module: str) -> bool:
    if module in sys.modules:
        return True
    above = module.rpartition(".")[0]
    path = _folders(above) if above else None
    return (not above or path is not None) and _spec(module, path) is not None


def _folders(namespace: str) -> Any:
    """Return the folders of a namespace package; None when it is not installed."""
    if namespace in sys.modules:
        return getattr(sys.modules[namespace], "__path__", None)
    above = namespace.rpartition(".")[0]
    path = _folders(above) if above else None
    spec = _spec(namespace, path) if not above or path is not None else None
    return None if spec is None else spec.submodule_search_locations


def _spec(module: str, path: Any) -> Any:
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(module, path)
        except Exception:  # noqa: BLE001, S112 - a finder of a package may raise anything
            continue
        if spec is not None:
            return spec
    return None
