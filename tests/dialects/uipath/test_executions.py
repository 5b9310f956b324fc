"""The host reads recorded executions in its own format and in the files of UiPath's command line, and makes rows from
both.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.types.errors import InvalidRequest
from evaluator_host.vendors.uipath.eval_set import parse_eval_set
from evaluator_host.vendors.uipath.executions import Execution, parse_executions, read_executions
from evaluator_host.vendors.uipath.records import eval_set_rows, matched, rows_of
from tests.dialects.uipath.eval_sets import REAL

RECORDED = Path(__file__).parent / "fixtures"
SPAN = {"name": "Tool", "attributes": {"tool.name": "Tool"}}


def test_every_spelling_of_our_own_form(tmp_path: Path) -> None:
    one = {"id": "test-1", "output": {"x": 1}, "spans": [SPAN], "seconds": 0.5}
    expected = [Execution("test-1", {"x": 1}, trace={"spans": [SPAN]}, seconds=0.5)]
    by_id = {"test-1": {key: value for key, value in one.items() if key != "id"}}
    for value in ([one], {"executions": [one]}, by_id):
        assert parse_executions(value) == expected
    (tmp_path / "a.jsonl").write_text(json.dumps(one) + "\n\n")
    assert read_executions([tmp_path / "a.jsonl"]) == expected
    (tmp_path / "a.jsonl").write_text(json.dumps(one) + "\n" + json.dumps({"id": "b", "agentOutput": None}) + "\n")
    assert read_executions([tmp_path / "a.jsonl"]) == [*expected, Execution("b", None)]


def test_an_error_stands_in_for_the_output() -> None:
    (failed,) = parse_executions([{"id": "a", "error": {"title": "Failed", "detail": "boom"}}])
    assert (failed.error, failed.output) == ("Failed: boom", None)


def test_the_output_file_of_uipaths_command_line() -> None:
    found = read_executions([RECORDED / "out.json"])
    assert [one.item for one in found] == ["Test 1", "Test 2", "Test 3 agent fails", "Test 4 empty criteria"]
    assert found[0].output == {"result": "HELLO"}
    assert found[0].trace is not None
    assert [span["name"] for span in found[0].trace["spans"]] == ["DataProcessingTool", "plain_traced_tool", "root"]
    assert str(found[2].error).startswith("Runtime shutdown failed: Error: agent boom")


def test_the_trace_file_has_the_spans_of_the_agent_only() -> None:
    found = {one.item: one for one in read_executions([RECORDED / "traces.jsonl"])}
    assert list(found) == ["test-1", "test-2", "test-3", "test-4"]
    for one in found.values():
        assert one.trace is not None
        assert [span["name"] for span in one.trace["spans"]] == ["DataProcessingTool", "plain_traced_tool", "root"]
        assert not one.has_output


def test_a_span_of_an_odd_kind_is_the_agents() -> None:
    span = {"name": "s", "attributes": {"execution.id": "a", "span_type": ["evaluator"], "span.type": {}}}
    assert parse_executions([span]) == [Execution("a", has_output=False, trace={"spans": [span]})]


def test_both_files_together_by_name_and_by_id() -> None:
    found, notes = matched(parse_eval_set(REAL), read_executions([RECORDED / "out.json", RECORDED / "traces.jsonl"]))
    assert found["test-1"].output == {"result": "HELLO"}
    assert found["test-1"].trace is not None
    assert found["test-1"].trace["spans"][0]["context"]["span_id"] == "0x1f3da7f196666206"
    assert len(notes) == 4  # neither file has executions of test cases 3 and 4 of this set
    assert "there is no such test case; did you mean test-2?" in notes[-1]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "contains no executions"),
        ({"evaluationSetResults": []}, "has no outputs of the agent"),
        ({"evaluationSetResults": [{"evaluationName": "a", "agentExecutionOutput": None}]}, "--verbose"),
        ([SPAN], "has the attribute execution.id"),
        ([{"output": 1}], "the id of its test case"),
        ([{"id": "a"}], "an output, spans or an error"),
        ([{"id": "a", "spans": [1]}], "must be a list of objects"),
        ([{"id": "a", "output": 1, "trace": []}], "must be an object"),
        ([{"id": "a", "output": 1, "seconds": "1"}], "must be a number"),
    ],
)
def test_a_value_that_is_not_an_execution_is_named(value: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_executions(value, named="file")
    assert message in " ".join([caught.value.detail, *(problem.message for problem in caught.value.problems)])


def test_a_test_case_that_was_run_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "a", "output": 1}\n{"id": "a", "output": 2}\n')
    with pytest.raises(InvalidRequest, match="two executions of the test case 'a'"):
        read_executions([tmp_path / "a.jsonl"])
    (tmp_path / "a.jsonl").write_text('{"id": "a", "output": 1}\n{"id": \n')
    with pytest.raises(InvalidRequest, match=r"a\.jsonl:2: not JSON"):
        read_executions([tmp_path / "a.jsonl"])


def test_rows_have_everything_that_evaluators_are_given() -> None:
    executions = [{"id": "test-1", "output": {"answer": "hi"}, "spans": [SPAN]}]
    first, second = rows_of({"eval_set": REAL, "executions": executions})
    assert first == {
        "id": "test-1",
        "name": "Test 1",
        "inputs": {"query": "hello"},
        "variables": {"expected_agent_behavior": "It greets.", "simulation_instructions": ""},
        "criteria_by_evaluator": {"PatternComparisonEvaluator": {"expectedOutput": ["alpha"]}, "OtherEvaluator": None},
        "outputs": {"answer": "hi"},
        "trace": {"spans": [SPAN]},
    }
    assert second["agent_error"] == "this test case has no recorded execution"
    assert "outputs" not in second
    assert rows_of(REAL) == eval_set_rows(parse_eval_set(REAL))
    assert "outputs" not in rows_of(REAL)[0]
    with pytest.raises(InvalidRequest, match="there is no such test case"):
        rows_of({"eval_set": REAL, "executions": [{"id": "test-9", "output": 1}]})
