"""The database keeps its promises about transactions and snapshots, and callers get the right errors if it fails."""

import asyncio
import gc
import os
import sqlite3
import subprocess
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import insert, make_url, select, text
from sqlalchemy.exc import IntegrityError, OperationalError, StatementError

from evaluator_host.engine.system.threads import work_for
from evaluator_host.platform.store import database
from evaluator_host.platform.store.database import Database, DatabaseKind, address, translated
from evaluator_host.platform.store.schema import migrate
from evaluator_host.platform.store.store import Store, open_read_only, open_store
from evaluator_host.platform.store.tables import WorkspaceTable
from evaluator_host.types.errors import Misconfigured, StoreUnavailable
from tests.databases import Databases
from tests.relay import Relay


def row(name: str, created_at: datetime | None = None) -> dict[str, object]:
    return {"id": f"ws-{name}", "name": name, "created_at": created_at or datetime.now(UTC)}


async def names(store: Store) -> list[str]:
    async with store.database.reading() as connection:
        return list(await connection.scalars(select(WorkspaceTable.name).order_by(WorkspaceTable.name)))


async def test_a_transaction_is_kept_as_a_whole_or_not_at_all(store: Store) -> None:
    async def failing() -> None:
        async with store.database.transaction() as connection:
            await connection.execute(insert(WorkspaceTable), row("lost"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await failing()
    async with store.database.transaction() as connection:
        await connection.execute(insert(WorkspaceTable), row("kept"))
    assert await names(store) == ["default", "kept"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("writes", [False, True])
async def test_slow_statements_of_one_workspace_do_not_delay_another(store: Store, *, writes: bool) -> None:
    ended: list[str] = []
    slow = text(
        "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 50000) SELECT count(*) FROM t"
    )

    async def ask(workspace: str) -> None:
        work_for(workspace)
        async with store.database.transaction() if writes else store.database.reading() as connection:
            await connection.execute(slow)
        ended.append(workspace)

    await asyncio.gather(*(asyncio.create_task(ask(name)) for name in [*["loud"] * 60, "quiet"]))
    assert ended.index("quiet") < 30, "the workspaces must take turns"


async def test_a_connection_from_when_the_file_was_read_only_is_replaced(tmp_path: Path) -> None:
    """A connection that was made while the file was read-only is replaced. SQLite opens a file without write permission
    only for reading, and that connection stays read-only, even when the file can be written again.
    """
    async with open_store(f"sqlite:///{tmp_path / 'host.db'}", tmp_path) as store:
        with not_writable(tmp_path / "host.db"):
            later = Database(store.database.address)
            assert await later.fetch_values(select(WorkspaceTable.name)) == ["default"]
            with pytest.raises(StoreUnavailable, match="readonly database"):
                await later.change_rows(insert(WorkspaceTable).values(row("early")))
        await later.change_rows(insert(WorkspaceTable).values(row("late")))
        assert await names(store) == ["default", "late"]
        await later.close()


@contextmanager
def not_writable(file: Path) -> Iterator[None]:
    """During the block, nobody can write to a file, not even root, who may ignore the file's mode."""
    file.chmod(0o444)
    if os.geteuid() == 0:
        subprocess.run(["chattr", "+i", file], check=True)
    try:
        yield
    finally:
        if os.geteuid() == 0:
            subprocess.run(["chattr", "-i", file], check=True)
        file.chmod(0o644)


async def test_a_cancelled_transaction_leaves_nothing_and_no_lock(store: Store) -> None:
    inside = asyncio.Event()

    async def work() -> None:
        async with store.database.transaction() as connection:
            await connection.execute(insert(WorkspaceTable), row("lost"))
            inside.set()
            await asyncio.sleep(100)

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.workspaces.ensure_workspace("next")
    assert await names(store) == ["default", "next"]


async def test_a_transaction_that_is_cancelled_in_a_statement_leaves_no_lock(store: Store) -> None:
    async def work(begun: asyncio.Event) -> None:
        async with store.database.transaction() as connection:
            begun.set()
            await connection.execute(select(WorkspaceTable.name))

    cancelled = []  # the errors are kept with their tracebacks, which keep the statements' cursors alive
    for turns in range(20):
        begun = asyncio.Event()
        task = asyncio.create_task(work(begun))
        await begun.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        cancelled.append(task)
        async with asyncio.timeout(10):  # seconds; less than the 15 for which a writer waits
            await store.workspaces.ensure_workspace(f"w{turns}")
    assert any(task.cancelled() for task in cancelled)


async def test_a_connection_of_sqlite_may_be_closed_twice_at_once(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path / 'host.db'}", tmp_path) as store:
        for _ in range(2):  # the second round uses the connection that replaces the first one
            async with store.database.reading() as connection:
                assert await connection.scalar(text("SELECT 1")) == 1
                driver = (await connection.get_raw_connection()).driver_connection
                assert driver is not None
                await asyncio.wait_for(asyncio.gather(driver.close(), driver.close()), 30)
                await connection.invalidate()


async def test_readers_do_not_wait_for_a_writer(store: Store) -> None:
    async with store.database.transaction() as connection:
        await connection.execute(insert(WorkspaceTable), row("unfinished"))
        async with asyncio.timeout(10):
            assert await names(store) == ["default"]
    assert await names(store) == ["default", "unfinished"]


async def test_many_writers_of_several_hosts_all_get_their_turn(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    async with open_store(database_url, tmp_path) as other:
        await asyncio.gather(*((store, other)[n % 2].workspaces.ensure_workspace(f"w{n}") for n in range(60)))
    assert len(await names(store)) == 61


async def test_moments_come_back_as_they_were(store: Store) -> None:
    moment = datetime(2026, 3, 29, 2, 30, 0, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    async with store.database.transaction() as connection:
        await connection.execute(insert(WorkspaceTable), row("east", moment))
    async with store.database.reading() as connection:
        kept = await connection.scalar(select(WorkspaceTable.created_at).where(WorkspaceTable.name == "east"))
    assert kept == moment
    assert kept is not None
    assert kept.tzinfo is UTC
    with pytest.raises(StatementError, match="time zone"):
        async with store.database.transaction() as connection:
            await connection.execute(insert(WorkspaceTable), row("naive", datetime(2026, 1, 1)))  # noqa: DTZ001


async def test_references_are_enforced(store: Store) -> None:
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        await store.package_sets.asked("no-such-workspace", ["sha256:x"])


async def test_values_are_in_no_message(store: Store) -> None:
    with pytest.raises(Exception, match=r"(?i)unique") as failed:
        async with store.database.transaction() as connection:
            await connection.execute(insert(WorkspaceTable), {**row("default"), "id": "the-secret-id"})
    assert "the-secret-id" not in str(failed.value)


class Text(str):
    """A text to which there can be weak references."""

    __slots__ = ("__weakref__",)


async def test_values_of_a_failed_statement_are_freed_without_a_garbage_collection(store: Store) -> None:
    async def fail() -> "weakref.ref[Text]":
        name = Text("default")
        with suppress(IntegrityError):
            async with store.database.transaction() as connection:
                await connection.execute(insert(WorkspaceTable), {**row("new"), "name": name})
            pytest.fail("the name is taken")
        return weakref.ref(name)

    gc.disable()
    try:
        value = await asyncio.create_task(fail())
        assert value() is None
    finally:
        gc.enable()


@pytest.mark.engine
async def test_a_server_that_restarts_is_met_again(databases: Databases, tmp_path: Path) -> None:
    url = databases.make("postgresql")
    async with open_store(url, tmp_path) as store:
        await asyncio.gather(*(names(store) for _ in range(4)))
        databases.postgresql.end_connections(url)
        assert await names(store) == ["default"]


@contextmanager
def silent(port: int) -> Iterator[None]:
    """During the block, drop every packet to a port of this machine, as if the network cable were unplugged."""
    rule = ("OUTPUT", "--out-interface", "lo", "--protocol", "tcp", "--dport", str(port), "--jump", "DROP")
    subprocess.run(["iptables", "--wait", "--insert", *rule], check=True)
    try:
        yield
    finally:
        subprocess.run(["iptables", "--wait", "--delete", *rule], check=True)


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.parametrize("asked", ["before", "while"])
async def test_a_server_that_falls_silent_is_noticed(databases: Databases, tmp_path: Path, asked: str) -> None:
    with Relay(databases.postgresql.socket, tcp=True) as relay:
        port = make_url(relay.address).port
        assert port is not None
        url = make_url(databases.make("postgresql")).set(query={}, host="127.0.0.1", port=port)
        later = Database(address(url.render_as_string(hide_password=False), tmp_path))
        assert await later.fetch_value(text("SELECT 1")) == 1
        if asked == "before":
            waiting = asyncio.create_task(later.fetch_value(text("SELECT pg_sleep(200)")))
            await asyncio.sleep(1)
        with silent(port):
            if asked == "while":
                waiting = asyncio.create_task(later.fetch_value(text("SELECT 2")))
            with pytest.raises(StoreUnavailable):
                await asyncio.wait_for(waiting, 120)
        assert await later.fetch_value(text("SELECT 3")) == 3
        await later.close()


@pytest.mark.engine
async def test_a_connection_that_breaks_in_a_transaction_is_the_databases_fault(
    databases: Databases, tmp_path: Path
) -> None:
    url = databases.make("postgresql")
    async with open_store(url, tmp_path) as store:

        async def broken_off() -> None:
            async with store.database.transaction() as connection:
                await connection.execute(insert(WorkspaceTable), row("lost"))
                databases.postgresql.end_connections(url)
                await connection.execute(insert(WorkspaceTable), row("too"))

        with pytest.raises(StoreUnavailable, match="nothing was changed"):
            await broken_off()
        assert await names(store) == ["default"]


async def test_a_server_that_is_not_there_is_reported_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as failed:
        async with open_store(f"postgres://me:hunter2@/x?host={tmp_path}", tmp_path):
            pass
    assert "hunter2" not in failed.value.detail
    assert "me:***@" in failed.value.detail


async def test_a_file_that_another_process_keeps_locked_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(None, tmp_path):
        pass
    monkeypatch.setattr(database, "_WAIT_S", 0.2)
    impatient = Database(address(None, tmp_path))
    other = sqlite3.connect(tmp_path / "evaluator-host.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        async with impatient.transaction():
            pass
    other.execute("ROLLBACK")
    other.close()
    async with impatient.transaction() as connection:
        await connection.execute(text("SELECT 1"))
    await impatient.close()


async def test_a_full_disk_is_reported_and_nothing_is_half_kept(tmp_path: Path) -> None:
    async with open_store(None, tmp_path) as store:

        async def too_much() -> None:
            async with store.database.transaction() as connection:
                # from here on the database cannot get any more pages
                await connection.execute(text("PRAGMA max_page_count = 1"))
                await connection.execute(insert(WorkspaceTable), [row(f"{n}-{'x' * 4000}") for n in range(500)])

        with pytest.raises(StoreUnavailable, match="full"):
            await too_much()
        assert await names(store) == ["default"]


@pytest.mark.parametrize(
    "url",
    [
        "postgres://u:p@db/x",
        "postgresql://u:p@db/x",
        "postgresql+asyncpg://u:p@db/x",
        "postgresql+psycopg2://u:p@db/x",
        " postgresql://u:p@db/x\n",
    ],
)
def test_every_spelling_of_postgresql_is_one_driver(url: str, tmp_path: Path) -> None:
    where = address(url, tmp_path)
    assert where.engine is DatabaseKind.POSTGRESQL
    assert where.url.render_as_string(hide_password=False) == "postgresql+psycopg://u:p@db/x"
    assert ":p@" not in str(where)


def test_a_password_among_the_parameters_is_not_shown(tmp_path: Path) -> None:
    assert str(address("postgresql://u@/x?host=/run/pg&password=hunter2", tmp_path)) == (
        "postgresql+psycopg://u@/x?host=%2Frun%2Fpg"
    )


@pytest.mark.parametrize(
    "url",
    ["mysql://u:hunter2@db/x", "sqlite://", "sqlite:///:memory:", "hunter2", "postgres:hunter2@db", "http://hunter2@x"],
)
def test_another_database_is_refused_without_its_password(url: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"postgresql://") as refused:
        address(url, tmp_path)
    assert "hunter2" not in refused.value.detail


def test_without_a_url_it_is_a_file_of_the_data_directory(tmp_path: Path) -> None:
    assert address(None, tmp_path).file == tmp_path / "evaluator-host.db"
    assert address("", tmp_path).file == tmp_path / "evaluator-host.db"
    assert address(f"sqlite:///{tmp_path}/other.db", tmp_path).file == tmp_path / "other.db"


@pytest.mark.engine
async def test_a_postgresql_that_stores_bytes_is_refused_by_name(databases: Databases, tmp_path: Path) -> None:
    server = databases.postgresql
    url = server.make_database(template="template0 ENCODING 'SQL_ASCII'")
    with pytest.raises(Misconfigured, match="encoding SQL_ASCII"):
        migrate(address(url, tmp_path))
    with pytest.raises(Misconfigured, match="encoding SQL_ASCII"):
        async with open_read_only(url, tmp_path):
            pass


@pytest.mark.engine
async def test_a_host_that_stands_still_in_a_transaction_does_not_stop_others(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(database._LOST, "idle_in_transaction_session_timeout", 1000)
    url = databases.make("postgresql")
    async with open_store(url, tmp_path) as frozen, open_store(url, tmp_path) as other:

        async def stand_still_while_another_writes() -> None:
            async with frozen.database.transaction() as connection:
                await connection.execute(insert(WorkspaceTable), row("same"))
                async with asyncio.timeout(20), other.database.transaction() as waiting:
                    await waiting.execute(insert(WorkspaceTable), row("same"))

        with pytest.raises(StoreUnavailable):
            await stand_still_while_another_writes()
        assert await names(frozen) == await names(other) == ["default", "same"]


@pytest.mark.engine
@pytest.mark.parametrize(("before", "after"), [("0", "5min"), ("1h", "5min"), ("2s", "2s")])
async def test_settings_of_postgresql_that_are_stricter_stay(
    databases: Databases, tmp_path: Path, before: str, after: str
) -> None:
    url = databases.make("postgresql")
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        for setting in ("idle_in_transaction_session_timeout", "tcp_user_timeout"):
            connection.execute(f"ALTER DATABASE {name} SET {setting} = '{before}'".encode())
    async with open_store(url, tmp_path) as store, store.database.transaction() as connection:
        assert await connection.scalar(text("SHOW idle_in_transaction_session_timeout")) == after


@pytest.mark.parametrize(
    ("said", "to_do"),
    [
        ('connection to server at "::1", port 5432 failed: FATAL:  sorry, too many clients already', "max_connections"),
        (
            "FATAL:  remaining connection slots are reserved for non-replication superuser connections",
            "max_connections",
        ),
        ('could not extend file "base/5/16386": No space left on device', "disk of the database's server"),
        ('connection to server at "::1", port 5432 failed: Connection refused', "start the server"),
    ],
)
def test_messages_of_postgresql_lead_to_a_remedy(said: str, to_do: str, tmp_path: Path) -> None:
    error = OperationalError("SELECT 1", {}, Exception(said))
    with pytest.raises(StoreUnavailable, match=to_do), translated(address("postgresql://host/db", tmp_path)):
        raise error


async def test_a_part_has_the_first_rows_up_to_a_size(store: Store) -> None:
    async with store.database.transaction() as connection:
        await connection.execute(insert(WorkspaceTable), [row(f"{number:04}") for number in range(1000)])
    query = select(WorkspaceTable.name).where(WorkspaceTable.name != "default").order_by(WorkspaceTable.name)
    everything = await store.database.fetch_all(query)
    assert await store.database.fetch_part(query) == everything
    assert await store.database.fetch_part(query, most_bytes=1001) == everything[:251]
    assert await store.database.fetch_part(query, most_bytes=1) == everything[:1]
