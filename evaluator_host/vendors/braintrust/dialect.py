"""Arguments and results of Braintrust's scorers (dialect `braintrust`): `handler(input, output, expected, …)`.

The Python runner sends `{"value": …}`, or `{"refused": type}` for a value of a type that cannot be a score. Source of
the rules: braintrust 0.48.1 (PyPI) framework.py and score.py, 3.35.0 (npm).
"""

from typing import Final

from evaluator_host.engine.contracts.base import Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored, contradiction
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    invalid,
    is_number,
    own_columns,
    scored,
    shown,
    unreadable,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import EvaluationError, Kind, Note, Returned

_HINT: Final = (
    "return a number from 0 to 1, a bool, None, an object with `score`, or a list of objects with `name` and `score`"
)
_TRUTH: Final = frozenset({"expected"})
_OTHERS: Final = frozenset({"trace", "id", "tags"})
_SKIPPED: Final = Note("skipped", "the scorer returned no score, so it does not apply to this row")


class _Refused(Exception):
    """Braintrust does not accept a value; the message says why."""


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return arguments by name: the row's `variables`, or input, output, expected, … from the row's other fields."""
    return bind_native(row, settings, _values, needs="output")


def _values(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    """Return the row's values for a scorer; a missing value is None in Python and undefined in JavaScript."""
    inputs, truth = without_truth(row, settings)
    values: dict[str, Json] = {"input": inputs, "output": row.outputs, "metadata": {}}
    if inputs is not row.inputs:
        values["expected"] = truth
    if row.trace is not None:
        values["trace"] = row.trace
    own = own_columns(row, settings, truth=_TRUTH, others=_OTHERS)
    if own is None:
        return values
    found = {**values, **own, "metadata": own.get("metadata") or {}}
    return {**found, "expected": truth} if settings.correct_answer_key in own else found


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the returned score or scores; the row is skipped if all scores are None."""
    if (error := unreadable(returned)) is not None:
        return error
    value: Json = None if returned.kind is Kind.MISSING else returned.value
    if language is Language.PYTHON:
        if not isinstance(value, dict) or value.keys() not in ({"value"}, {"refused"}):
            return contradiction()
        if "refused" in value:
            return invalid(f"Braintrust does not accept a value of type {str(value['refused'])[:100]}", _HINT)
        value = value["value"]
    name = settings.entry or "handler"
    try:
        if isinstance(value, list):
            native = [_score(one, None) for one in value]
        else:
            native = [_score(value if isinstance(value, dict) else {"score": value}, name)]
    except _Refused as refused:
        return invalid(str(refused), _HINT)
    named = [NamedScore(one["name"], one["score"] if "score" in one else one.get("label", one["id"])) for one in native]
    return scored(named, native, chosen=settings.score_output, skipped=_SKIPPED)


def _score(value: Json, name: str | None) -> dict[str, Json]:
    """Convert a value to the score or classification that Braintrust stores, called `name` if the value has no name.

    Raises:
      _Refused: Braintrust does not accept the value.
    """
    own = value.get("name", name) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(own, str):
        raise _Refused(f"{shown(value)} is not an object with `name` and `score`")
    more = {"metadata": value["metadata"]} if value.get("metadata") else {}
    if "score" not in value and isinstance(value.get("id"), str):
        label = {"label": value["label"]} if isinstance(value.get("label"), str) else {}
        return {"name": own, "id": value["id"], **label, **more}
    if "score" not in value:
        raise _Refused(f"{shown(value)} has no `score`; give it a number between 0 and 1")
    score = value["score"]
    if not (score is None or isinstance(score, bool) or is_number(score)):
        raise _Refused(f"the score {shown(score)} is not a number between 0 and 1")
    if score is not None and not 0 <= score <= 1:
        raise _Refused(f"score ({score}) must be between 0 and 1")
    return {"name": own, "score": score, **more}


DIALECT: Final = Dialect(
    contract=Contract("braintrust"),
    bind=bind,
    interpret=interpret,
    native_row={
        "input": {"question": "What is the capital of France?"},
        "output": "Paris",
        "expected": "Paris",
        "metadata": {},
    },
    takes=("correct_answer_key", "score_output", "variables"),
    truth=("expected",),
    sdk=Sdk(
        module="braintrust",
        stand_in=StandIn("dialects/braintrust/modules", preimport="braintrust"),
        real=frozenset({"braintrust", "autoevals"}),
        also=("braintrust_core", "autoevals"),
    ),
)
