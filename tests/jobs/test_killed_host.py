"""A host is killed in the middle of 1,000 rows: the next host finishes the job, and each row is scored once."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator, Isolation, Limits
from evaluator_host.types.jobs import JobStatus
from tests.server import Server, new_home

ROWS = 1_000
FAILING = set(range(7, ROWS, 250))
# each run of a row returns a different number, so that a repeated row is noticed
CODE = """
import random, time

def evaluate(inputs, outputs, trace):
    time.sleep(0.002)
    assert inputs["n"] % 250 != 7, "one of the rows that fail"
    return {"score": outputs / 1000, "nonce": random.random()}
"""

# program that runs a host's jobs in a separate process; the host is at the other end of a socket
JOBS = """
import socket, sys
from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.server.workers import run_jobs
run_jobs(socket.socket(fileno=int(sys.argv[1])), Settings(), SandboxChoice.BUBBLEWRAP, False)
"""

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


def host(home: Path, database_url: str, log: str) -> Server:
    return Server(data_dir=home, log=home.parent / log, environment={"EVALUATOR_HOST_DATABASE_URL": database_url})


def kept(database_url: str) -> list[tuple[Any, ...]]:
    """Return the content of the table of results, from either kind of database."""
    return asked(database_url, "SELECT row, score, metrics, result FROM results ORDER BY row")


def asked(database_url: str, query: LiteralString) -> list[tuple[Any, ...]]:
    if not database_url.startswith("sqlite"):
        with psycopg.connect(database_url) as server:
            return server.execute(query).fetchall()
    file = sqlite3.connect(database_url.removeprefix("sqlite:///"))
    try:
        return file.execute(query).fetchall()
    finally:
        file.close()


def test_a_job_outlives_a_killed_host_and_no_row_is_scored_twice(database_url: str, tmp_path: Path) -> None:
    home = new_home(tmp_path)
    first = host(home, database_url, "first").wait_until_ready()
    with Client(first.url) as client:
        client.datasets.upload("numbers", ({"n": n, "outputs": n} for n in range(ROWS)))
        job = client.jobs.create([Evaluator(CODE)], "numbers", isolation=Isolation.BATCH)
        until = time.monotonic() + 100
        while client.jobs.get(job.id).progress.done < ROWS // 4:
            assert time.monotonic() < until
            time.sleep(0.02)
    first.kill()
    before = kept(database_url)
    assert ROWS // 4 <= len(before) < ROWS

    with host(home, database_url, "second") as second, Client(second.url) as client:
        ended = client.jobs.wait(job.id)
        assert (ended.status, ended.progress.done, ended.progress.failed) == (
            JobStatus.COMPLETED,
            ROWS,
            len(FAILING),
        )
        client.jobs.download(job.id, tmp_path / "rows.jsonl")
        (statistics,) = client.jobs.results(job.id).evaluators
    assert (statistics.rows, statistics.scored, statistics.failed) == (ROWS, ROWS - len(FAILING), len(FAILING))
    after = kept(database_url)
    assert [row for row, *_ in after] == list(range(ROWS))
    assert set(before) <= set(after)
    assert {row for row, score, *_ in after if score is None} == FAILING
    assert all(score == row / ROWS for row, score, *_ in after if row not in FAILING)
    with (tmp_path / "rows.jsonl").open() as lines:
        assert [json.loads(line)["index"] for line in lines] == list(range(ROWS))


@pytest.mark.long
def test_a_job_that_two_hosts_did_not_survive_is_failed_with_that_reason(tmp_path: Path) -> None:
    home, url = new_home(tmp_path), f"sqlite:///{tmp_path / 'host.db'}"
    slow = Evaluator(
        "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(50)\n", limits=Limits(timeout_s=60)
    )
    for number in range(2):
        host_ = host(home, url, f"dying-{number}").wait_until_ready()
        with Client(host_.url) as client:
            if number == 0:
                job = client.jobs.create([slow], [{"outputs": 1}])
            until = time.monotonic() + 60
            while asked(url, "SELECT attempts FROM jobs") != [(number + 1,)]:
                assert time.monotonic() < until
                time.sleep(0.02)
        host_.kill()
    with host(home, url, "third") as third, Client(third.url) as client:
        ended = client.jobs.wait(job.id)
        assert ended.status is JobStatus.FAILED
        assert ended.error is not None
        assert ended.error.code == "host_ended"
        assert job.id in third.log


@pytest.mark.long
def test_a_process_of_jobs_gives_no_job_back_when_its_host_is_killed(tmp_path: Path) -> None:
    home, url = new_home(tmp_path), f"sqlite:///{tmp_path / 'host.db'}"
    slow = Evaluator("import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(20)\n")
    with host(home, url, "first") as first, Client(first.url) as client:
        client.jobs.create([slow], [{"outputs": 1}])
        while asked(url, "SELECT attempts FROM jobs") != [(1,)]:
            time.sleep(0.02)
        first.kill()
    ours, theirs = socket.socketpair()
    environment = {**os.environ, "EVALUATOR_HOST_DATA_DIR": str(home), "EVALUATOR_HOST_DATABASE_URL": url}
    with theirs:
        number = theirs.fileno()
        process = subprocess.Popen([sys.executable, "-c", JOBS, str(number)], pass_fds=[number], env=environment)
    while asked(url, "SELECT attempts FROM jobs") != [(2,)]:
        assert process.poll() is None
        time.sleep(0.02)
    ours.close()
    assert process.wait(30) == 1
    assert asked(url, "SELECT status, attempts FROM jobs") == [("running", 2)]
