"""The store keeps the audit log and the list of requests for package sets, on both databases."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert

from evaluator_host.platform.host import _delete_old
from evaluator_host.platform.models.table import ModelAnswerTable
from evaluator_host.platform.store import audit, database
from evaluator_host.platform.store.audit import AuditEntry, AuditLog
from evaluator_host.platform.store.store import Store, open_store
from evaluator_host.platform.traces.table import Traces
from evaluator_host.types.errors import StoreUnavailable
from tests.databases import Databases, cancelled_at_commit, counted_statements, opened_store

NOW = datetime.now(UTC)
ENTRY = AuditEntry(
    at=NOW, workspace_id="default", key_id=None, verb="evaluate", evaluator="sha256:1", rows=1, failed=0, outcome="scored",
    duration_ms=1.5,
)  # fmt: skip


async def test_entries_are_read_by_whose_they_are_and_when(store: Store) -> None:
    key, _ = await store.keys.create_key("ci", "acme")
    acme = (await store.workspaces.ensure_workspace("acme")).id
    entries = [replace(ENTRY, at=NOW - timedelta(hours=n), workspace_id=acme, key_id=key.id, rows=n) for n in range(5)]
    await store.audit.append_entries([*entries, replace(ENTRY, grants="model:judge secret:TOKEN=crm")])
    await store.audit.append_entries([])
    assert len(await store.audit.list_entries(limit=100)) == 6
    mine = await store.audit.list_entries(limit=2, workspace="acme")
    assert [(line.rows, line.workspace, line.key, line.key_id) for line in mine] == [
        (0, "acme", "ci", key.id),
        (1, "acme", "ci", key.id),
    ]
    assert mine[0].at == NOW
    for name in ("ci", key.id):
        assert len(await store.audit.list_entries(limit=100, key=name, since=NOW - timedelta(hours=2, minutes=1))) == 3
    (line,) = await store.audit.list_entries(limit=9, workspace="default")
    assert (line.key, line.key_id, line.evaluator, line.outcome) == (None, None, "sha256:1", "scored")
    assert (line.duration_ms, line.grants, mine[0].grants) == (1.5, "model:judge secret:TOKEN=crm", None)


async def test_old_entries_are_deleted_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator_host.platform.store.audit._PRUNED_AT_ONCE", 7)
    await store.audit.append_entries([replace(ENTRY, at=NOW - timedelta(days=n)) for n in range(40)])
    assert await store.audit.delete_before(NOW - timedelta(days=9, hours=12)) == 30
    assert len(await store.audit.list_entries(limit=100)) == 10


@pytest.mark.parametrize("some", [False, True])
async def test_sqlite_finds_rows_to_delete_by_an_index(databases: Databases, tmp_path: Path, *, some: bool) -> None:
    answers = [
        {"workspace_id": "a", "digest": f"{n:02}", "model": "m", "content": "", "stored_bytes": 1, "created_at": NOW}
        for n in range(20)
    ]
    async with opened_store(databases.make("sqlite"), tmp_path) as store:
        await store.database.change_rows(insert(ModelAnswerTable).values(answers if some else answers[:1]))
        with counted_statements() as sent:
            await store.audit.delete_before(NOW)
            chosen = ModelAnswerTable.workspace_id == ("a" if some else "b")
            removed = await store.database.delete_rows(ModelAnswerTable.__table__, chosen, at_once=7)
        assert removed == (20 if some else 0)
        # PostgreSQL may read all rows that are left for each list of keys, so there must be few lists
        assert len([one for one in sent if one.startswith("SELECT model_answers")]) == (2 if some else 1)
        async with store.database.reading() as connection:
            for statement in [one for one in sent if one.startswith(("SELECT", "DELETE"))]:
                values = ("",) * statement.count("?")
                plan = (await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)).all()
                assert "SCAN" not in str(plan), statement


async def test_the_log_writes_what_waits_and_one_task_deletes_what_is_old(store: Store) -> None:
    log, now = AuditLog(store.audit), datetime.now(UTC)  # the task below reads the same clock
    for n in range(2500):
        log.note(replace(ENTRY, at=now - timedelta(minutes=n * 10)))
    await log.write()
    kept_for_ever, kept = (
        ("traces", 0, Traces(store.database).delete_before),
        ("audit entries", 3, store.audit.delete_before),
    )
    task = asyncio.create_task(_delete_old([kept_for_ever, kept]))
    async with asyncio.timeout(30):
        while len(entries := await store.audit.list_entries(limit=10_000)) > 433:
            await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.wait([task])
    assert entries[-1].at >= now - timedelta(days=3)
    assert 431 <= len(entries) <= 433


async def test_a_database_that_fails_loses_no_entry_until_too_many_wait(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "KEPT", 50)
    monkeypatch.setattr(database, "_WAIT_S", 0.2)
    async with open_store(None, tmp_path) as store, open_store(None, tmp_path) as other:
        log = AuditLog(store.audit)
        async with other.database.transaction():
            for n in range(60):
                log.note(replace(ENTRY, rows=n))
            with pytest.raises(StoreUnavailable):
                await log.write()
            stopped = asyncio.create_task(log.write())
            await asyncio.sleep(0.05)
            stopped.cancel()
            await asyncio.wait([stopped])
        assert log.dropped == 10
        await log.write()
        rows = sorted(line.rows for line in await store.audit.list_entries(limit=100))
        assert rows == list(range(10, 60)), "the log must contain each of the newest entries once"


async def test_a_batch_is_stored_once_if_the_task_that_writes_it_is_cancelled(store: Store) -> None:
    log = AuditLog(store.audit)
    log.note(replace(ENTRY, rows=7))
    await cancelled_at_commit(store.database, log.write())
    await log.write()
    assert [line.rows for line in await store.audit.list_entries(limit=100)] == [7]


async def test_a_text_that_a_database_refuses_does_not_cost_the_other_entries(store: Store) -> None:
    log = AuditLog(store.audit)
    for subject, grants in (("first", None), ("a\0b", None), (None, "model:a\0b"), ("last", None)):
        log.note(replace(ENTRY, subject=subject, grants=grants))
    await log.write()
    found = [(line.subject or None, line.grants) for line in reversed(await store.audit.list_entries(limit=10))]
    assert found == [("first", None), ("a\ufffdb", None), (None, "model:a\ufffdb"), ("last", None)]


async def test_an_entry_that_the_database_refuses_is_dropped_alone(store: Store) -> None:
    log = AuditLog(store.audit)
    for n in range(20):
        log.note(replace(ENTRY, rows=n, subject="\ud800" if n in (3, 11) else None))
    await log.write()
    rows = sorted(line.rows for line in await store.audit.list_entries(limit=100))
    assert (rows, log.dropped) == ([n for n in range(20) if n not in (3, 11)], 2)


async def test_requests_for_package_sets_are_stored_for_each_workspace(store: Store) -> None:
    acme, globex = [(await store.workspaces.ensure_workspace(name)).id for name in ("acme", "globex")]
    sets = store.package_sets
    await sets.asked(acme, {"key", "digest"})
    await sets.asked(acme, {"key"})
    await sets.asked(globex, {"digest"})
    assert await sets.names(acme) == {"key", "digest"}
    assert await sets.wanted_by_others(acme, {"key", "digest"})
    assert not await sets.wanted_by_others(globex, {"other"})
    await sets.forget_set(globex, {"key", "digest"})
    assert not await sets.wanted_by_others(acme, {"key", "digest"})
    assert (await sets.names(acme), await sets.names(globex)) == ({"key", "digest"}, set())
