"""A host's jobs run in a separate process. If the process is killed, the host starts another, and no row is lost.

The process ends with the host.
"""

import asyncio
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.engine.sandbox.linux.watchdog import child_pids
from evaluator_host.engine.system.forker import Channel
from evaluator_host.server import workers
from evaluator_host.types.evaluator import Evaluator, Isolation
from evaluator_host.types.jobs import JobStatus
from tests.conftest import DATA_DIR
from tests.keyed import eventually
from tests.processes import is_running
from tests.server import Server, new_home

SLOW = "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(0.02)\n    return float(inputs['n'])\n"
ROWS = 300


def job_process(host: int) -> int | None:
    """Return the process that runs a host's jobs, or None.

    It is a grandchild of the host with a higher nice value than the host.
    """
    for forker in child_pids(host):
        for pid in child_pids(forker):
            if os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, host):
                return pid
    return None


@pytest.mark.engine
@pytest.mark.long
def test_a_killed_process_of_jobs_loses_no_row(tmp_path: Path) -> None:
    with Server(data_dir=new_home(tmp_path), log=tmp_path / "log") as server, Client(server.url) as client:
        assert job_process(server.process.pid) is None, "there must be no process for jobs before the first job"
        client.datasets.upload("rows", ({"n": n} for n in range(ROWS)))
        job = client.jobs.create([Evaluator(SLOW)], "rows", isolation=Isolation.BATCH)
        while not 20 < client.jobs.get(job.id).progress.done < ROWS - 50:
            time.sleep(0.02)
        first = job_process(server.process.pid)
        assert first is not None
        os.kill(first, signal.SIGKILL)
        assert server.client.get("/readyz").status_code == 200
        ended = client.jobs.wait(job.id)
        assert (ended.status, ended.progress.done, ended.progress.failed) == (JobStatus.COMPLETED, ROWS, 0), server.log
        (statistics,) = client.jobs.results(job.id).evaluators
        assert statistics.scored == ROWS
        second = job_process(server.process.pid)
        assert second not in (None, first)
        metrics = server.client.get("/metrics").text
        counted = next(line for line in metrics.splitlines() if line.startswith("evaluator_host_rows_total{"))
        assert ROWS / 2 < float(counted.split()[-1]) <= ROWS + 64, (
            "each row must be counted once, except a few that the first process had not reported"
        )
        assert "evaluator_host_task_restarts 1.0" in metrics
        assert "a process for jobs was lost" in server.log
        server.kill()
        until = time.monotonic() + 10
        while is_running(second or 0) and time.monotonic() < until:
            time.sleep(0.02)
        assert not is_running(second or 0), "the process must end with its host"


@pytest.mark.long
@pytest.mark.engine
def test_a_process_of_jobs_that_cannot_open_the_database_is_started_again_later(tmp_path: Path) -> None:
    home = new_home(tmp_path)
    database = home / "host.db"
    environment = {"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{database}"}
    with Server(data_dir=home, log=tmp_path / "log", environment=environment) as server, Client(server.url) as client:
        client.datasets.upload("rows", ({"n": n} for n in range(ROWS)))
        job = client.jobs.create([Evaluator(SLOW)], "rows", isolation=Isolation.BATCH)
        while (first := job_process(server.process.pid)) is None or not client.jobs.get(job.id).progress.done:
            time.sleep(0.02)
        subprocess.run(["chattr", "+i", database], check=True)
        try:
            os.kill(first, signal.SIGKILL)
            eventually(lambda: "a process for jobs could not work, and a new one starts in" in server.log, within_s=60)
        finally:
            subprocess.run(["chattr", "-i", database], check=True)
        ended = client.jobs.wait(job.id)
        assert (ended.status, ended.progress.done, ended.progress.failed) == (JobStatus.COMPLETED, ROWS, 0), server.log
        assert server.log.count("ERROR") == 1, "the log must have one error: the first process was lost"


async def test_the_process_of_jobs_ends_when_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_IDLE_S", 0.2)
    monkeypatch.setattr(workers, "_CHORES_S", 0.05)
    host, theirs = socket.socketpair()
    heard = []

    async def answer(name: str, args: tuple[bytes, ...]) -> None:
        heard.append((name, args))

    settings = Settings(data_dir=DATA_DIR, database_url=f"sqlite:///{tmp_path / 'host.db'}", idle_sandboxes=0)
    channel = await Channel(answer).over(host)
    async with asyncio.timeout(30):
        await asyncio.gather(workers._run_jobs(theirs, settings, SandboxChoice.BUBBLEWRAP), channel.ended.wait())
    ((name, (metrics,)),) = heard
    assert name == "leave"
    assert b"evaluator_host_sandboxes" in metrics
