"""Runs Braintrust scorers (dialect `braintrust`): a function `handler` that gets input, output, expected… by name."""

from __future__ import annotations

from evaluator_runner import candidates, dialects, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.coerce import type_name
from evaluator_runner.failures import Failure
from evaluator_runner.outline import calls_in, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "braintrust"
WORDS = ("handler", "braintrust")
PREBOUND = False
IMPORTS = {"Score": "braintrust:Score"}
_ENTRY = "handler"
_ORDER = ("input", "expected", "metadata", "output", "trace", "id", "tags")
_MOST = 1000


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a function `handler` with a scorer's parameters, or code that passes scorers to `Eval`.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    scores = _scores_of_eval(outline) or _registered(outline)
    own = [one for one in scores if one in outline.functions]
    if own and name in {None, *own}:
        more = ", in an `Eval` whose data and task are not run" if _scores_of_eval(outline) else ""
        return dialects.DECORATED, f"the code gives `{name or own[0]}` to Braintrust as a scorer{more}"
    if _scores_of_eval(outline) and name is None and not (outline.has_own_entry or _ENTRY in outline.functions):
        return dialects.PARAMETERS, f"an `Eval` with the scores {', '.join(scores)}"
    found = outline.functions.get(_ENTRY)
    if found is None or name not in {None, _ENTRY} or (name is None and outline.has_own_entry):
        return None
    if not found.parameters or not set(found.required) <= set(_ORDER) or not set(found.parameters) & set(_ORDER):
        return None
    return dialects.NAMED, f"function `{_ENTRY}` with the parameters {', '.join(found.parameters)}"


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls the scorer; `_plain` converts the scorer's result."""
    notes: tuple[dict[str, str], ...] = ()
    if name is None:
        outline = candidates.outline_of(namespace)
        scores = _scores_of_eval(outline)
        given = scores or _registered(outline)
        own = [one for one in given if one in outline.functions]
        if scores and not own and _ENTRY not in namespace:
            raise _of_packages(scores)
        notes = _left_out([one for one in given if one not in own]) if own else ()
        if len(own) > 1:
            several = candidates.several(outline, own, "scorers that the code gives to Braintrust")
            several.notes = notes
            raise several
        name = own[0] if own else None
    found = entry.find_function(namespace, name or _ENTRY)
    found.notes += notes
    found.bind = lambda args: _bind(found, args[0])
    found.convert = _plain
    return found


def _scores_of_eval(outline: Outline) -> list[str]:
    """Return the names of the scorers that the code passes to `Eval`, or `the expression in line 3` for others."""
    if not (outline.parsed and outline.imports("braintrust")):
        return []
    names: list[str] = []
    for call in calls_in(outline, "braintrust", ("Eval", "EvalAsync")):
        for keyword in call.keywords:
            if keyword.arg == "scores":
                for one in getattr(keyword.value, "elts", ()):
                    names += outline.dotted(one)[:1] or [f"the expression in line {one.lineno}"]
    return list(dict.fromkeys(names))


def _registered(outline: Outline) -> list[str]:
    """Return the names of the handlers given to `project.scorers.create`.

    A scorer without a handler is listed by its name, or else by its line.
    """
    if not (outline.parsed and outline.imports("braintrust")):
        return []
    names: list[str] = []
    calls = [one for one in walk(outline.tree) if type(one).__name__ == "Call"]
    for call in sorted(calls, key=lambda one: one.lineno):
        if any(one.endswith(".scorers.create") for one in outline.dotted(call.func)):
            given = {one.arg: one.value for one in call.keywords}
            told = outline.dotted(given.get("handler"))[:1] or outline.dotted(given.get("name"))[:1]
            names += told or [f"the scorer in line {call.lineno}"]
    return list(dict.fromkeys(names))


def _short(scores: list[str]) -> list[str]:
    return [one.rpartition(".")[2] if "partial" not in one else one.split(".")[-2] for one in scores[:10]]


def _left_out(scores: list[str]) -> tuple[dict[str, str], ...]:
    if not scores:
        return ()
    message = f"these scorers are not functions in this code, so they are not called: {', '.join(_short(scores))}"
    return ({"code": "entry_left_out", "message": message},)


def _of_packages(scores: list[str]) -> Failure:
    names = _short(scores)
    if not names[0].isidentifier():
        message = f"`Eval` scores with {', '.join(names)}, but none of these scorers is a function in the code"
        return Failure(
            "entry_not_found",
            message,
            hint="write the scorer as a function: `def handler(input, output, expected): return …`",
        )
    return Failure(
        "entry_not_found",
        f"the scores of `Eval` come from a package ({', '.join(names)}): the code has no scorer of its own",
        hint=f"write a scorer that calls it, and pin its package: `def handler(input, output, expected): return "
        f"{names[0]}()(output=output, expected=expected)`. A scorer that calls a model needs one that is granted in "
        "`models`",
    )


def _bind(found: entry.Entry, row: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments by name. A required parameter with an unknown name gets the row's next unused value."""
    values = {name: row.get(name) for name in _ORDER}
    known = found.signature
    if known is None:
        return [], values
    names = [*known.positional, *known.keyword_only]
    required = {
        *known.positional[: known.required],
        *[one for one, default in known.keyword_only.items() if not default],
    }
    unused = [name for name in _ORDER if name not in names]
    given: dict[str, Any] = {}
    for name in names:
        if name in values:
            given[name] = values[name]
        elif name in required and unused:
            given[name] = values[unused.pop(0)]
    if known.var_keyword is not None:
        given = {**values, **given}
    args = [given.pop(name) for name in known.positional[: known.positional_only] if name in given]
    return args, given


def _plain(value: Any) -> Any:
    """Return `{"value": …}`, or `{"refused": type}` if a scorer may not return a value of this type."""
    value = _score(value)
    if value is None or isinstance(value, bool | int | float | str | dict):
        return {"value": value}
    if type(value).__module__.partition(".")[0] == "numpy" and getattr(value, "ndim", 1) == 0:
        return {"value": value}
    try:
        return {"value": [_score(one) for one, _ in zip(value, range(_MOST), strict=False)]}
    except TypeError:
        return {"refused": type_name(type(value))}


def _score(value: Any) -> Any:
    if all(hasattr(value, name) for name in ("name", "score", "metadata", "as_dict")):
        more = {"metadata": value.metadata} if value.metadata else {}
        return {"name": value.name, "score": value.score, **more}
    return value
