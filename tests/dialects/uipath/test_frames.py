"""The host checks what a sandbox reports about UiPath's evaluators."""

import json
from typing import Any

import pytest

from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.engine.sandbox.messages import read_loaded
from evaluator_host.engine.sandbox.protocol import Frame, ProtocolError
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Language, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationError, EvaluatorClass, Kind, Loaded, Returned

UIPATH = dialect_of(Contract("uipath"))
HEADER = {
    "type": "loaded",
    "contract": "uipath",
    "contract_source": "declared",
    "reason": "",
    "entry": "E",
    "parameters": [],
}
CLASS: dict[str, Any] = {
    "name": "E", "line": 3, "docstring": None, "id": "e", "abstract": [], "error": None, "types": {}, "config": None
}  # fmt: skip


def answer(classes: object) -> Loaded:
    found = read_loaded(Frame(HEADER, json.dumps({"missing_imports": [], "bundle": None, "classes": classes}).encode()))
    assert isinstance(found, Loaded)
    return found


def test_classes_are_taken_as_they_are_said_to_be_up_to_a_hundred() -> None:
    assert answer([CLASS] * 101).classes == (EvaluatorClass("E", 3, None, "e", types={}),) * 100


@pytest.mark.parametrize(
    "classes",
    [
        "E",
        {},
        [3],
        [{"name": "E"}],
        [{**CLASS, "name": 3}],
        [{**CLASS, "types": []}],
        [{**CLASS, "abstract": [1]}],
        [{**CLASS, "error": {"code": "sandbox_lost", "message": ""}}],
        [{**CLASS, "config": json.loads('{"a":' * 70 + "1" + "}" * 70)}],
    ],
)
def test_a_report_that_is_not_about_classes_is_the_guests_crash(classes: object) -> None:
    if classes == {}:
        assert answer(classes).classes == ()
        return
    with pytest.raises(ProtocolError):
        answer(classes)


@pytest.mark.parametrize(
    "value",
    [
        {"score": 1},
        {"score": 1, "score_type": 3, "details": None},
        {"score": "1", "score_type": 1, "details": None},
        {"score": 1, "score_type": 1},
        {"score": 1, "score_type": [1], "details": None},
        {"score": 1, "score_type": 1, "details": None, "ignored": "a"},
        {"score": 1, "score_type": 1, "details": None, "ignored": [1]},
        [1],
        None,
    ],
)
def test_a_value_that_is_not_a_result_is_the_guests_crash(value: Any) -> None:
    kind = Kind.OBJECT if isinstance(value, dict) else Kind.ARRAY
    read = UIPATH.interpret(Returned(kind, value), Language.PYTHON)
    assert isinstance(read, EvaluationError)
    assert read.code is ErrorCode.CRASHED


@pytest.mark.parametrize(
    ("score", "nonfinite"), [(None, ()), (None, ("$.score",)), (10**400, ()), (1.0, ("$.details",))]
)
def test_a_score_is_a_finite_number(score: Any, nonfinite: tuple[str, ...]) -> None:
    value = {"score": score, "score_type": 1, "details": None}
    read = UIPATH.interpret(Returned(Kind.OBJECT, value, nonfinite=nonfinite), Language.PYTHON)
    assert isinstance(read, EvaluationError)
    assert read.code is ErrorCode.NON_FINITE


def test_an_error_without_details_says_so() -> None:
    value = {"score": None, "score_type": 2, "details": None}
    read = UIPATH.interpret(Returned(Kind.OBJECT, value), Language.PYTHON)
    assert isinstance(read, EvaluationError)
    assert (read.code, read.type) == (ErrorCode.USER_EXCEPTION, "ErrorEvaluationResult")
    assert "without details" in read.message


def test_integers_stay_exact_and_details_become_the_reason() -> None:
    value = {"score": 2**60, "score_type": 1, "details": {"ä": 1}}
    read = UIPATH.interpret(Returned(Kind.OBJECT, value), Language.PYTHON)
    assert isinstance(read, Scored)
    assert (read.score, read.reason) == (2**60, '{"ä": 1}')


@pytest.mark.parametrize("name", ["simulationInstructions", "simulation_instructions"])
def test_simulation_instructions_are_accepted_under_both_names(name: str) -> None:
    bound = UIPATH.bind(Row(variables={name: "go", "expected_agent_behavior": None}), settings=EvaluatorSettings())
    assert not isinstance(bound, EvaluationError)
    assert bound.body["args"][4] == {"simulation_instructions": "go"}
    wrong = UIPATH.bind(Row(variables={name: 3}), settings=EvaluatorSettings())
    assert isinstance(wrong, EvaluationError)
    assert wrong.message == f"variables.{name} is 3, not a string"
