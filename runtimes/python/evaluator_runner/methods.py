"""Finds the methods of a file's classes that may be the evaluator."""

from __future__ import annotations

from evaluator_runner import candidates, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.outline import Function, walk
from evaluator_runner.roles import OUTPUT, is_by_name, lacks_only_output, roles_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from evaluator_runner.outline import Outline

_USUAL = {"evaluate", "compute_scores", "score", "measure"}


class Method:
    """A method of a class that may be the evaluator. Its parameters do not include `self`."""

    def __init__(self, of: str, function: Function) -> None:
        self.of = of
        self.function = function
        self.name = f"{of}.{function.name}"


def scoring_methods(outline: Outline) -> list[Method]:
    """Return the scoring method of each public class; the list is empty if a class has several scoring methods."""
    if not outline.parsed or {"evaluate", "main"} & outline.binds or not outline.classes:
        return []
    public = candidates.public(outline)
    functions = [one for name, one in outline.functions.items() if name in public and one.required]
    if any(is_by_name(one) or entry.SCORING.intersection(one.name.lower().split("_")) for one in functions):
        return []
    nodes = {node.name: node for node in outline.tree.body if type(node).__name__ == "ClassDef"}
    found = [(name, scoring) for name in nodes if name in public and (scoring := _scoring_in(name, nodes, outline))]
    if any(len(methods) != 1 for _, methods in found):
        return []
    methods = [Method(of, method) for of, [method] in found if is_by_name(method) or lacks_only_output(method)]
    fits = len(methods) == len(found) and not any(one.function.gives_list for one in methods)
    return methods if fits else []


def _scoring_in(name: str, nodes: dict[str, Any], outline: Outline) -> list[Function]:
    """Return the scoring methods of a class, or else those of its base classes in the same file."""
    found = _scoring_methods(nodes[name], outline)
    left, visited = [*outline.classes[name]], {name}
    while left and not found:
        base = left.pop(0)
        if base in nodes and base not in visited:
            visited.add(base)
            found = [one for one in _scoring_methods(nodes[base], outline) if not _is_abstract(one.node)]
            left = [*outline.classes[base], *left]
    return found


def _is_abstract(function: Any) -> bool:
    """Return whether a method does nothing, or only raises an error, so that subclasses must replace it."""
    left = [one for one in function.body if type(one).__name__ != "Expr" or type(one.value).__name__ != "Constant"]
    return all(type(one).__name__ in ("Pass", "Raise") for one in left)


def _scoring_methods(node: Any, outline: Outline) -> list[Function]:
    """Return a class's public methods whose names say that they score, except those that other methods use.

    A method that goes through rows may use them. If there are none, and the name of the class says that it scores,
    return its `__call__`, if the parameters show what they get.
    """
    own = [one for one in node.body if type(one).__name__ in ("FunctionDef", "AsyncFunctionDef") and one.args.args]
    usual = [one for one in own if one.name in _USUAL]
    words = [one for one in own if one.name[:1] != "_" and entry.SCORING.intersection(one.name.lower().split("_"))]
    scoring = usual or words
    used = {name for one in own for name in _used_in(one, of_rows=one not in scoring and one.name != "__call__")}
    found = [one for one in scoring if one.name not in used]
    if not found and entry.is_likely(_with_underscores(node.name)):
        found = [one for one in own if one.name == "__call__"]
    methods = [_without_self(Function(one.name, one, outline)) for one in found if not one.decorator_list]
    return [one for one in methods if one.name != "__call__" or is_by_name(one) or lacks_only_output(one)]


def _with_underscores(name: str) -> str:
    """Return the name of a class in the form of a function's name: `exact_match_reward` for `ExactMatchReward`."""
    return "".join(f"_{one}" if one.isupper() else one for one in name).strip("_")


def _used_in(method: Any, *, of_rows: bool) -> Iterator[str]:
    """Yield the attributes of `self` that a method reads: `score` for `self.score`.

    With `of_rows`, leave out those that it reads inside loops over one of its parameters, such as `for row in rows`.
    """
    own, *others = [one.arg for one in method.args.args]
    of_rows = of_rows and OUTPUT not in roles_of(others).values()
    loops = [one for one in walk(method) if of_rows and any(_is_over(each, others) for each in _iterated(one))]
    looped = {id(part) for one in loops for part in walk(one)}
    for part in walk(method):
        if type(part).__name__ == "Attribute" and getattr(part.value, "id", None) == own and id(part) not in looped:
            yield part.attr


def _iterated(node: Any) -> list[Any]:
    """Return what a loop or comprehension goes through."""
    if type(node).__name__ in ("For", "AsyncFor"):
        return [node.iter]
    return [one.iter for one in getattr(node, "generators", ())]


def _is_over(iterated: Any, names: list[str]) -> bool:
    """Return whether a loop goes through a variable itself (`rows`, `enumerate(rows)`), not through a part of it."""
    parts = [iterated, *walk(iterated)]
    return any(getattr(one, "id", "") in names for one in parts) and not any(hasattr(one, "attr") for one in parts)


def _without_self(method: Function) -> Function:
    own = method.parameters[0]
    method.parameters, method.annotations = method.parameters[1:], method.annotations[1:]
    method.required = [one for one in method.required if one != own]
    method.positional -= 1
    return method


def has_scoring_method(node: Any) -> bool:
    """Return whether a class defines a method with one of the usual names."""
    return any(getattr(one, "name", "_") in _USUAL for one in node.body)
