"""If a process of a host hangs, the host reports this, ends the process and goes on. No row is lost, and no call waits
forever.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from evaluator_host.client import Client
from evaluator_host.engine.sandbox.linux.watchdog import child_pids
from evaluator_host.types.evaluator import Evaluator, Isolation
from evaluator_host.types.jobs import JobStatus
from tests.jobs.test_job_process import SLOW, job_process
from tests.keyed import eventually
from tests.over_http import calling_processes
from tests.processes import is_running
from tests.server import Server, new_home

pytestmark = pytest.mark.long("each test waits a minute; unit/test_child_watch.py tests the same with shorter times")
ROWS = 3000
HANGS_S = 120  # seconds within which a hang is noticed and the process replaced, even on a busy machine


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Server]:
    environment = {"EVALUATOR_HOST_WORKERS": "2"}
    with Server(data_dir=new_home(tmp_path), log=tmp_path / "log", environment=environment) as server:
        eventually(lambda: len(calling_processes(server)) == 1, within_s=60)
        yield server


def asked(host: Server, path: str) -> httpx.Response:
    """Connect until a process that does not hang answers, and return the answer; each connection may reach another
    process.
    """
    while True:
        try:
            return httpx.get(f"{host.url}{path}", timeout=4)  # seconds; /metrics itself waits less long
        except httpx.TransportError:
            continue


@pytest.mark.engine
def test_processes_that_hang_are_named_and_replaced(host: Server) -> None:
    calls = calling_processes(host)
    with Client(host.url) as client:
        client.datasets.upload("rows", ({"n": n} for n in range(ROWS)))
        job = client.jobs.create([Evaluator(SLOW)], "rows", isolation=Isolation.BATCH)
        eventually(lambda: client.jobs.get(job.id).progress.done > 20, within_s=60)
        jobs = job_process(host.process.pid)
    assert jobs is not None
    for pid in (jobs, *calls):
        os.kill(pid, signal.SIGSTOP)

    def said() -> bool:
        answer = asked(host, "/readyz")
        named = "process 1 of calls, the process of jobs"
        return answer.status_code == 503 and named in answer.json()["detail"]

    eventually(said, within_s=HANGS_S)
    assert asked(host, f"/v1/jobs/{job.id}").json()["progress"]["rows_per_s"] is None
    assert "evaluator_host_silent_processes 2.0" in asked(host, "/metrics").text
    eventually(lambda: calling_processes(host) not in ([], calls), within_s=HANGS_S)
    eventually(lambda: job_process(host.process.pid) not in (None, jobs), within_s=HANGS_S)
    eventually(lambda: asked(host, "/readyz").status_code == 200)
    assert host.log.count("hangs and is killed") == 2, host.log
    with Client(host.url) as client:
        ended = client.jobs.wait(job.id)
        assert (ended.status, ended.progress.done, ended.progress.failed) == (JobStatus.COMPLETED, ROWS, 0), host.log
        assert ended.progress.rows_per_s is not None
    calls = calling_processes(host)
    forker = next(pid for pid in child_pids(host.process.pid) if calls[0] in child_pids(pid))
    os.kill(forker, signal.SIGSTOP)
    eventually(
        lambda: "the process that starts the host's other processes" in asked(host, "/readyz").text, within_s=HANGS_S
    )
    eventually(lambda: not is_running(forker), within_s=HANGS_S)
    eventually(lambda: asked(host, "/readyz").status_code == 200)
    assert is_running(calls[0]), "the processes that do not hang must go on"
    os.kill(calls[0], signal.SIGKILL)
    eventually(lambda: calling_processes(host) not in ([], calls), within_s=HANGS_S)
    eventually(lambda: asked(host, "/readyz").status_code == 200)
    assert host.stop() == 0
    assert "Traceback" not in host.log
