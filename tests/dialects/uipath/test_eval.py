"""A UiPath project on the command line: its evaluators are registered, and run over its eval sets in this process and
as a job on a host.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings
from tests import forked
from tests.conftest import DATA_DIR
from tests.dialects.uipath.eval_sets import DOCUMENTED
from tests.dialects.uipath.evaluators import CUSTOM, FIXTURES, PATTERN_SPAN
from tests.dialects.uipath.projects import PATTERNS, make_project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("project"))


def command(project: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = forked.run(["uipath", *arguments, "--data-dir", str(DATA_DIR)], cwd=project, timeout=200)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.mark.long
def test_register_writes_what_uipath_writes(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    folder = root / "evals" / "evaluators"
    (folder / "my-custom-evaluator.json").unlink()
    done = command(root, "register", "my_custom_evaluator.py")
    assert done.stdout == (
        "MyCustomEvaluator: evals/evaluators/my-custom-evaluator.json, "
        "evals/evaluators/custom/types/my-custom-evaluator-types.json\n"
    )
    made = [folder / "my-custom-evaluator.json", folder / "custom" / "types" / "my-custom-evaluator-types.json"]
    for file in made:
        assert file.read_bytes() == (FIXTURES / file.name).read_bytes()


def test_the_agent_runs_and_one_failing_test_case_takes_nothing_from_the_others(project: Path) -> None:
    done = command(project, "eval", "patterns", "--output-file", "out.json", "--verbose", code=1)
    assert done.stdout.splitlines() == [
        "TEST CASE  PatternComparisonEvaluator  MyCustomEvaluator",
        "Test 1     0.5                         1",
        "Test 2     1                           -",
        "Test 3     failed                      -",
        "mean       0.75                        1",
        "score 0.8125, 1 of 4 results failed and are left out of the means",
    ]
    assert "Test 3: RuntimeError: agent boom (main.py:22 in main)" in done.stderr
    assert "note: PatternComparisonEvaluator: " in done.stderr
    assert "expectedOuput" in done.stderr, "a key that the criteria do not have must be reported"
    written = json.loads((project / "out.json").read_text())
    assert written["evaluationSetName"] == "Pattern Set"
    first, _, third = written["evaluationSetResults"]
    recorded = json.loads((FIXTURES / "out.json").read_text())["evaluationSetResults"][0]
    assert first.keys() == recorded.keys()
    assert first["evaluationRunResults"][0].keys() == recorded["evaluationRunResults"][0].keys()
    assert first["evaluationRunResults"][0]["result"]["score"] == 0.5
    agent = first["agentExecutionOutput"]
    assert agent["result"]["output"] == {"answer": "Hello Rome"}
    (span,) = agent["trace"]["spans"]
    golden = recorded["agentExecutionOutput"]["trace"]["spans"][0]
    assert (span.keys(), span["name"]) == (golden.keys(), "DataProcessingTool")
    assert span["attributes"]["input.value"] == golden["attributes"]["input.value"]
    assert third["evaluationRunResults"][0]["result"]["score"] == 0.0
    assert third["agentExecutionOutput"]["result"]["status"] == "faulted"


@pytest.mark.long
def test_recorded_executions_of_uipaths_own_command_line(project: Path) -> None:
    recorded = [f"--executions={FIXTURES / name}" for name in ("out.json", "traces.jsonl")]
    only = ["--item", "test-1", "--item", "test-2"]
    done = command(project, "eval", "patterns", *recorded, *only, "--json", "--fail-under", "0.9", code=1)
    told = json.loads(done.stdout)
    means = {one["id"]: (one["mean"], one["weight"], one["failed"]) for one in told["evaluators"]}
    assert means == {"PatternComparisonEvaluator": (0.75, 3.0, 0), "MyCustomEvaluator": (0.0, 1.0, 0)}
    assert told["score"] == pytest.approx((0.75 * 3 + 0.0) / 4)
    assert "the mean score 0.5625 is under --fail-under 0.9, so the exit code is 1" in done.stderr
    assert told["items"][0]["results"]["PatternComparisonEvaluator"]["raw"] == 0.5
    assert "the execution of 'Test 3 agent fails' is not used" in " ".join(told["notes"])


@pytest.mark.long
def test_on_a_host_it_is_a_job_that_compares_like_any_other(project: Path, url: str) -> None:
    first, second = (
        json.loads(command(project, "eval", "patterns", "--url", url, "--json", code=1).stdout) for _ in range(2)
    )
    assert first["score"] == 0.8125
    assert [one["agent_error"] is None for one in first["items"]] == [True, True, False]
    with Client(url) as client:
        assert client.jobs.get(second["job"]).evaluators == ("PatternComparisonEvaluator", "MyCustomEvaluator")
        statistics = client.jobs.results(second["job"]).evaluators
        assert [(one.scored, one.skipped, one.failed) for one in statistics] == [(2, 0, 1), (1, 2, 0)]
        assert [(one.code, one.count) for one in statistics[0].errors] == [("target_failed", 1)]
        compared = client.jobs.compare(first["job"], second["job"])
        assert [one.metrics[0].n for one in compared] == [2, 1]


@pytest.mark.long
def test_both_dialects_over_the_api_by_stored_evaluators(url: str, tmp_path: Path) -> None:
    config = json.loads((FIXTURES / "my-custom-evaluator.json").read_text())
    stored = Evaluator(CUSTOM, contract=Contract("uipath"), settings=EvaluatorSettings(config=config))
    executions: list[dict[str, Any]] = [
        {"id": "test-1", "output": {"said": "VALUE1"}, "spans": [PATTERN_SPAN]},
        {"id": "test-2", "output": {"said": "x"}},
        {"id": "test-3", "error": "boom"},
    ]
    with Client(url) as client:
        client.evaluators.create("MyCustomEvaluator", stored)
        documented = client.jobs.create([], {"eval_set": DOCUMENTED, "executions": executions[:1]})
        assert documented.evaluators == ("MyCustomEvaluator@1",)
        file = tmp_path / "patterns.json"
        file.write_text(json.dumps({"eval_set": PATTERNS, "executions": executions}))
        client.datasets.upload("patterns", file)
        real = client.jobs.create(["MyCustomEvaluator", stored], "patterns")
        for job, counts in ((documented, [(1, 0, 0)]), (real, [(1, 2, 0), (1, 2, 0)])):
            client.jobs.wait(job.id)
            statistics = client.jobs.results(job.id).evaluators
            assert [(one.scored, one.skipped, one.failed) for one in statistics] == counts
        assert client.jobs.results(documented.id).evaluators[0].metrics[0].mean == 0.5


def test_a_project_that_cannot_be_run_says_why(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    (root / "uipath.json").unlink()
    assert "give recorded executions with --executions FILE" in command(root, "eval", "patterns", code=2).stderr
    eval_set = root / "evals" / "eval_sets" / "patterns.json"
    eval_set.write_text('{"evaluations": [{"id": "a"}]}')
    assert "$.evaluations[0]: the criteria are missing" in command(root, "eval", "patterns", code=2).stderr
    eval_set.write_text('{"evaluations": [{"id": "a", "inputs": {}, "evaluationCriterias": {}}]}')
    assert "patterns.json does not name an evaluator" in command(root, "eval", "patterns", code=2).stderr
