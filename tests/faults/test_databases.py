"""No row is lost if the database fails during a job and calls: connections end, the server is killed, or another
process holds the lock.
"""

import os
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.jobs import JobReport, JobStatus
from tests.databases import PostgreSQL
from tests.faults.scene import HONEST, Scene, scene
from tests.keyed import command
from tests.server import new_home

ROWS = 60  # number of slow rows, enough for the job to run for a second
SLOWLY = Evaluator(
    "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(0.13)\n    return inputs['n'] / 1000\n"
)

NOT_READY = "the Evaluator Host there is not ready: this host cannot reach its stored data"


@pytest.fixture(scope="module")
def postgresql() -> Iterator[PostgreSQL]:
    """A PostgreSQL server that only this module uses, so that tests may kill it."""
    with PostgreSQL() as server:
        yield server


@pytest.fixture(scope="module")
def served(postgresql: PostgreSQL, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scene, str]]:
    """A host whose database is on the fixture's PostgreSQL server, and the database's URL. Tests cause one fault after
    another.
    """
    url = postgresql.make_database()
    with scene(tmp_path_factory.mktemp("host"), environment={"EVALUATOR_HOST_DATABASE_URL": url}) as host:
        yield host, url


@pytest.mark.long
def test_connections_are_ended_again_and_again(
    postgresql: PostgreSQL, served: tuple[Scene, str], recovery: Callable[[float], None]
) -> None:
    host, url = served
    job = began(host)
    for _ in range(10):
        postgresql.end_connections(url)
        assert_answered(host)
    recovery(until_listed(host))
    assert_whole(host, job)


@pytest.mark.long
def test_the_server_is_killed_and_started_again(
    postgresql: PostgreSQL, served: tuple[Scene, str], recovery: Callable[[float], None]
) -> None:
    host, _ = served
    job = began(host)
    postgresql.kill()
    for _ in range(5):
        assert_answered(host)
    refused = host.server.client.get(f"/v1/jobs/{job.id}")
    assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
    where = conninfo_to_dict(served[1])
    for part in ("host", "dbname"):
        assert str(where[part]) in host.server.log
        assert str(where[part]) not in refused.text, "callers must not learn where the database is"
    postgresql.start()
    recovery(until_listed(host))
    assert_whole(host, job)


