"""The result of an eval set has scores on one scale, and raw numbers in UiPath's own format; invalid evaluator files
are refused.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.outcome import ErrorCode, EvaluationError, EvaluationResult, Status
from evaluator_host.vendors.uipath.cli.eval import _exit_code, eval_table
from evaluator_host.vendors.uipath.eval_set import EvalItem, EvalSet
from evaluator_host.vendors.uipath.evaluation import EvalRun, overall, scores
from evaluator_host.vendors.uipath.evaluators import ProjectEvaluator, find_evaluators
from evaluator_host.vendors.uipath.executions import Execution
from evaluator_host.vendors.uipath.output import as_report, as_uipath
from evaluator_host.vendors.uipath.project import find_layout
from tests.dialects.uipath.projects import make_project, write
from tests.unit.results import result_of

BOTH = {"Number": {}, "Bool": None}
ITEMS = (EvalItem("a", "A", {}, BOTH), EvalItem("b", "B", {}, BOTH), EvalItem("c", "C", {}, {"Number": {}}))
EVALUATORS = tuple(ProjectEvaluator(name, f"{name} Shown", {}, Path("x.py"), name) for name in ("Number", "Bool"))


def scored(score: float, /, **value: Any) -> EvaluationResult:
    return result_of(score=score, value={"score": score, "details": "d", "evaluation_time": 0.5, **value})


def failed(**value: Any) -> EvaluationResult:
    error = EvaluationError(ErrorCode.USER_EXCEPTION, "boom", line=3)
    return result_of(status=Status.FAILED, score=None, error=error, value=value or None)


RUN = EvalRun(
    EvalSet("s", "Set", ITEMS, ("Number", "Bool"), {"Number": 3.0}),
    EVALUATORS,
    {"a": Execution("a", {"x": 1}, seconds=0.1), "b": Execution("b", "text"), "c": Execution("c", error="agent boom")},
    {
        ("a", "Number"): scored(0.5),
        ("a", "Bool"): scored(1.0, score=True, score_type=0),
        ("b", "Number"): failed(),
        ("b", "Bool"): scored(0.0, score=False, score_type=0),
    },
)


def test_booleans_and_numbers_are_on_one_scale_and_failures_in_no_mean() -> None:
    number, boolean = scores(RUN)
    assert (number.rows, number.scored, number.failed, number.mean, number.weight) == (3, 1, 2, 0.5, 3.0)
    assert (boolean.rows, boolean.scored, boolean.failed, boolean.mean, boolean.weight) == (2, 2, 0, 0.5, 1.0)
    assert overall(scores(RUN)) == 0.5
    assert overall([]) is None
    assert overall(scores(EvalRun(RUN.eval_set, EVALUATORS, {}))) is None


def test_a_skipped_result_is_not_a_failed_one() -> None:
    skipped = result_of(status=Status.SKIPPED, score=None)
    run = replace(RUN, results={**RUN.results, ("b", "Bool"): skipped})
    assert [(one.rows, one.scored, one.failed, one.skipped) for one in scores(run)] == [(3, 1, 2, 0), (2, 1, 0, 1)]
    lines = str(eval_table(run)).splitlines()
    assert lines[2].split() == ["B", "failed", "skipped"]
    assert lines[-1].endswith("1 of 5 results were skipped and are left out of the means")


def test_a_run_without_any_score_is_not_a_success() -> None:
    item = EvalItem("a", "A", {}, {"Number": {}})
    skipped = {("a", "Number"): result_of(status=Status.SKIPPED, score=None)}
    runs = [
        EvalRun(EvalSet("s", "Set", (item,), ("Number",), {}), EVALUATORS[:1], {"a": Execution("a", {})}, results)
        for results in ({("a", "Number"): scored(0.0)}, skipped)
    ]
    assert [_exit_code(run, None) for run in runs] == [0, 1]


def test_the_report_has_the_raw_value_beside_the_score() -> None:
    first, second, third = as_report(RUN)["items"]
    assert [first["results"]["Bool"][name] for name in ("score", "raw")] == [1.0, True]
    assert second["results"]["Number"]["error"] == {
        "code": "user_exception", "message": "boom", "line": 3, "hint": None, "traceback": None,
    }  # fmt: skip
    assert (third["agent_error"], third["results"]) == ("agent boom", {"Number": None})


def test_uipaths_own_format_has_its_own_numbers() -> None:
    found = as_uipath(RUN, verbose=False)["evaluationSetResults"]
    dtos = {
        (item["evaluationName"], one["evaluatorId"]): one["result"]
        for item in found
        for one in item["evaluationRunResults"]
    }
    assert dtos == {
        ("A", "Number"): {"score": 0.5, "details": "d", "evaluationTime": 0.5},
        ("A", "Bool"): {"score": 100.0, "details": "d", "evaluationTime": 0.5},
        ("B", "Number"): {"score": 0.0, "details": "Exception thrown by evaluator: boom", "evaluationTime": 0.0015},
        ("B", "Bool"): {"score": 0.0, "details": "d", "evaluationTime": 0.5},
        ("C", "Number"): {"score": 0.0, "details": "The agent failed: agent boom", "evaluationTime": None},
    }
    assert found[0]["evaluationRunResults"][0]["evaluatorName"] == "Number Shown"
    assert found[0]["agentExecutionOutput"] is None
    told = as_uipath(RUN, verbose=True)["evaluationSetResults"]
    assert told[0]["agentExecutionOutput"]["result"] == {"output": {"x": 1}, "status": "successful", "error": None}
    assert told[2]["agentExecutionOutput"]["result"]["error"]["detail"] == "agent boom"


def test_an_error_that_the_evaluator_returned_keeps_its_details() -> None:
    run = EvalRun(RUN.eval_set, EVALUATORS, RUN.executions, {("a", "Number"): failed(details="why", score=0.0)})
    (first, *_) = as_uipath(run, verbose=False)["evaluationSetResults"]
    assert first["evaluationRunResults"][0]["result"]["details"] == "why"


def refused(root: Path, *ids: str) -> dict[str, str]:
    with pytest.raises(InvalidRequest) as caught:
        find_evaluators(find_layout(root), ids)
    return {one.field: f"{one.message} | {one.hint}" for one in caught.value.problems} or {"": caught.value.detail}


def test_evaluators_are_found_by_their_ids(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    found = find_evaluators(find_layout(root), ["PatternComparisonEvaluator", "MyCustomEvaluator"])
    assert [(one.id, one.entry, one.is_built_in) for one in found] == [
        ("PatternComparisonEvaluator", "PatternComparisonEvaluator", False),
        ("MyCustomEvaluator", "MyCustomEvaluator", False),
    ]
    assert found[1].config["evaluatorConfig"]["threshold"] == 0.8


def test_an_evaluator_that_is_not_there_is_answered_with_a_near_one(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    write(root / "evals" / "evaluators" / "broken.json", "{")
    found = refused(root, "MyCustomEvaluators", "Zzz")
    assert "did you mean MyCustomEvaluator?" in found["MyCustomEvaluators"]
    assert "broken.json is not JSON" in found["Zzz"]
    assert "choose from MyCustomEvaluator, PatternComparisonEvaluator" in found["Zzz"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"evaluatorSchema": "file://gone.py:A"}, "there is no file 'gone.py' in evals/evaluators/custom"),
        ({"evaluatorSchema": "file://../../../../outside.py:A"}, "there is no file '../../../../outside.py'"),
        ({"evaluatorSchema": "file://my_custom_evaluator.py"}, "not file://FILE.py:CLASS"),
        (
            {"evaluatorSchema": "", "evaluatorTypeId": "uipath-llm-judge"},
            "is of type 'uipath-llm-judge', which does not run here",
        ),
        ({"evaluatorConfig": 3}, "has no evaluatorConfig"),
    ],
)
def test_files_that_cannot_be_taken(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    root = make_project(tmp_path / "project")
    write(tmp_path / "outside.py", "")
    file = root / "evals" / "evaluators" / "my-custom-evaluator.json"
    write(file, json.dumps({**json.loads(file.read_text()), **change}))
    assert said in refused(root, "MyCustomEvaluator")["MyCustomEvaluator"]


def test_two_files_with_one_id_are_refused(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    write(root / "evals" / "evaluators" / "other.json", '{"id": "MyCustomEvaluator"}')
    assert "have the same id, 'MyCustomEvaluator'; change one" in refused(root, "MyCustomEvaluator")[""]


def test_an_evaluator_of_the_package_is_a_subclass_of_it(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    config = {"id": "EM", "evaluatorTypeId": "uipath-exact-match", "evaluatorConfig": {"name": "EM"}}
    write(root / "evals" / "evaluators" / "em.json", json.dumps(config))
    (found,) = find_evaluators(find_layout(root), ["EM"])
    assert (found.is_built_in, found.entry) == (True, "ExactMatchEvaluator")
    assert "import ExactMatchEvaluator as InThePackage" in str(found.code)
