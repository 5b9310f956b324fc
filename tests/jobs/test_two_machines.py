"""Two hosts share one PostgreSQL server and have names as on two machines: neither takes a job from the other, and each
row is scored once.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator, Isolation
from evaluator_host.types.jobs import JobReport, JobStatus
from tests.databases import Databases
from tests.jobs.test_killed_host import asked, kept
from tests.server import Server, new_home

ROWS = 900
CODE = """
import random, time

def evaluate(inputs, outputs, trace):
    time.sleep(0.004)
    return {"score": outputs / 900, "nonce": random.random()}
"""
# gives a host another boot id, by which machines are distinguished; the number of the first pid namespace is the same
# on all machines
ON_A_MACHINE = """
from evaluator_host.platform.jobs import scheduler
from evaluator_host.engine.sandbox.linux import instance
instance._boot = lambda: {boot!r}
scheduler.SILENT_S, scheduler.LOOK_EVERY_S = 2.0, 0.2
"""
ONE, OTHER = "1" * 12, "2" * 12  # ids of two machines

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("this starts four hosts in turn; test_killed_host.py kills a host on one machine"),
    pytest.mark.timeout(300),
]


def host(boot: str, home: Path, database_url: str) -> Server:
    log = home.parent / f"{boot}-{time.monotonic_ns()}.log"
    environment = {"EVALUATOR_HOST_DATABASE_URL": database_url, "EVALUATOR_HOST_MAX_SANDBOXES_PER_EVALUATOR": "2"}
    return Server(data_dir=home, log=log, environment=environment, program=ON_A_MACHINE.format(boot=boot))


def start_job(client: Client) -> JobReport:
    client.datasets.upload("numbers", ({"n": n, "outputs": n} for n in range(ROWS)))
    return client.jobs.create([Evaluator(CODE)], "numbers", isolation=Isolation.BATCH)


def wait_for(found: Callable[[], bool], message: str) -> None:
    until = time.monotonic() + 100
    while not found():
        assert time.monotonic() < until, message
        time.sleep(0.02)


def owner(database_url: str) -> str:
    return str(asked(database_url, "SELECT owner FROM jobs ORDER BY created_at LIMIT 1")[0][0])


def rows_done(database_url: str) -> int:
    return int(asked(database_url, "SELECT count(*) FROM results")[0][0])


def assert_each_row_once(database_url: str, before: list[tuple[object, ...]]) -> None:
    after = kept(database_url)
    assert [row for row, *_ in after] == list(range(ROWS))
    assert all(score == row / ROWS for row, score, *_ in after)
    assert set(before) <= set(after), "no stored row may be scored again"


def test_hosts_with_one_data_directory_succeed_each_other_and_steal_nothing(
    databases: Databases, tmp_path: Path
) -> None:
    url, home = databases.make("postgresql"), new_home(tmp_path)
    first, second = host(ONE, home, url).wait_until_ready(), host(OTHER, home, url).wait_until_ready()
    with Client(first.url) as client:
        job = start_job(client)
        wait_for(lambda: rows_done(url) > 0, "no row is scored")
        owners = {owner(url)}
        while rows_done(url) < ROWS // 5:
            owners.add(owner(url))
            time.sleep(0.02)
    assert len(owners) == 1, "no host may take the job of another host that lives"
    killed, heir = (first, second) if f"-{ONE}-" in owners.pop() else (second, first)
    killed.kill()
    before = kept(url)
    wait_for(lambda: rows_done(url) > len(before) + ROWS // 5, "nobody goes on with the job of a machine that is gone")
    heir.kill()
    before = kept(url)
    assert len(before) < ROWS
    with host(ONE, home, url), host(OTHER, home, url) as last, Client(last.url) as client:
        ended = client.jobs.wait(job.id)
        assert (ended.status, ended.progress.done, ended.progress.failed) == (JobStatus.COMPLETED, ROWS, 0)
    assert_each_row_once(url, before)


def test_a_host_without_the_rows_leaves_their_jobs_to_the_host_that_has_them(
    databases: Databases, tmp_path: Path
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    url, home = databases.make("postgresql"), new_home(tmp_path / "one")
    with host(OTHER, new_home(tmp_path / "other"), url) as second, Client(second.url) as client:
        first = host(ONE, home, url).wait_until_ready()
        with Client(first.url) as client_of_first:
            job = start_job(client_of_first)
            wait_for(lambda: rows_done(url) > ROWS // 5, "no row is scored")
        assert f"-{ONE}-" in owner(url)
        answer = second.client.get("/v1/datasets/numbers/rows")
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        assert "this host's data directory does not contain" in answer.json()["detail"]
        first.kill()
        before = kept(url)
        queued = client.jobs.create([Evaluator(CODE)], "numbers", isolation=Isolation.BATCH)
        small = client.jobs.create([Evaluator(CODE)], [{"outputs": 900}])
        assert client.jobs.wait(small.id).status is JobStatus.COMPLETED, (
            "a host must not let a job that it can run wait behind a job that it cannot run"
        )
        time.sleep(3)  # after this time the owner counts as dead
        assert f"-{ONE}-" in owner(url)
        with host(ONE, home, url):
            for one in (job, queued):
                ended = client.jobs.wait(one.id)
                assert (ended.status, ended.progress.done) == (JobStatus.COMPLETED, ROWS)
                assert ended.error is None
    rows = asked(url, "SELECT job_id, row, metrics FROM results ORDER BY row")
    assert len({(job_id, row) for job_id, row, _ in rows}) == len(rows) == 2 * ROWS + 1
    nonces = {json.loads(metrics)["nonce"] for _, _, metrics in rows}
    assert len(nonces) == len(rows)
    assert set(before) <= set(kept(url))
