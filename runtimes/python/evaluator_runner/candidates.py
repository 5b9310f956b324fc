"""Finds the functions and classes of a file that may be the evaluator, from how the code uses them."""

from __future__ import annotations

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.failures import Failure
from evaluator_runner.outline import Outline, bound_by, names_loaded, names_used_by_others, statements_of, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from evaluator_runner.entry import Entry

_LISTS = {
    "checks", "custom_evaluators", "evals", "evaluator", "evaluators", "funcs", "graders", "metric", "metrics",
    "reward_fns", "reward_funcs", "reward_functions", "scorer", "scorers", "scores", "scoring_functions",
}  # fmt: skip
"""Names of arguments, variables and keys that take evaluators."""
_ADDING = {"add_evaluator", "add_metric", "add_reward_func", "add_scorer"}
"""Methods that add an evaluator to a list of evaluators."""
_FUNCTIONS = ("FunctionDef", "AsyncFunctionDef", "ClassDef")
_TAKE_APART = {"extract", "normalise", "normalize"}
"""First words in the names of functions that prepare a text for other functions, and do not judge it."""
_TWINS = ("{}_async", "async_{}", "a{}", "a_{}")
_SHOWN = 10
_PARAMETERS = 8


def public(outline: Outline) -> list[str]:
    """Return the public functions and classes that the module itself does not use, except in lists of evaluators."""
    used = helpers(outline)
    own = {**outline.functions, **outline.classes}
    return [name for name in outline.binds_in_order if name in own and name[:1] != "_" and name not in used]


def helpers(outline: Outline) -> set[str]:
    """Return the names of helpers: those that the module's functions and classes use.

    Names that the code puts in a list of evaluators, such as `evaluators=[correct]`, are not helpers.
    """
    return names_used_by_others(outline) - _Uses(outline).in_lists if outline.parsed else set()


def private_helpers(outline: Outline) -> set[str]:
    """Return the module's private functions that other functions or classes use."""
    return {name for name in names_used_by_others(outline) if name.startswith("_")} & {*outline.functions}


def outline_of(namespace: dict[str, Any]) -> Outline:
    """Return the outline (facts about definitions and imports) of the code that has run in a namespace."""
    return Outline(str(namespace["__loader__"].get_source("evaluator")))


def meant(outline: Outline, names: list[str]) -> list[str]:
    """Return the names that may be the evaluator, in the given order.

    If the code has a list of evaluators (`evaluators=[correct]`), these are the names in the list. Otherwise they are
    the names that no other name uses, public before private ones, without functions like `extract_answer(text)`.
    """
    if len(names) < 2 or not outline.parsed:
        return names
    used = _Uses(outline)
    listed = used.listed(names)
    names = _without_async_twins(outline, [one for one in names if one in listed] or names)
    if listed:
        return names
    free = [one for one in names if not any(one in used.by(other) for other in names if other != one)] or names
    free = [one for one in free if not one.startswith("_")] or free
    return [one for one in free if not takes_apart(outline, one)] or free


def listed(outline: Outline, names: list[str]) -> bool:
    """Return whether the code has a list of evaluators with at least one of these names."""
    return bool(_Uses(outline).listed(names))


def takes_apart(outline: Outline, name: str) -> bool:
    """Return whether a function needs at most one argument, and its name begins with `extract` or `normalize`."""
    function = outline.functions.get(name)
    return function is not None and len(function.required) < 2 and name.strip("_").split("_")[0] in _TAKE_APART


def _without_async_twins(outline: Outline, names: list[str]) -> list[str]:
    """Leave out async copies of other functions, such as `exact_async` if there is also `exact`."""
    twins = {way.format(one) for one in names for way in _TWINS}
    own = outline.functions
    return [one for one in names if one not in twins or one not in own or not own[one].is_async]


def meant_in(namespace: dict[str, Any], names: list[str]) -> list[str]:
    """Return the result of `meant` for code that has run. If there is only one name, return this name."""
    return meant(outline_of(namespace), names) if len(names) > 1 else names


def listed_in(namespace: dict[str, Any]) -> set[str]:
    """Return the names that are in lists of evaluators in the code. Call this after the code has run."""
    outline = outline_of(namespace)
    return _Uses(outline).in_lists if outline.parsed else set()


def the_only(namespace: dict[str, Any], names: list[str], what: str) -> str:
    """Return the only name that may be the evaluator; `what` says in messages what the names are, in the plural.

    Raises:
      Failure: several names may be the evaluator.
    """
    if len(names) == 1:
        return names[0]
    outline = outline_of(namespace)
    found = meant(outline, names)
    if len(found) > 1:
        raise several(outline, found, what)
    return found[0]


