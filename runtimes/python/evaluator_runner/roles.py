"""Tells from the names of a function's parameters which part of the row each parameter gets: its role."""

from __future__ import annotations

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.outline import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from evaluator_runner.outline import Function

OUTPUT, TRUTH, INPUT, QUESTION, TRACE, _COLUMN = "output", "truth", "input", "question", "trace", "column"
WHOLE = "row"
_ROLES = {
    name: role
    for role, names in {
        OUTPUT: "output outputs response prediction predicted pred ypred completion actual actualoutput actualanswer "
        "modeloutput modelresponse modelanswer agentoutput agentresponse botresponse llmoutput llmresponse generated "
        "generatedtext generatedanswer generation candidate hypothesis predictedanswer givenanswer studentanswer "
        "submittedanswer finaloutput finalanswer reply agentreply botreply modelreply "
        "outputtext responsetext",
        TRUTH: "expected expectedoutput expectedoutputs expectedanswer expectedresponse expectedresult expectedvalue "
        "expectation expectations reference referenceoutput referenceoutputs referenceanswer groundtruth groundtruths "
        "groundtruthanswer truth gold goldanswer golden goldenanswer goldstandard target correctanswer correct label "
        "ideal gt gtanswer ytrue truelabel wanted solution",
        INPUT: "input inputs",
        QUESTION: "question query prompt userinput userquery userquestion",
        TRACE: "trace",
        WHOLE: "row example sample item record",
        _COLUMN: "context contexts retrievedcontexts documents metadata criteria rubric",
    }.items()
    for name in names.split()
}
_ROLES_OF_LISTS = {
    **dict.fromkeys(("ypred", "predictions", "preds", "hypotheses", "generations", "outputs", "responses"), OUTPUT),
    **dict.fromkeys(("ytrue", "references", "refs", "gts", "golds", "labels", "targets", "groundtruths"), TRUTH),
}
"""Names for the values of many rows, in functions that go through them in pairs: `zip(predictions, references)`."""
_PAIRS = {
    **dict.fromkeys(("actual", "generated", "model", "output", "pred", "predicted", "response"), OUTPUT),
    **dict.fromkeys(("correct", "expected", "gold", "golden", "gt", "reference", "target", "true"), TRUTH),
}
"""First words in the names of two parameters that get output and ground truth, such as `pred_sql` and `gold_sql`."""
_TEXTS = ("answer", "result", "text", "content")
"""Names of the output, if no other parameter is the output; otherwise, `answer` is the ground truth."""
_FORMS = ("text", "str", "string", "json")
"""Endings of parameter names that tell the form of the value: `completion_text`."""
_PLACES = ((INPUT, QUESTION), (OUTPUT,), (TRACE,))
_PLACES_V1 = ((), (INPUT, QUESTION), (OUTPUT,), (TRUTH,))
"""For each argument of a call by position, the meanings that the parameter's name may have."""
_LEGACY = ("app_params", "correct_answer", "datapoint")


def is_by_name(function: Function, *, named: bool = False) -> bool:
    """Return whether the host may call a function by the names of its parameters: exactly one is for the output.

    A function that the caller named (`named`), or that is called `evaluate`, must not also fit a call by position.
    """
    names = function.parameters
    if names[:1] in (["self"], ["cls"]) or function.name == "main" or function.gives_function:
        return False
    roles = {**roles_of(names), **lists_of(function)}
    if list(roles.values()).count(OUTPUT) != 1:
        return False
    return not (named or function.name == "evaluate") or not _by_position(function, roles)


def says_what_it_is_given(function: Function) -> bool:
    """Return whether every parameter has a known name, and one is for the output."""
    return is_by_name(function) and len(roles_of(function.parameters)) == len(function.parameters)


def lacks_only_output(function: Function) -> bool:
    """Return whether one parameter is for the ground truth, and exactly one other parameter has no known name."""
    roles = roles_of(function.parameters)
    unknown = [one for one in function.required if one not in roles]
    return OUTPUT not in roles.values() and TRUTH in roles.values() and len(unknown) == 1


