"""Legacy evaluators get `app_params`, and a warning names each key that the code reads but the caller did not give."""

from typing import Any

import pytest

from evaluator_host.engine.contracts.evaluate_v1.dialect import bind
from evaluator_host.engine.contracts.parameters import row_notes
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Failed, Kind, Loaded, Returned, Status
from tests.unit.normalising import PY, V1, info, result

GOLD = {"correct_answer": 1}


@pytest.mark.parametrize(
    ("config", "inputs", "variables", "params"),
    [
        ({}, {}, None, {}),
        ({"a": 1}, {}, None, {"a": 1}),
        ({"a": 1, "b": 1}, {"app_params": {"a": 2}}, None, {"a": 2, "b": 1}),
        ({"a": 1}, {"app_params": {"a": 2}}, {"app_params": {"a": 3}}, {"a": 3}),
        ({}, {"app_params": '{"a": 0.5}'}, None, {"a": 0.5}),
        ({"a": 1}, {"app_params": "{not json"}, None, {"a": 1}),
        ({"a": 1}, {"app_params": "[1]"}, {"app_params": 5}, {"a": 1}),
        ({"a": 1}, {"app_params": None}, {}, {"a": 1}),
    ],
)
def test_app_params_come_from_the_configuration_a_column_or_the_request(
    config: dict[str, Any], inputs: dict[str, Any], variables: dict[str, Any] | None, params: dict[str, Any]
) -> None:
    row = Row({**GOLD, **inputs}, "x", variables=variables)
    bound = bind(row, EvaluatorSettings(config=config))
    assert not isinstance(bound, EvaluationError)
    assert isinstance(bound.body, dict)
    assert bound.body["args"][0] == params


def test_variables_that_are_passed_are_not_called_unread() -> None:
    evaluator = Evaluator("def evaluate(app_params, inputs, output, correct_answer): return 1")
    loaded = Loaded(
        Contract.EVALUATE_V1, "inferred", "", "evaluate", ("app_params", "inputs", "output", "correct_answer")
    )
    assert not row_notes(evaluator, loaded, Row(GOLD, "x", variables={"app_params": {"a": 1}}))
    (note,) = row_notes(evaluator, loaded, Row(GOLD, "x", variables={"app_params": {}, "other": 1}))
    assert (note.code, "`other`" in note.message, "app_params" in note.message) == ("unused_variables", True, False)


@pytest.mark.parametrize("kind", ["KeyError", "TypeError"])
def test_an_error_of_a_key_that_was_not_given_says_where_to_give_it(kind: str) -> None:
    error = EvaluationError(ErrorCode.USER_EXCEPTION, "'a'", type=kind)
    failed = result(Failed(error, unset_params=("a",)), V1)
    assert failed.status is Status.FAILED
    assert failed.error is not None
    assert "`settings.config`" in str(failed.error.hint)
    other = result(Failed(EvaluationError(ErrorCode.USER_EXCEPTION, "'a'", type=kind)), V1)
    assert other.error is not None
    assert "`settings.config`" not in str(other.error.hint)
    assert info(PY, V1).evaluator.contract is V1
    assert Returned(Kind.NUMBER, 1).unset_params == ()
