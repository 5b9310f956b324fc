"""Separate pytest runs use the pytest plugin as its users do: the example on its page, failures, xdist, and a host."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import DATA_DIR
from tests.docs.blocks import ROOT
from tests.server import Server, new_home

pytestmark = pytest.mark.engine
EXACT = "def evaluate(inputs, outputs, trace):\n    return {'score': float(outputs == inputs['correct_answer']), 'reason': 'compared'}\n"


def page_example() -> str:
    text = (ROOT / "docs" / "integrations.md").read_text()
    found = re.search(r"```python\n(from evaluator_host\.integrations\.pytest_plugin .*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def run(folder: Path, *arguments: str, test: str | None = None) -> tuple[int, str]:
    (folder / "exact.py").write_text(EXACT)
    (folder / "test_answers.py").write_text(page_example() if test is None else test)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", *arguments],
        cwd=folder, env={**kept, "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR), "EVALUATOR_HOST_SANDBOX": "bubblewrap"},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.long
def test_the_example_of_its_page(tmp_path: Path) -> None:
    code, printed = run(tmp_path, "--evaluator-report", "report.json", "--junit-xml", "junit.xml")
    assert code == 0, printed
    assert "exact.py: 3 rows, mean 0.6667, lowest 0" in printed
    scores = json.loads((tmp_path / "report.json").read_text())["scores"]
    assert [one["score"] for one in scores] == [1.0, 1.0, 0.0]
    assert "exact.py" in (tmp_path / "junit.xml").read_text()


@pytest.mark.long
def test_scores_come_together_from_several_processes(tmp_path: Path) -> None:
    code, printed = run(tmp_path, "-n", "2")
    assert code == 0, printed
    assert "exact.py: 3 rows, mean 0.6667, lowest 0" in printed


FAILING = """
import pytest
from evaluator_host.integrations.pytest_plugin import evaluator_fixture
exact = evaluator_fixture("exact.py", threshold=0.5)
row = {"inputs": {"correct_answer": 1}, "outputs": 2}
def test_low(exact): exact.assert_score(**row)
def test_high(exact): exact.assert_score(**row, at_most=-1)
def test_equal(exact): exact.assert_score(**row, equal=1)
def test_passed(exact): exact.assert_score(**row, passed=True)
def test_not_passed(exact): exact.assert_score(inputs={"correct_answer": 1}, outputs=1, passed=False)
def test_no_verdict(make_evaluator): make_evaluator("same.py").assert_score(outputs=1.0, passed=False)
def test_no_score(exact): exact.assert_score(outputs=2)
def test_mean(exact): exact.assert_mean([row, {"inputs": {"correct_answer": 1}, "outputs": 1}], at_least=0.9)
def test_failed_rows(exact): exact.assert_mean([row, {}], at_least=0)
def test_rounding(make_evaluator):
    same = make_evaluator("same.py")
    same.assert_mean([{"outputs": 0.7}] * 3, at_least=0.7)
    same.assert_score(outputs=1 - 0.9, at_least=0.1)
    same.assert_score(outputs=0.1 + 0.2, at_most=0.3)
def test_one_may_fail(exact): exact.assert_mean([row, {}], at_least=0, failures=1)
def test_near_bound(make_evaluator): make_evaluator("same.py").assert_mean([{"outputs": 0.799996}], at_least=0.8)
def test_nan_bound(exact): exact.assert_score(**row, at_most=float("nan"))
def test_nan_equal(exact): exact.assert_score(**row, equal=float("nan"))
def test_no_file(make_evaluator): make_evaluator("nowhere")
"""


def test_a_test_fails_with_the_score_and_the_reason(tmp_path: Path) -> None:
    (tmp_path / "same.py").write_text("def evaluate(inputs, outputs, trace):\n    return outputs\n")
    code, printed = run(tmp_path, "--tb=short", test=FAILING)
    assert code == 1
    for told in (
        "exact.py: the score is 0.0, below 0.5: compared",
        "exact.py: the score is 0.0, above -1: compared",
        "exact.py: the score is 0.0, not 1: compared",
        "exact.py: the score is 0.0, and the row did not pass: compared",
        "exact.py: the score is 1.0, and the row passed: compared",
        "exact.py: there is no score, because the row failed: user_exception: 'correct_answer' (line 2)",
        "exact.py: the mean of 2 rows is 0.5, below 0.9; the lowest is row 0 with 0.0",
        "exact.py: 1 of 2 rows failed, first row 1: 'correct_answer'",
        '\n  inputs: {"correct_answer": ',
        "\n  outputs: ",
        "\n  hint: this row has no inputs",
        "nowhere; for a stored evaluator of that name give --evaluator-host-url",
        "same.py: the score is 1.0, and the row has no verdict",
        "same.py: the mean of 1 row is 0.799996, below 0.8",
        "exact.py: the score is 0.0, above nan: compared",
        "exact.py: the score is 0.0, not nan: compared",
        "13 failed, 2 passed",
    ):
        assert told in printed, (told, printed)


@pytest.mark.long
def test_on_a_host_with_a_stored_evaluator(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    with Server(log=tmp_path / "log", data_dir=new_home(tmp_path)) as server:
        server.client.post("/v1/evaluators", json={"name": "exact", "code": EXACT}).raise_for_status()
        stored = page_example().replace('"exact.py"', '"exact@1"')
        code, printed = run(tmp_path / "tests", "--evaluator-host-url", server.url, test=stored)
    assert code == 0, printed
    assert "exact@1: 3 rows" in printed


def test_a_run_without_evaluators_imports_no_host(tmp_path: Path) -> None:
    test = "import sys\ndef test_it():\n    assert not [name for name in sys.modules if name.startswith('evaluator_host.') and 'integrations' not in name]\n"
    code, printed = run(tmp_path, test=test)
    assert code == 0, printed
    assert "scores of evaluators" not in printed