@pytest.mark.long
def test_a_trace_that_was_taken_is_stored_once_the_server_is_back(
    postgresql: PostgreSQL, served: tuple[Scene, str]
) -> None:
    host, _ = served
    client, path = host.server.client, "/v1/evaluators/kept/traces"
    assert client.post("/v1/evaluators", json={"name": "kept", "code": SLOWLY.code}).is_success
    spans = [{"traceId": "a" * 32, "spanId": "b" * 16, "name": "answer"}]
    assert client.post(path, json={"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).status_code == 200
    postgresql.kill()
    time.sleep(3)  # long enough for the host to score the trace, whose result it cannot store yet
    assert client.get(path).status_code == 503
    postgresql.start()
    host.until(lambda: client.get(path).status_code == 200 and len(client.get(path).json()) == 1)


@pytest.mark.long
def test_a_host_whose_server_is_gone_stops_in_time(postgresql: PostgreSQL, tmp_path: Path) -> None:
    environment = {"EVALUATOR_HOST_DATABASE_URL": postgresql.make_database(), "EVALUATOR_HOST_STOP_GRACE_S": "4"}
    with scene(tmp_path, environment=environment) as host:
        began(host)
        postgresql.kill()
        try:
            host.server.process.terminate()
            assert host.server.process.wait(4 + 5) == 0, host.server.log
        finally:
            postgresql.start()


@pytest.mark.long
def test_another_process_holds_the_file(tmp_path: Path, recovery: Callable[[float], None]) -> None:
    file = tmp_path / "host.db"
    with scene(tmp_path, environment={"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{file}"}) as host:
        job = began(host)
        for _ in range(2):
            with closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as other:
                other.execute("BEGIN EXCLUSIVE")
                until = time.monotonic() + 3
                while time.monotonic() < until:
                    assert_answered(host)
                    time.sleep(0.1)
                other.execute("ROLLBACK")
        recovery(until_listed(host))
        assert_whole(host, job)


@pytest.mark.long
def test_a_server_that_is_read_only_for_a_while_ends_no_jobs(
    postgresql: PostgreSQL, served: tuple[Scene, str], recovery: Callable[[float], None]
) -> None:
    host, url = served
    job = began(host)
    read_only(postgresql, url, "on")
    host.until(lambda: readiness(host) == (503, "store_unavailable"))
    assert "read-only" in host.server.log
    # doctor must also say what to do
    assert doctor(host, url).count("is read-only; let this host write to it") == 1
    refused = host.server.client.post("/v1/evaluators", json={"name": "late", "code": SLOWLY.code})
    assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
    read_only(postgresql, url, "off")
    host.until(lambda: readiness(host) == (200, None))
    recovery(until_listed(host))
    assert_whole(host, job)
    assert_whole(host, began(host))


@pytest.mark.long
def test_doctor_says_that_a_server_is_read_only_or_silent_before_a_host_has_used_it(
    postgresql: PostgreSQL, tmp_path: Path
) -> None:
    url, data = postgresql.make_database(), str(new_home(tmp_path))
    read_only(postgresql, url, "on")
    refused = command("doctor", url=url, EVALUATOR_HOST_DATA_DIR=data)
    assert (refused.returncode, "is read-only; let this host write to it" in refused.stdout) == (3, True)
    postgresql.freeze()
    try:
        silent = command("doctor", url=url, EVALUATOR_HOST_DATA_DIR=data)
    finally:
        postgresql.thaw()
    assert (silent.returncode, "find out why the server does not answer" in silent.stdout) == (3, True)


@pytest.mark.long
def test_a_dump_of_a_database_in_use_is_restored_and_its_job_ends_there(postgresql: PostgreSQL, tmp_path: Path) -> None:
    url, data = postgresql.make_database(), new_home(tmp_path)
    copied_data = tmp_path / "copy"
    with scene(tmp_path, data_dir=data, environment={"EVALUATOR_HOST_DATABASE_URL": url}) as host:
        job = began(host)
        copied = postgresql.copy(url)  # copy the database first, then the folders that it refers to
        shutil.copytree(data, copied_data, symlinks=True)
        assert_whole(host, job)
    with scene(tmp_path, data_dir=copied_data, environment={"EVALUATOR_HOST_DATABASE_URL": copied}) as host:
        assert_whole(host, job)
        host.server.client.delete(f"/v1/jobs/{job.id}").raise_for_status()
    with psycopg.connect(copied, autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM results").fetchone() == (0,)
        connection.execute("VACUUM results")
        assert connection.execute("SELECT pg_relation_size('results')").fetchone() == (0,), (
            "the database must have freed the space of the deleted rows"
        )


def read_only(postgresql: PostgreSQL, url: str, value: str) -> None:
    """Make a database read-only for every connection, like a standby server."""
    with psycopg.connect(postgresql.url(), autocommit=True) as server:
        name = conninfo_to_dict(url)["dbname"]
        server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {value}")  # type: ignore[arg-type]
    postgresql.end_connections(url)


@pytest.mark.long
def test_a_damaged_removed_or_replaced_file_is_noticed_and_named(tmp_path: Path) -> None:
    file = tmp_path / "host.db"
    with scene(tmp_path, environment={"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{file}"}) as host:
        with closing(sqlite3.connect(file)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        good = file.read_bytes()
        with file.open("r+b") as damaged:
            damaged.seek(4096)
            damaged.write(os.urandom(len(good) - 4096))
        host.until(lambda: readiness(host) == (503, "store_unavailable"))
        assert f"the database {file} is damaged" in host.server.log
        said = doctor(host, f"sqlite:///{file}")
        assert f"the database {file} is damaged" in said
        assert NOT_READY in said, "doctor must also show the host's own answer, which contains no paths"
        assert "stop the host, keep the file, and put a copy in its place" in said
        with file.open("r+b") as mended:
            mended.write(good)
        host.until(lambda: readiness(host) == (200, None))
        assert_whole(host, began(host))
        file.rename(tmp_path / "elsewhere")
        # sent before the host notices that the file is gone
        host.server.client.post("/v1/evaluators", json={"name": "early", "code": SLOWLY.code})
        host.until(lambda: readiness(host) == (503, "store_unavailable"))
        assert not file.exists(), (
            "the host must not create an empty file, which the next start would take for a new database"
        )
        host.until(lambda: f"the database {file} was removed" in host.server.log)
        refused = host.server.client.post("/v1/evaluators", json={"name": "late", "code": SLOWLY.code})
        assert refused.status_code == 503, "the host must refuse this, because it would write to the deleted file"
        assert NOT_READY in doctor(host, f"sqlite:///{file}")
        file.write_bytes(good)  # put the good file back, as an operator restores a backup
        host.until(lambda: f"the database {file} was replaced" in host.server.log)
        assert readiness(host) == (503, "store_unavailable")
        assert NOT_READY in doctor(host, f"sqlite:///{file}")
        (tmp_path / "elsewhere").rename(file)
        host.until(lambda: readiness(host) == (200, None))


@pytest.mark.long
def test_an_emptied_file_is_not_a_new_database(tmp_path: Path) -> None:
    data = new_home(tmp_path)
    file = data / "host.db"
    url = f"sqlite:///{file}"
    with scene(tmp_path, data_dir=data, environment={"EVALUATOR_HOST_DATABASE_URL": url}) as host:
        os.truncate(file, 0)
        host.until(lambda: readiness(host) == (503, "store_unavailable"))
        host.until(lambda: f"the database {file} is damaged: it is empty" in host.server.log)
        assert NOT_READY in doctor(host, url)
    for part in data.glob("host.db-*"):
        part.unlink()
    os.truncate(file, 0)
    for arguments in (("doctor",), ("keys", "list"), ("serve", "--port", "0")):
        done = command(*arguments, url=url, EVALUATOR_HOST_DATA_DIR=str(data))
        assert done.returncode == 3
        said = " ".join((done.stdout + done.stderr).split())
        assert f"the database {file} is damaged: the file is empty, though a host has used it" in said
        assert file.stat().st_size == 0
    file.unlink()
    file.touch()
    (data / "databases").rename(tmp_path / "notes")
    with scene(tmp_path, data_dir=data, environment={"EVALUATOR_HOST_DATABASE_URL": url}) as host:
        assert readiness(host) == (200, None), "the host must accept an empty file that no host has used yet"


@pytest.mark.parametrize("arguments", [("keys", "list"), ("doctor",), ("serve", "--port", "0")])
def test_a_command_names_the_damaged_file_and_where_copies_are(arguments: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "host.db"
    file.write_bytes(b"x" * 9000)
    done = command(*arguments, url=f"sqlite:///{file}")
    said = " ".join((done.stdout + done.stderr).split())
    assert f"the database {file} is damaged" in said
    assert f"{tmp_path / 'backups'}" in said
    assert "bug in Evaluator Host" not in said


def doctor(host: Scene, url: str) -> str:
    """Run `doctor` beside a host, and return its output in one line."""
    done = command("doctor", url=url, EVALUATOR_HOST_PORT=str(host.server.client.base_url.port))
    return " ".join((done.stdout + done.stderr).split())


def readiness(host: Scene) -> tuple[int, str | None]:
    answer = host.server.client.get("/readyz")
    return answer.status_code, answer.json().get("code")


def began(host: Scene) -> JobReport:
    """Start a job, and return once it has some results.

    The rows only sleep, so they go on even if this process does not get the processor. On a busy machine, a job may
    therefore be past its middle when this function looks at it; then the job is cancelled and another job begins.
    """
    with Client(host.server.url) as client:
        for _ in range(5):
            job = client.jobs.create([SLOWLY], [{"n": number} for number in range(ROWS)], parallelism=4)
            if rows_done_at_first(host, client, job) < ROWS // 2:
                return job
            client.jobs.cancel(job.id)
            client.jobs.wait(job.id)
    raise AssertionError("no job was found in the middle")


def rows_done_at_first(host: Scene, client: Client, job: JobReport) -> int:
    """Wait until a job has a few results, and return how many rows are done then."""
    host.until(lambda: client.jobs.get(job.id).progress.done > ROWS // 20)
    return client.jobs.get(job.id).progress.done


def assert_answered(host: Scene) -> None:
    """Check a call that needs no database: the host must answer it, or refuse it with the correct reason."""
    answer = host.evaluate()
    assert answer.status_code == 200 or answer.status_code in HONEST, answer.text
    assert answer.status_code != 200 or answer.json()["score"] == 1.0


def until_listed(host: Scene) -> float:
    """Wait until requests that need the database succeed again; return how many seconds that took."""
    started = time.monotonic()
    while (answer := host.server.client.get("/v1/jobs")).status_code != 200:
        assert answer.status_code == 503, answer.text
        assert time.monotonic() < started + 60, answer.text
        time.sleep(0.1)
    return time.monotonic() - started


def assert_whole(host: Scene, job: JobReport) -> None:
    """Check that the job ends, and that each row has exactly one result: the right one."""
    with Client(host.server.url) as client:
        host.until(lambda: client.jobs.get(job.id).status is not JobStatus.RUNNING, seconds=120)
        ended = client.jobs.get(job.id)
        assert (ended.status, ended.progress.done, ended.progress.failed) == (JobStatus.COMPLETED, ROWS, 0)
        found = list(client.jobs.rows(job.id))
    assert Counter(row.index for row in found) == dict.fromkeys(range(ROWS), 1)
    assert all(row.result["score"] == row.index / 1000 for row in found)
