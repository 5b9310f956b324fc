"""A host that has nothing to do uses almost no processor time: its processes sleep until somebody calls."""

import time
from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.engine.sandbox.linux.watchdog import child_pids, process_tree
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.jobs import JobStatus
from tests.keyed import eventually
from tests.server import PREWARMED, Server, new_home

SECONDS = 10
MOST_A_SECOND = 10  # maximum number of wake-ups per second of all processes of the host, including idle sandboxes


def wake_ups(pids: list[int]) -> int:
    """Return how many times the threads of these processes have begun to wait."""
    statuses = [path.read_text() for pid in pids for path in Path(f"/proc/{pid}/task").glob("*/status")]
    counts = [line for text in statuses for line in text.splitlines() if line.startswith("voluntary_ctxt_switches")]
    return sum(int(line.split()[1]) for line in counts)


def sleeps(host_pid: int) -> bool:
    pids = list(process_tree(host_pid))
    before = wake_ups(pids)
    time.sleep(SECONDS)
    return wake_ups(pids) - before < MOST_A_SECOND * SECONDS


@pytest.mark.long("it waits until a host is idle")
def test_an_idle_host_sleeps(tmp_path: Path) -> None:
    with Server(data_dir=new_home(tmp_path), log=tmp_path / "log", environment=PREWARMED) as server:
        assert server.client.get("/readyz").status_code == 200
        server.client.close()
        eventually(lambda: child_pids(server.process.pid) != [])
        # wait until the host has finished the work that follows its start
        eventually(lambda: sleeps(server.process.pid), within_s=200)


@pytest.mark.long
def test_the_process_that_starts_others_ends_without_jobs_and_is_back_for_the_next(tmp_path: Path) -> None:
    environment = {"EVALUATOR_HOST_IDLE_TTL_S": "1"}
    with Server(data_dir=new_home(tmp_path), log=tmp_path / "log", environment=environment) as server:
        eventually(lambda: child_pids(server.process.pid) == [])
        with Client(server.url) as client:
            evaluator = Evaluator("def evaluate(inputs, outputs, trace):\n    return 1.0\n")
            ended = client.jobs.wait(client.jobs.create([evaluator], [{"outputs": 1}]).id)
        assert (ended.status, ended.progress.done) == (JobStatus.COMPLETED, 1), server.log
        assert server.client.get("/readyz").status_code == 200
        assert "WARNING" not in server.log
