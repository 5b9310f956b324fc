"""The host returns the right results for a metric's honest outputs, and does not trust forged outputs."""

from typing import Any

import pytest

from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Language, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Kind, Returned

RULES = dialect_of(Contract("nemo"))


def value(scores: Any = None, labels: Any = None, **changes: Any) -> dict[str, Any]:
    return {"type": "m", "outputs": [], "scores": scores or {}, "labels": labels or {}, "diagnostics": []} | changes


def read(given: object, kind: Kind = Kind.OBJECT, **settings: Any) -> Scored | EvaluationError:
    return RULES.interpret(Returned(kind, given), Language.PYTHON, settings=EvaluatorSettings(**settings))


def scored(given: object, **settings: Any) -> Scored:
    found = read(given, **settings)
    assert isinstance(found, Scored), found
    return found


def test_a_single_output_is_the_score_and_a_bool_the_verdict() -> None:
    assert scored(value({"p": True})) == Scored(1.0, True, {"p": 1.0})
    assert scored(value({"p": 3})) == Scored(3, None, {"p": 3})


def test_of_several_the_named_one_is_the_score() -> None:
    several = value({"p": True, "q": 0.5})
    found = scored(several)
    assert (found.score, found.passed, [note.code for note in found.notes]) == (None, None, ["no_score"])
    assert scored(several, score_output="q") == Scored(0.5, None, {"p": 1.0, "q": 0.5})


@pytest.mark.parametrize("raw", ["NaN", None, 10**400])
def test_a_value_that_is_not_finite_is_left_out_with_a_warning(raw: object) -> None:
    found = scored(value({"p": raw}))
    assert (found.score, found.metrics, [note.code for note in found.notes]) == (None, {}, ["non_finite"])


def test_labels_and_diagnostics_are_reported() -> None:
    diagnostics = [{"message": "one", "details": None}, {"message": "two", "details": {"a": 1}}]
    found = scored(value({"p": 1}, {"tone": "warm", "more": "x"}, diagnostics=diagnostics))
    assert (found.label, found.reason) == ("warm", "one; two")


@pytest.mark.parametrize(
    "forged",
    [
        None,
        {},
        value(outputs=None),
        value(scores=[1]),
        value({"p": "0.5"}),
        value({"p": [1]}),
        value(labels={"a": 1}),
        value(diagnostics={}),
    ],
)
def test_a_report_that_no_runner_sends_counts_as_a_crash(forged: object) -> None:
    found = read(forged)
    assert isinstance(found, EvaluationError)
    assert found.code is ErrorCode.CRASHED
    assert isinstance(read(value({"p": 1}), kind=Kind.ARRAY), EvaluationError)


def test_an_output_without_a_json_form_is_named() -> None:
    outcome = Returned(Kind.OBJECT, None, unsupported=("$.outputs[0].value", "Thing"))
    found = RULES.interpret(outcome, Language.PYTHON)
    assert isinstance(found, EvaluationError)
    assert (found.code, "$.outputs[0].value" in found.message, "Thing" in found.message) == (
        ErrorCode.INVALID_RESULT,
        True,
        True,
    )


def test_a_row_is_passed_with_its_trace_and_position() -> None:
    bound = RULES.bind(Row({"a": 1}, "out", {"spans": {}}, index=7), EvaluatorSettings())
    assert not isinstance(bound, EvaluationError)
    assert bound.body == {"args": [{"a": 1}, "out", {"spans": {}}, 7]}
    asked = RULES.bind(Row({"a": 1}, "out", response={"choices": []}, index=7), EvaluatorSettings())
    assert not isinstance(asked, EvaluationError)
    assert asked.body == {"args": [{"a": 1}, "out", None, 7, {"choices": []}]}
