"""The store knows how many bytes each workspace uses, which may be more than characters, and enforces quotas and free disk space, on both databases."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from sqlalchemy import event, insert, text

from evaluator_host.platform.evaluators.table import VersionContent
from evaluator_host.platform.jobs.queue import StoredOutput
from evaluator_host.platform.jobs.records import Job
from evaluator_host.platform.labels.table import LabelQueueTable, Labels, LabelState, StoredLabel
from evaluator_host.platform.store.database import DatabaseKind
from evaluator_host.platform.store.store import Store
from evaluator_host.platform.store.tables import SecretTable
from evaluator_host.platform.store.usage import Quota, StorageUsage
from evaluator_host.platform.traces.table import ScoredTrace, Traces
from evaluator_host.types.errors import InUse, MachineExhausted, OverQuota
from evaluator_host.types.jobs import JobStatus
from evaluator_host.types.stored import UsageReport
from evaluator_host.vendors.nemo.entities import Entities, EntityKind, Place
from tests.store.records import FACTS, WORKSPACE, dataset, evaluators, queued, result
from tests.tables import tables

MB = 1 << 20
CONTENT = VersionContent("sha256:1", "é" * 50, "evaluate", "declared", None, None, "y" * 50, "[]", None, None)
TRACE = ScoredTrace("", 1, "t", datetime.now(UTC), "scored", 1.0, True, None, "é" * 15, "é" * 35)


async def ended(store: Store, *, rows: int = 3, value: str = "") -> Job:
    job = await queued(store, rows=rows)
    await tables(store).job_queue.claim_job(job, "host")
    for first in range(0, rows, 1000):
        some = [replace(result(row), result=value) for row in range(first, min(rows, first + 1000))]
        await tables(store).job_queue.save(job.id, "host", some)
    await tables(store).job_queue.release_job(job.id, "host", JobStatus.COMPLETED)
    return job


async def test_every_kind_is_counted_for_its_workspace(store: Store) -> None:
    other = (await store.workspaces.ensure_workspace("other")).id
    assert await store.usage.get_usage(WORKSPACE) == UsageReport(WORKSPACE, 0)
    rows = await dataset(store, "mine")
    assert (await store.usage.get_usage(WORKSPACE)).datasets_bytes == FACTS.size_bytes
    queue = await Labels(store.database).add_queue(
        WORKSPACE, "review", range(3), dataset_id=rows.id, job_id=None, own_outputs=False, content="{}"
    )
    labelled = StoredLabel(1, LabelState.LABELLED, '"good"', "é" * 50, None, datetime.now(UTC))
    await Labels(store.database).set_label(queue, labelled)
    assert (await store.usage.get_usage(WORKSPACE)).labels_bytes == 3 * 64 + 106 + len("{}")
    await Entities(store.database, store.usage).add_entity(
        Place(other, EntityKind.FILE, ""), "f", {"blob": "b", "size": 5000}
    )
    await Entities(store.database, store.usage).add_entity(
        Place(other, EntityKind.METRIC, ""), "m", {"text": "z" * 100}
    )
    made = await tables(store).evaluators.create_evaluator(other, "exact", CONTENT)
    await Traces(store.database).add_traces([replace(TRACE, evaluator_id=made.evaluator_id)] * 2)
    theirs = await store.usage.get_usage(other)
    assert 5100 < theirs.files_bytes < 5300
    assert (theirs.evaluators_bytes, theirs.traces_bytes, theirs.jobs_bytes, theirs.datasets_bytes) == (152, 200, 0, 0)
    assert theirs.total_bytes == theirs.files_bytes + 352
    assert [one.workspace for one in await store.usage.list_usage()] == ["other", "default"]
    await Entities(store.database, store.usage).add_entity(
        Place(other, EntityKind.FILE, ""), "large", {"blob": "c", "size": 3 << 30}
    )
    assert (await store.usage.get_usage(other)).files_bytes > 3 << 30


@pytest.mark.sampled(2)
async def test_results_and_answers_of_jobs_are_counted_until_the_job_is_deleted(store: Store) -> None:
    job = await ended(store, value="é" * 500)
    after = await store.usage.get_usage(WORKSPACE)
    assert 3000 < after.jobs_bytes < 3200
    online = await queued(store)
    await tables(store).job_queue.claim_job(online, "host")
    await tables(store).job_queue.save_outputs(online.id, "host", [StoredOutput(0, "é" * 1000, None, 1.0, "{}")])
    assert 2000 <= (await store.usage.get_usage(WORKSPACE)).jobs_bytes - after.jobs_bytes < 2100
    await tables(store).jobs.delete_job(WORKSPACE, job.id)
    before = (await store.usage.get_usage(WORKSPACE)).jobs_bytes
    assert 2000 <= before < 2100
    locked = [replace(one, lock="x" * 500) for one in evaluators()]
    await tables(store).jobs.add_job(WORKSPACE, dataset_id=online.dataset_id, request="{}", rows=3, evaluators=locked)
    assert (await store.usage.get_usage(WORKSPACE)).jobs_bytes == before + len("{}{}") + 500


async def test_a_workspace_at_its_quota_is_refused_and_others_are_not(store: Store, tmp_path: Path) -> None:
    other = (await store.workspaces.ensure_workspace("other")).id
    usage = StorageUsage(store.database, Quota(workspace_bytes=MB, data_dir=tmp_path))
    job = await ended(store, value="x" * (MB // 3))
    with pytest.raises(OverQuota, match=r"stores 1\.0 MB of at most 1 MB; delete"):
        await usage.require_room(WORKSPACE)
    await usage.require_room(other, MB)
    with pytest.raises(OverQuota, match=r"of at most 1 MB, and 1\.5 MB more do not fit; delete"):
        await usage.require_room(other, MB + MB // 2)
    await tables(store).jobs.delete_job(WORKSPACE, job.id)
    await asyncio.sleep(0.6)  # for half a second, the host repeats a refusal without measuring again
    await usage.require_room(WORKSPACE)


async def test_a_workspace_may_have_a_quota_of_its_own(store: Store, tmp_path: Path) -> None:
    other = (await store.workspaces.ensure_workspace("other")).id
    for own_bytes in ({"other": 2 * MB}, {other: 2 * MB}):
        usage = StorageUsage(store.database, Quota(workspace_bytes=MB, data_dir=tmp_path, own_bytes=own_bytes))
        assert [(await usage.get_usage(one)).quota_bytes for one in (WORKSPACE, other)] == [MB, 2 * MB]
        await usage.require_room(other, 2 * MB)
        with pytest.raises(OverQuota, match="at most 1 MB"):
            await usage.require_room(WORKSPACE, 2 * MB)
    usage = StorageUsage(store.database, Quota(workspace_bytes=MB, data_dir=tmp_path, own_bytes={"other": 0}))
    await usage.require_room(other, 1000 * MB)


async def test_callers_who_ask_at_once_measure_once(store: Store, tmp_path: Path) -> None:
    usage, asked = StorageUsage(store.database, Quota(workspace_bytes=MB, data_dir=tmp_path)), list[str]()

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)

    engine = store.database._engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        await asyncio.gather(*(usage.require_room(WORKSPACE, 1) for _ in range(20)))
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert len([text for text in asked if text.startswith("SELECT")]) == 2, (
        "there must be only two queries: for the sums, and for the names of the workspaces"
    )


async def test_an_upload_is_stopped_where_the_quota_ends(store: Store, tmp_path: Path) -> None:
    usage = StorageUsage(store.database, Quota(workspace_bytes=20 * MB, data_dir=tmp_path))
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += MB
            yield bytes(MB)

    async def upload() -> None:
        with usage.storing(WORKSPACE) as storing:
            async for _ in storing.metered(chunks()):
                pass

    with pytest.raises(OverQuota):
        await upload()
    assert sent == 24 * MB
    await usage.require_room(WORKSPACE, 20 * MB)  # nothing was stored


async def test_slow_uploads_at_the_same_time_share_the_quota(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluator_host.platform.store.usage._MEASURED_S", 0.0)  # each check measures the database
    usage = StorageUsage(store.database, Quota(workspace_bytes=20 * MB, data_dir=tmp_path))
    held, most = [0, 0], 0

    async def upload(number: int) -> None:
        nonlocal most
        try:
            with usage.storing(WORKSPACE) as storing:
                async for chunk in storing.metered(chunks()):
                    held[number] += len(chunk)
                    most = max(most, sum(held))
        finally:
            held[number] = 0

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(100):
            await asyncio.sleep(0)
            yield bytes(MB)

    outcomes = await asyncio.gather(upload(0), upload(1), return_exceptions=True)
    assert [type(one) for one in outcomes] == [OverQuota, OverQuota]
    assert most < 28 * MB, "the quota is 20 MB, and each upload may write 3 MB until the next check"


async def test_rows_that_replace_an_upload_count_instead_of_it(store: Store, tmp_path: Path) -> None:
    usage = StorageUsage(store.database, Quota(workspace_bytes=20 * MB, data_dir=tmp_path))
    with usage.storing(WORKSPACE) as storing, usage.storing(WORKSPACE) as other:
        await storing.resize(15 * MB)
        assert (await storing.room_bytes(), await other.room_bytes()) == (20 * MB, 5 * MB)
        with pytest.raises(OverQuota, match=r"stores 15\.0 MB of at most 20 MB, and 6\.0 MB more do not fit"):
            await other.resize(6 * MB)
        await storing.resize(10 * MB)
        await other.resize(6 * MB)
    with pytest.raises(OverQuota, match=r"stores 16\.0 MB"):
        await usage.require_room(WORKSPACE, 5 * MB)


async def test_free_disk_is_kept(store: Store, tmp_path: Path) -> None:
    with pytest.raises(MachineExhausted, match="must stay free"):
        await StorageUsage(store.database, Quota(reserve_bytes=1 << 60, data_dir=tmp_path)).require_room(WORKSPACE)
    await StorageUsage(store.database, Quota(reserve_bytes=1, data_dir=tmp_path)).require_room(WORKSPACE)


@pytest.mark.sampled(2)
@pytest.mark.slow
async def test_old_jobs_are_deleted_and_a_new_sqlite_file_shrinks(store: Store) -> None:
    old, running = await ended(store, rows=5000, value="x" * 2000), await queued(store)
    assert await tables(store).jobs.delete_ended(datetime.now(UTC) - timedelta(days=1)) == 0
    begun = Mock()
    event.listen(store.database._engine.sync_engine, "begin", begun)
    assert await tables(store).jobs.delete_ended(datetime.now(UTC) + timedelta(days=1)) == 1
    assert begun.call_count < 20, "there must not be a transaction for each page of the file"
    left = [job.job.id for job in await tables(store).jobs.list_overviews(WORKSPACE, limit=10)]
    assert (left, old.id in left) == ([running.id], False)
    assert [one async for one in tables(store).results.values(old.id, 0)] == []
    if store.database.address.engine is DatabaseKind.SQLITE:
        async with store.database.reading() as connection:
            pages, page_bytes, free = [
                await connection.scalar(text(f"PRAGMA {name}"))
                for name in ("page_count", "page_size", "freelist_count")
            ]
        assert free == 0
        assert pages * page_bytes < 1_000_000, (
            "the file must have shrunk by the ten million bytes of the deleted results"
        )


@pytest.mark.sampled(2)
async def test_label_queues_and_secrets_are_counted_and_limited(store: Store) -> None:
    rows = await dataset(store, "mine")
    labels = Labels(store.database)
    given = {"dataset_id": rows.id, "job_id": None, "own_outputs": False}
    await labels.add_queue(WORKSPACE, "review", [0], content="x" * 100_000, **given)
    assert (await store.usage.get_usage(WORKSPACE)).labels_bytes == 100_064
    before = (await store.usage.get_usage(WORKSPACE)).files_bytes
    await store.secrets.set_secret(WORKSPACE, "token", "s" * 8000)
    assert 8000 < (await store.usage.get_usage(WORKSPACE)).files_bytes - before < 8100
    now = datetime.now(UTC)
    queues = [
        {"id": f"q{one}", "name": f"q{one}", "workspace_id": WORKSPACE, "content": "{}", "created_at": now, **given}
        for one in range(999)
    ]
    secrets = [
        {"name": f"s{one}", "workspace_id": WORKSPACE, "sealed": b"", "created_at": now, "updated_at": now}
        for one in range(999)
    ]
    async with store.database.transaction() as connection:
        await connection.execute(insert(LabelQueueTable), queues)
        await connection.execute(insert(SecretTable), secrets)
    with pytest.raises(InUse, match="at most 1000 label queues; delete one first"):
        await labels.add_queue(WORKSPACE, "more", [0], content="{}", **given)
    with pytest.raises(InUse, match="at most 1000 secrets; delete one first"):
        await store.secrets.set_secret(WORKSPACE, "more", "s" * 20)
    with pytest.raises(InUse, match="at most 1000 secrets; delete one first"):
        await store.secrets.add_secret(WORKSPACE, "more", "s" * 20)
    await store.secrets.set_secret(WORKSPACE, "token", "t" * 20)
    assert await store.secrets.reveal(WORKSPACE, "token") == "t" * 20
