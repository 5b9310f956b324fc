"""Finds out whether code hides that a module is absent: it catches the error, and continues with another value."""

from __future__ import annotations

from evaluator_runner import absent
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_IMPORTING = {"ImportError", "ModuleNotFoundError"}
_BROAD = {"Exception", "BaseException"}
_ALONE = {"Import", "ImportFrom", "Pass"}
_PLAIN = {"Constant", "Name", "Attribute"}
_REPORTS = {"print", "log", "logger", "logging", "warnings"}
_COLLECTS = {"append", "extend", "add", "update"}


class Watch:
    """Watches which absent modules one evaluator needs.

    Until `end` is called, `absent` does not have the failed imports of earlier evaluators.
    """

    def __init__(self) -> None:
        self._earlier = dict(absent.failed_imports)
        absent.failed_imports.clear()

    def end(self) -> str:
        """Return the name of an absent module that the evaluator needs but hides, or "" if there is none."""
        own = dict(absent.failed_imports)
        absent.failed_imports.clear()
        absent.failed_imports.update({**self._earlier, **own})
        try:
            return next((name for (name, _, _), asked in own.items() if _is_hidden(asked)), "")
        except Exception:  # noqa: BLE001 - user code may have changed the objects that this reads
            return ""


def _is_hidden(asked: absent.Asked) -> bool:
    """Return whether code needs an absent module, but catches the error and continues with another value.

    This is false for code that is meant to work without the module.
    """
    trees = {file: absent.parsed(file) for file, _ in asked.lines}
    file, line = asked.lines[0]
    if asked.looked_for and not _imports(trees[file], line):
        return False
    for file, line in asked.lines:
        tried = _catching(trees[file], line)
        if tried is not None:
            return not (_is_provided_for(tried) or _only_reports(tried, trees[file]))
    return True


def _imports(tree: Any, line: int) -> bool:
    return absent.covers(
        [one for one in absent.all_nodes(tree) if type(one).__name__ in {"Import", "ImportFrom"}], line
    )


def _catching(tree: Any, line: int) -> Any:
    """Return the innermost `try` around a line that catches failed imports, or None if there is none."""
    found = None
    for one in absent.all_nodes(tree):
        inside = type(one).__name__ in {"Try", "TryStar"} and absent.covers(one.body, line)
        if inside and any(_names(handler.type) & (_IMPORTING | _BROAD) for handler in one.handlers):
            found = one if found is None or one.lineno >= found.lineno else found
    return found


def _names(kind: Any) -> set[str]:
    if kind is None:
        return _BROAD
    return {str(getattr(one, "id", "")) for one in getattr(kind, "elts", [kind])}


def _is_provided_for(tried: Any) -> bool:
    """Return whether a `try` expects an absent package: it catches import errors by name, or contains only imports."""
    first = next(one for one in tried.handlers if _names(one.type) & (_IMPORTING | _BROAD))
    return bool(_names(first.type) & _IMPORTING) or all(_is_alone(one) for one in tried.body)


def _is_alone(node: Any) -> bool:
    """Return whether a statement only imports something, or only gives something another name."""
    kind = type(node).__name__
    return kind in _ALONE or (kind == "Assign" and type(node.value).__name__ in _PLAIN)


def _only_reports(tried: Any, tree: Any) -> bool:
    """Return whether the handlers of a `try` only report errors, and no code outside it uses a value from its body."""
    handled = [one for handler in tried.handlers for one in handler.body]
    if not all(type(one).__name__ == "Pass" or _root(one) in _REPORTS for one in handled):
        return False
    inner = {id(one) for top in tried.body for one in absent.all_nodes(top)}
    kinds = [one for top in tried.body for one in absent.all_nodes(top)]
    if any(type(one).__name__ in {"Return", "Yield"} or getattr(one, "attr", "") in _COLLECTS for one in kinds):
        return False
    bound = {one.id for one in kinds if type(one).__name__ == "Name" and type(one.ctx).__name__ == "Store"}
    return not any(getattr(one, "id", None) in bound and id(one) not in inner for one in absent.all_nodes(tree))


def _root(node: Any) -> str:
    """Return the name with which a called expression begins: `logger` of `logger.warning(…)`."""
    node = getattr(getattr(node, "value", None), "func", None)
    while node is not None and hasattr(node, "value"):
        node = node.value
    return str(getattr(node, "id", ""))
