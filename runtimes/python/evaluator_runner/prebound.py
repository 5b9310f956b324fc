"""Binds the modules that `main` and the legacy `evaluate` may use without importing them, as documented."""

from __future__ import annotations

import _symtable  # type: ignore[import-not-found]

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMES = frozenset(
    ("json", "re", "math", "random", "datetime", "statistics", "string", "collections", "itertools", "functools")
)
_TYPING = (
    "Annotated", "Any", "Callable", "ClassVar", "Dict", "Final", "FrozenSet", "Generic", "Iterable", "Iterator", "List",
    "Literal", "Mapping", "NamedTuple", "NotRequired", "Optional", "Protocol", "Required", "Sequence", "Set", "Tuple",
    "Type", "TypeAlias", "TypeVar", "TypedDict", "Union",
)  # fmt: skip
_ANNOTATIONS = {
    **{name: f"typing:{name}" for name in _TYPING},
    "dataclass": "dataclasses:dataclass",
    "UUID": "uuid:UUID",
}
_BOUND = _symtable.DEF_BOUND | _symtable.DEF_IMPORT


def unbound_names(code: str, filename: str, names: frozenset[str] = NAMES) -> list[str]:
    """Return the given names that the code uses as globals but never binds, in alphabetical order."""
    try:
        top = _symtable.symtable(code, filename, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    used: set[str] = set()
    bound: set[str] = {name for name, flags in top.symbols.items() if flags & _BOUND}
    tables = [top]
    while tables:
        table = tables.pop()
        tables.extend(table.children)
        for name in names & table.symbols.keys():
            flags = table.symbols[name]
            scope = (flags >> _symtable.SCOPE_OFF) & _symtable.SCOPE_MASK
            if scope == _symtable.GLOBAL_EXPLICIT and flags & _BOUND:
                bound.add(name)
            if flags & _symtable.USE and scope in {_symtable.GLOBAL_IMPLICIT, _symtable.GLOBAL_EXPLICIT, 0}:
                used.add(name)
    return sorted(used - bound)


def bind_typing(namespace: dict[str, Any], code: str, filename: str) -> list[str]:
    """Bind the `typing` names that the code uses without importing them; return these names."""
    if not any(name in code for name in _ANNOTATIONS):
        return []
    names = unbound_names(code, filename, frozenset(_ANNOTATIONS))
    for name in names:
        namespace[name] = imported(_ANNOTATIONS[name])
    return names


def imported(path: str) -> Any:
    """Return the object at a path such as `module:name`, or None if there is no such object."""
    module, _, name = path.partition(":")
    try:
        return getattr(__import__(module, fromlist=[name]), name, None)
    except ImportError:
        return None


def bind(namespace: dict[str, Any], names: list[str], import_module: Any = __import__) -> dict[str, Any]:
    """Bind modules to their names; return the modules that were bound."""
    bound = {name: import_module(name) for name in names}
    namespace.update(bound)
    return bound


def unbind(namespace: dict[str, Any], bound: dict[str, Any]) -> None:
    """Remove the names that `bind` bound from the namespace, unless the code has rebound them."""
    for name, module in bound.items():
        if namespace.get(name) is module:
            del namespace[name]
