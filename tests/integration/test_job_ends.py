"""An operator sees how many jobs ended in which status, and why each job failed, but sees no code and no rows."""

from pathlib import Path

from tests.keyed import eventually
from tests.server import Server, new_home

RAISES = "def evaluate(inputs, outputs, trace):\n    raise ValueError('told ' + outputs)\n"
SCORES = "def evaluate(inputs, outputs, trace):\n    return 1.0\n"


def job_of(server: Server, code: str, ends: str) -> str:
    rows = [{"inputs": {}, "outputs": "of-a-row"}] * 3
    body = {"evaluators": [{"code": code}], "dataset": {"rows": rows}, "config": {"max_failures": 0}}
    job: str = server.client.post("/v1/jobs", json=body).raise_for_status().json()["id"]
    eventually(lambda: server.client.get(f"/v1/jobs/{job}").json()["status"] == ends, within_s=60)
    return job


def jobs_counted(server: Server) -> dict[str, float]:
    start = "evaluator_host_jobs_total{status="
    lines = [one for one in server.client.get("/metrics").text.splitlines() if one.startswith(start)]
    return {status.strip('"'): float(count) for status, count in (one[len(start) :].split("} ") for one in lines)}


def test_ended_jobs_are_counted_and_a_failed_one_is_logged_with_its_reason(tmp_path: Path) -> None:
    with Server(data_dir=new_home(tmp_path), log=tmp_path / "log") as server:
        assert jobs_counted(server) == {"completed": 0, "failed": 0, "cancelled": 0, "paused": 0}
        failed = job_of(server, RAISES, "failed")
        job_of(server, SCORES, "completed")
        counts = {"completed": 1, "failed": 1, "cancelled": 0, "paused": 0}
        eventually(lambda: jobs_counted(server) == counts, within_s=20)
        [line] = [one for one in server.log.splitlines() if failed in one]
        assert f"job {failed} of workspace " in line
        assert " failed: max_failures, first in row " in line
        assert "of-a-row" not in server.log
        assert "told" not in server.log