def note_others(entry: Entry, place: str, names: list[str]) -> None:
    """Add a note for the author: the entry is the first or last (`place`) of several possible entries."""
    others = ", ".join([one for one in names if one != entry.name][:_SHOWN])
    if others:
        message = f"{entry.name} is called, because it is the {place}; `settings.entry` can name another one: {others}"
        entry.notes.append({"code": "several_entries", "message": message})


def uses_of(outline: Outline, names: list[str]) -> dict[str, set[str]]:
    """Map each of `names` to the names that it uses, directly or through other names."""
    uses = _Uses(outline)
    return {one: uses.by(one) for one in names}


def several(outline: Outline, names: list[str], what: str) -> Failure:
    """Return the failure for code with several entries; its message lists each entry's parameters and line."""
    shown = ", ".join(_shown(outline, one) for one in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    hint = f"name one of them in `settings.entry`, for example {names[0]}, or `*` for all of them"
    failure = Failure("entry_ambiguous", f"there are several {what}: {shown}{more}", hint=hint)
    failure.equal = tuple(names)
    failure.shown = shown + more
    return failure


def _shown(outline: Outline, name: str) -> str:
    function = outline.functions.get(name)
    if function is None:
        return name
    more = ", …" if len(function.parameters) > _PARAMETERS else ""
    return f"{name}({', '.join(function.parameters[:_PARAMETERS])}{more}) in line {function.line}"


class _Uses:
    """Records which names each module-level definition uses, and which are in lists of evaluators."""

    def __init__(self, outline: Outline) -> None:
        self._direct: dict[str, set[str]] = {}
        self._lists: list[tuple[list[str], list[str]]] = []
        if not outline.parsed:
            return
        for node in statements_of(outline.tree):
            if type(node).__name__ in {"If", "For", "While", "With", "Try"}:
                continue  # the statements inside this one are visited later
            bound = bound_by(node)
            for one in bound:
                self._direct.setdefault(one, set()).update(names_loaded(node))
            self._lists += [(bound, names) for names in _lists_in(node, {*outline.functions, *outline.classes})]

    @property
    def in_lists(self) -> set[str]:
        return {one for _, listed in self._lists for one in listed}

    def by(self, name: str) -> set[str]:
        """Return the names that the definition of `name` uses, directly or through other names."""
        found: set[str] = set()
        left = [name]
        while left:
            new = self._direct.get(left.pop(), set()) - found
            found |= new
            left.extend(new)
        return found

    def listed(self, names: list[str]) -> set[str]:
        """Return those of `names` that are in lists of evaluators.

        A list does not count if it is made or used in the definition of one of `names`.
        """
        own = {*names, *(used for one in names for used in self.by(one))}
        return {one for bound, listed in self._lists if not own.intersection(bound) for one in listed} & set(names)


def _lists_in(node: Any, own: set[str]) -> Iterator[list[str]]:
    """Yield the names in each list of evaluators in a statement.

    A list that is assigned to a variable also counts if all its names are in `own` (functions and classes).
    """
    named = type(node).__name__ == "Assign" and node.value is not None
    if named and type(node.value).__name__ in {"List", "Tuple", "Dict"}:
        names = list(_members(node.value))
        takes = any(one.lower().strip("_") in {*_LISTS, "all"} for one in bound_by(node))
        if takes or (names and own.issuperset(names)):
            yield names
    for one in walk(node):
        kind = type(one).__name__
        if kind == "keyword" and one.arg in _LISTS:
            yield list(_members(one.value))
        elif kind == "Call" and getattr(one.func, "attr", "") in _ADDING and one.args:
            yield list(_members(one.args[0]))
        elif kind == "Dict":
            pairs = zip(one.keys, one.values, strict=True)
            yield from (list(_members(value)) for key, value in pairs if getattr(key, "value", None) in _LISTS)


def _members(value: Any) -> Iterator[str]:
    """Yield the names in a list of evaluators.

    If the list contains calls, also yield the names of the called functions and of their arguments.
    """
    kind = type(value).__name__
    if kind == "Name":
        yield value.id
    elif kind == "Constant" and isinstance(value.value, str):
        yield value.value
    elif kind in {"List", "Tuple", "Set", "Dict"}:
        for one in value.values if kind == "Dict" else value.elts:
            yield from _members(one)
    elif kind == "Call":
        for one in (value.func, *value.args):
            yield from _members(one)
