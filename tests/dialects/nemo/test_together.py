"""Scores over all rows of a job or file are computed once, even if a process is killed during the computation, and
every report contains them.
"""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.outcome import Status
from tests import forked
from tests.conftest import DATA_DIR
from tests.dialects.nemo.metrics import metric
from tests.server import FORKED, Server, new_home

pytestmark = pytest.mark.engine

SPEC = 'MetricOutputSpec.continuous_score("p")'
SUM = (
    metric('return MetricResult(outputs=[MetricOutput(name="p", value=float(text))])', SPEC)
    + """
    def corpus_output_spec(self):
        return [MetricOutputSpec.continuous_score("sum"), MetricOutputSpec.discrete_score("places")]

    async def compute_corpus_scores(self, inputs):
        WAIT
        numbers = [float(one.candidate.output_text) for one in inputs]
        if len(numbers) == 2:
            raise ValueError("too few")
        found = {"sum": sum(numbers), "places": sum(one.row.row_index for one in inputs)}
        return MetricResult(outputs=[MetricOutput(name=name, value=value) for name, value in found.items()])
"""
)
QUICK, SLOW = SUM.replace("WAIT", ""), SUM.replace("WAIT", "import time; time.sleep(2)")
ROWS = [{"outputs": text} for text in ("1", "no number", "2.5", "4")]


def cli(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR), "EVALUATOR_HOST_SANDBOX": "bubblewrap"}
    return forked.run(arguments, cwd=folder, env=environment, timeout=100)


def test_a_job_says_what_the_rows_that_scored_have_together(server: Server, tmp_path: Path) -> None:
    with Client(server.url) as client:
        job = client.jobs.wait(
            client.jobs.create([Evaluator(QUICK), Evaluator("def evaluate(i, o, t): return 1")], ROWS).id
        )
        assert (job.progress.done, job.progress.failed) == (8, 1)
        found, other = client.jobs.results(job.id).evaluators
    assert found.together is not None
    assert (found.together.status, found.together.metrics) == (Status.SCORED, {"sum": 7.5, "places": 5})
    assert other.together is None
    shown = cli("jobs", "results", job.id, "--url", server.url, folder=tmp_path)
    assert "together: sum 7.5, places 5" in shown.stdout


def test_a_failure_over_all_rows_does_not_fail_the_job(server: Server) -> None:
    with Client(server.url) as client:
        job = client.jobs.wait(client.jobs.create([Evaluator(QUICK)], ROWS[:1] + ROWS[2:3]).id)
        (found,) = client.jobs.results(job.id).evaluators
    assert (job.status.value, job.progress.failed) == ("completed", 0)
    assert found.together is not None
    assert found.together.error is not None
    assert (found.together.error.code.value, found.together.error.message) == ("user_exception", "too few")


@pytest.mark.long
def test_a_killed_host_leaves_the_rows_together_to_the_next_one(tmp_path: Path) -> None:
    home = new_home(tmp_path)
    environment = FORKED | {"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{home / 'own.db'}"}
    first = Server(data_dir=home, log=tmp_path / "first", environment=environment).wait_until_ready()
    with Client(first.url) as client:
        job = client.jobs.create([Evaluator(SLOW)], ROWS)
        until = time.monotonic() + 60
        while (seen := client.jobs.get(job.id)).progress.done < len(ROWS):
            assert time.monotonic() < until
            time.sleep(0.02)
        assert seen.status.value == "running", "the job must still score the rows together"
        before = [row.result for row in client.jobs.rows(job.id)]
    first.kill()
    with (
        Server(data_dir=home, log=tmp_path / "second", environment=environment) as second,
        Client(second.url) as client,
    ):
        assert client.jobs.wait(job.id).status.value == "completed"
        (found,) = client.jobs.results(job.id).evaluators
        assert [row.result for row in client.jobs.rows(job.id)] == before
    assert found.together is not None
    assert found.together.metrics == {"sum": 7.5, "places": 5}


@pytest.mark.long
def test_a_data_file_is_scored_together_too(server: Server, tmp_path: Path) -> None:
    (tmp_path / "sum.py").write_text(QUICK)
    lines = [json.dumps(row) for row in ROWS]
    (tmp_path / "rows.jsonl").write_text("\n".join([*lines[:2], "no JSON", *lines[2:]]))
    here = cli("run", "sum.py", "--data", "rows.jsonl", "--json", folder=tmp_path)
    summary = json.loads(here.stdout)
    assert (summary["scored"], summary["failed"], summary["bad_lines"]) == (3, 1, 1)
    assert summary["together"]["metrics"] == {"sum": 7.5, "places": 5}
    assert here.stderr.count("rows.jsonl:3") == 1

    there = cli("run", "sum.py", "--data", "rows.jsonl", "--url", server.url, folder=tmp_path)
    assert "sum 7.5, places 5" in there.stdout
    (tmp_path / "many.jsonl").write_text("\n".join(lines[:1] * 201))
    many = cli("run", "sum.py", "--data", "many.jsonl", "--url", server.url, folder=tmp_path)
    assert "as a job" in many.stderr
    assert (many.returncode, "sum" in many.stdout) == (0, False)
