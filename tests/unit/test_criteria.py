"""If rows have criteria for several evaluators, each evaluator gets its own criteria, and skips rows without criteria
for it.
"""

from typing import Any

from evaluator_host.platform.datasets.mapping import Mapping, given_to, is_keyed, to_row
from evaluator_host.types.evaluator import Row
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Given, Skipped

ROW: dict[str, Any] = {
    "inputs": {"q": 1},
    "outputs": {"a": 2},
    "criteria_by_evaluator": {"first": {"x": 1}, "second": None},
}


def given(record: dict[str, Any], *names: str, outputs_come: bool = False) -> Given:
    assert is_keyed(record)
    return given_to(to_row(record, Mapping()), record, frozenset(names), outputs_come=outputs_come)


def test_an_evaluator_gets_its_own_criteria() -> None:
    assert given(ROW, "first") == Row({"q": 1}, {"a": 2}, criteria={"x": 1})
    assert given(ROW, "evaluator 1", "second") == Row({"q": 1}, {"a": 2}, criteria=None)


def test_an_evaluator_without_criteria_skips_the_row() -> None:
    found = given(ROW, "third")
    assert isinstance(found, Skipped)
    assert (
        found.note.message
        == "the row has no criteria for this evaluator: its `criteria_by_evaluator` names only first, second"
    )


def test_an_agent_that_failed_fails_its_row_and_no_other_evaluator_is_asked_more() -> None:
    failed = {**ROW, "agent_error": "boom"}
    found = given(failed, "first")
    assert isinstance(found, EvaluationError)
    assert (found.code, found.message) == (ErrorCode.TARGET_FAILED, "the agent has no output to score: boom")
    assert isinstance(given(failed, "third"), Skipped)


def test_a_row_without_an_output_is_never_scored_as_if_it_were_empty() -> None:
    record = {key: value for key, value in ROW.items() if key != "outputs"}
    found = given(record, "first")
    assert isinstance(found, EvaluationError)
    assert found.code is ErrorCode.MISSING_INPUT
    assert isinstance(given(record, "first", outputs_come=True), Row)
    assert isinstance(given({**record, "outputs": None}, "first"), Row)


def test_a_flat_record_with_such_a_column_is_an_ordinary_one() -> None:
    assert not is_keyed({"criteria_by_evaluator": {"a": 1}})
    assert not is_keyed({"inputs": {}, "criteria_by_evaluator": "text"})
