"""Runs an environment's loader function only as far as its rubric needs, without the data set and the environment."""

from __future__ import annotations

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.outline import bound_by, names_loaded, walk
from evaluator_runner.tracebacks import FILENAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

_RUBRIC = "Rubric"
_RESTRICTED = "_getattr_"  # a name that only code under the restricted policy has in its globals


def rubric_of_loader(namespace: dict[str, Any], outline: Outline) -> tuple[str, Any] | None:
    """Run the only function that makes a rubric of verifiers; return the function's name and the rubric.

    Only the statements that the rubric needs run, such as those that make the parser. Return None if there is no such
    function, if the function needs arguments, or if one of the statements fails.
    """
    loaders = [one for one in outline.functions.values() if isinstance(getattr(one.node, "body", None), list)]
    made = [(one, name) for one in loaders for name in _rubrics(one.node.body, outline)]
    if len(made) != 1 or made[0][0].required or _RESTRICTED in namespace:
        return None
    loader, name = made[0]
    part = type(outline.tree)(body=_needed(loader.node.body, name), type_ignores=[])
    inner = {**namespace, **_defaults(namespace[loader.name])}
    try:
        exec(compile(part, FILENAME, "exec"), inner)  # noqa: S102 - the evaluator's own code, in its sandbox
    except Exception:  # noqa: BLE001 - user code may raise anything
        return None
    return loader.name, inner.get(name)


def _rubrics(body: list[Any], outline: Outline) -> list[str]:
    """Return the names of the variables to which a function assigns a rubric."""
    calls = [one for one in body if type(getattr(one, "value", None)).__name__ == "Call"]
    made = [one for one in calls if any(_is_rubric(way) for way in outline.dotted(one.value.func))]
    return [name for one in made for name in bound_by(one)]


def _is_rubric(dotted: str) -> bool:
    return dotted.startswith("verifiers.") and dotted.endswith(f".{_RUBRIC}")


def _needed(body: list[Any], name: str) -> list[Any]:
    """Return the statements that make or change the object with this name, and the statements that these need."""
    own = {one for node in body for one in bound_by(node)}
    names = {name}
    kept: list[Any] = []
    while True:
        found = [one for one in body if names.intersection(bound_by(one)) or _root(one) in names]
        if len(found) == len(kept):
            return found
        kept = found
        names |= {one for node in kept for one in names_loaded(node)} & own


def _root(node: Any) -> str | None:
    """Return the name of the object that a statement changes (`rubric` in `rubric.add(…)`), or None."""
    targets = [node.value] if type(node).__name__ == "Expr" else getattr(node, "targets", None)
    target = targets[0] if targets else None
    if type(target).__name__ == "Call":
        target = target.func
    if type(target).__name__ != "Attribute":
        return None
    return next((one.id for one in walk(target.value) if type(one).__name__ == "Name"), None)


def _defaults(function: Any) -> dict[str, Any]:
    code = function.__code__
    by_position = code.co_varnames[: code.co_argcount]
    given = function.__defaults__ or ()
    named = dict(zip(by_position[len(by_position) - len(given) :], given, strict=True))
    stars = code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]
    variadic = {stars[0]: {}} if code.co_flags & 0x08 and not code.co_flags & 0x04 and stars else {}
    return {**variadic, **named, **(function.__kwdefaults__ or {})}
