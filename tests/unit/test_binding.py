"""The host makes the body of a call from a row."""

import json
from typing import Any

import pytest

from evaluator_host.engine.contracts.binding import Binding, encode
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationError
from tests.unit.normalising import EVALUATE, MAIN, V1


def bound(contract: Contract, row: Row, **settings: Any) -> Binding | EvaluationError:
    return dialect_of(contract).bind(row, EvaluatorSettings(**settings))


def test_evaluate_binds_positionally_and_converts_the_trace() -> None:
    trace = {
        "spans": {"app": {"span_name": "app", "attributes": {"ag": {"metrics": {"duration": {"cumulative": 500}}}}}}
    }
    found = bound(EVALUATE, Row({"a": 1}, "out", trace))
    assert isinstance(found, Binding)
    assert found.body["args"][:2] == [{"a": 1}, "out"]
    assert found.body["args"][2]["spans"]["app"]["attributes"]["ag"]["metrics"]["unit"]["duration"]["total"] == 0.5
    assert [note.code for note in found.notes] == ["trace_converted"]
    for outputs in ("", {}, 0, False, None):
        assert bound(EVALUATE, Row({}, outputs)) == Binding({"args": [{}, outputs, None]})


def test_v1_binds_the_correct_answer() -> None:
    row = Row({"q": 1, "gold": None}, "out")
    assert bound(V1, row, correct_answer_key="gold") == Binding({"args": [{}, {"q": 1, "gold": None}, "out", None]})


@pytest.mark.parametrize(
    ("inputs", "key", "words"),
    [
        ({"country": 1, "gold": 2}, "golden", ["'country', 'gold'", "correct_answer_key = 'gold'"]),
        ({"q": 1, "Correct Answer": 2}, "correct_answer", ["correct_answer_key = 'Correct Answer'"]),
        ({"q": 1, "expected": 2}, "correct_answer", ["correct_answer_key = 'expected'"]),
        ({"q": 1}, "correct_answer", ["inputs has 'q'"]),
        ({}, "correct_answer", ["inputs is empty"]),
        ({f"column{i}": i for i in range(300)}, "gold", ["'column11' and 288 more"]),
    ],
)
def test_v1_without_correct_answer(inputs: dict[str, Any], key: str, words: list[str]) -> None:
    error = bound(V1, Row(inputs), correct_answer_key=key)
    assert isinstance(error, EvaluationError)
    assert error.code is ErrorCode.MISSING_INPUT
    assert f"inputs has no '{key}'" in error.message
    assert "settings.correct_answer_key" in error.message
    for word in words:
        assert word in str(error.hint)


def test_main_binds_by_name() -> None:
    assert bound(MAIN, Row({"x": 1}, "out", variables={"completion": "c"})) == Binding(
        {"named": {"completion": "c"}, "exact": True}
    )
    assert bound(MAIN, Row({"x": 1}, "out", variables={})) == Binding({"named": {}, "exact": True})
    assert bound(MAIN, Row({"target": "t", "output": "mine"}, "out")) == Binding(
        {"named": {"target": "t", "output": "out", "completion": "out", "outputs": "out"}, "exact": False}
    )
    without = bound(MAIN, Row({"completion": "mine"}))
    assert without == Binding({"named": {"completion": "mine", "output": None, "outputs": None}, "exact": False})


def test_ragas_gets_the_outputs_of_the_row_and_not_an_older_column() -> None:
    for outputs, response in (("new", "new"), (None, "old")):
        found = bound(Contract("ragas"), Row({"user_input": "q", "response": "old"}, outputs))
        assert isinstance(found, Binding)
        assert (found.body["args"][0]["user_input"], found.body["args"][0]["response"]) == ("q", response)


def test_every_row_of_a_request_can_be_encoded() -> None:
    for value in (10**400, -(2**64), "\ud800", {"\ud800": [2**63, 2**64]}):
        data = encode(Binding({"args": [value]}))
        assert isinstance(data, bytes)
        assert json.loads(data) == {"args": [value]}


def test_a_row_that_no_runner_can_decode_is_refused() -> None:
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    error = encode(Binding({"args": [deep]}))
    assert isinstance(error, EvaluationError)
    assert error.code is ErrorCode.BINDING_ERROR