def lists_of(function: Function) -> dict[str, str]:
    """Return the roles of the two parameters that the function passes to `zip`: a list of outputs and a list of truths.

    Return an empty dict if there are no such parameters.
    """
    for node in walk(function.node):
        if type(node).__name__ == "Call" and getattr(node.func, "id", "") == "zip":
            given = [one.id for one in node.args if type(one).__name__ == "Name"]
            found = {one: _ROLES_OF_LISTS.get(plain_name(one), "") for one in given if one in function.parameters}
            if sorted(found.values()) == sorted((OUTPUT, TRUTH)):
                return found
    return {}


def values_by_use(function: Function) -> set[str]:
    """Return the parameters that are named like a row (`sample`) but hold a single value, as in `sample == expected`.

    The code reads no part of them, another parameter is the ground truth, and none is the output.
    """
    roles = roles_of(function.parameters)
    if OUTPUT in roles.values() or TRUTH not in roles.values():
        return set()
    parts = [one.value for one in walk(function.node) if type(one).__name__ in ("Attribute", "Subscript")]
    read = {getattr(one, "id", None) for one in parts}
    return {one for one, role in roles.items() if role == WHOLE and one not in read}


def without_role(function: Function, values_by_use: set[str]) -> str | None:
    """Return the only required parameter whose name has no known role, if no parameter is for the output; else None."""
    roles, unread = roles_of(function.parameters), function.unread
    unknown = [one for one in function.required if (one not in roles or one in values_by_use) and one not in unread]
    return unknown[0] if len(unknown) == 1 and OUTPUT not in roles.values() else None


def _by_position(function: Function, roles: dict[str, str]) -> bool:
    names = function.parameters
    if names[:1] == [_LEGACY[0]]:
        return True
    required = [one for one in names[: function.positional] if one in function.required]
    if len(function.required) > len(required) or not len(required) <= 4 <= function.positional + 1:
        return False
    if len(names) > 3 and names[3] in _LEGACY:
        return True
    truth_is_late = any(roles.get(one) == TRUTH for one in names[3:])
    if truth_is_late and (function.positional > 4 or len(required) <= 3):
        return False
    places = _PLACES_V1 if len(required) == 4 else _PLACES
    return all(roles.get(one) in (None, *place) for one, place in zip(names, places, strict=False))


def fits_places(names: list[str]) -> bool:
    """Return whether no parameter's name contradicts its place in `evaluate(inputs, outputs, trace)`."""
    roles = roles_of(names)
    return all(roles.get(one) in (None, *place) for one, place in zip(names, _PLACES, strict=False))


def roles_of(names: list[str]) -> dict[str, str]:
    """Return the role (output, truth, …) of each parameter that has a role, by the parameter's name."""
    found = {one: role for one in names if (role := role_of(one))}
    if not {OUTPUT, TRUTH} & {*found.values()}:
        found.update(_pair_of(names))
    if OUTPUT not in found.values():
        other = next((one for text in _TEXTS for one in names if plain_name(one) == text), None)
        return found if other is None else {**found, other: OUTPUT}
    if TRUTH not in found.values():
        found.update({one: TRUTH for one in names if plain_name(one) == "answer"})
    return found


def _pair_of(names: list[str]) -> dict[str, str]:
    """Return the roles of two parameters whose names differ only in the first word: `pred_sql` and `gold_sql`."""
    ends: dict[str, dict[str, str]] = {}
    for one in names:
        first, _, end = one.lower().partition("_")
        if end and first in _PAIRS:
            ends.setdefault(end, {})[one] = _PAIRS[first]
    pairs = [one for one in ends.values() if sorted(one.values()) == sorted((OUTPUT, TRUTH))]
    return pairs[0] if len(pairs) == 1 else {}


def plain_name(name: str) -> str:
    return name.replace("_", "").lower()


def role_of(name: str) -> str | None:
    """Return the role for which a parameter's name stands, or None. The name may end in a type: `completion_text`."""
    plain = plain_name(name)
    short = next((plain.removesuffix(one) for one in _FORMS if plain.endswith(one)), plain)
    return _ROLES.get(plain) or _ROLES.get(short)
