"""The store knows which host owns a job and which results count, and lists jobs, on both databases."""

import asyncio
import tracemalloc
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Delete, Executable, text, update
from sqlalchemy.exc import IntegrityError

from evaluator_host.platform.jobs.queue import StoredOutput
from evaluator_host.platform.jobs.records import DesiredState, Job
from evaluator_host.platform.jobs.schema import JobTable
from evaluator_host.platform.jobs.spec import StoredSpec, spec_from_json, spec_to_json
from evaluator_host.platform.jobs.table import Jobs
from evaluator_host.platform.store.store import Store
from evaluator_host.types.errors import InUse, NotFound, StoreUnavailable
from evaluator_host.types.jobs import Failures, JobConfig, JobStatus
from evaluator_host.types.outcome import Note
from tests.databases import counted_statements
from tests.store.records import WORKSPACE, evaluators, finished, queued, result
from tests.tables import tables


async def test_a_list_of_jobs_tells_what_each_evaluator_scored_and_what_changed(store: Store) -> None:
    before = await finished(store, [1.0, 1.0, 0.0])
    after = await finished(store, [1.0, None, None], name="second")
    other = await finished(store, [0.5])
    with counted_statements() as statements:
        found = {one.job.id: one.evaluators[0] for one in await tables(store).jobs.list_overviews(WORKSPACE, limit=10)}
    assert len([text for text in statements if text.startswith("SELECT")]) == 2
    tally = found[after.id].tally
    assert (tally.scored, tally.failed, tally.skipped, tally.judged, tally.passed) == (1, 2, 0, 1, 1)
    assert (tally.mean_score(failures_are_zero=False), tally.pass_rate(failures_are_zero=False)) == (1.0, 1.0)
    assert tally.mean_score(failures_are_zero=True) == 1 / 3
    assert tally.pass_rate(failures_are_zero=True) == pytest.approx(1 / 3)
    previous = found[after.id].previous
    assert previous is not None
    assert (found[after.id].previous_job, previous.mean_score(failures_are_zero=False)) == (
        before.id,
        2 / 3,
    )
    assert found[before.id].previous is None
    assert found[other.id].previous is None  # job `other` has another number of rows
    assert [one.job.id for one in await tables(store).jobs.list_overviews(WORKSPACE, limit=10, search="SECO")] == [
        after.id
    ]
    assert len(await tables(store).jobs.list_overviews(WORKSPACE, limit=10, search="exact@0")) == 3
    assert await tables(store).jobs.list_overviews(WORKSPACE, limit=10, search="%") == []
    await tables(store).jobs.rename_job(WORKSPACE, before.id, "first")
    assert (await tables(store).jobs.get_job(WORKSPACE, before.id)).name == "first"
    with pytest.raises(NotFound):
        await tables(store).jobs.rename_job("other", before.id, "first")
    trend = await tables(store).jobs.scores_of(WORKSPACE, "exact", limit=2)
    assert [(job.id, one.tally.scored) for job, one in trend] == [(other.id, 1), (after.id, 1)]
    assert await tables(store).jobs.scores_of(WORKSPACE, "exact", dataset="qa", limit=2) == []


async def test_scores_are_listed_without_long_mappings(store: Store) -> None:
    """Scores are listed without the jobs' long mappings; otherwise each of many evaluators would load the mapping of
    the same job.
    """
    stored = StoredSpec(
        {"outputs": "x" * 50_000 + '"failures":"zero" \\u0000 \x00 \\'},
        config=JobConfig(failures=Failures.ZERO, shard="1/2"),
    )
    await finished(store, [1.0, None], request=spec_to_json(stored))
    await finished(store, [1.0, None], request=spec_to_json(stored))
    jobs = tables(store).jobs
    for job, tally in [*await jobs.scores_of(WORKSPACE, "exact", limit=5), *await jobs.last_scores(WORKSPACE)]:
        assert len(job.request) < 2000
        assert spec_from_json(job.request).config == stored.config
        assert tally.previous_is_zero is (tally.previous_job is not None)


async def test_a_list_of_jobs_continues_after_a_job(store: Store) -> None:
    for _ in range(5):
        await finished(store, [1.0])
    jobs = tables(store).jobs
    same = update(JobTable).values(created_at=datetime(2026, 1, 1, tzinfo=UTC))
    await store.database.change_rows(same)
    every = [one.job.id for one in await jobs.list_overviews(WORKSPACE, limit=9)]
    assert len(every) == 5
    found, after = list[str](), None
    while part := await jobs.list_overviews(WORKSPACE, limit=2, after=after):
        after = part[-1].job
        found += [one.job.id for one in part]
    assert found == every


async def test_a_job_is_read_as_it_was_made(store: Store) -> None:
    job = await queued(store, count=2)
    assert (job.status, job.wanted, job.rows, job.done, job.owner) == (JobStatus.QUEUED, DesiredState.RUN, 3, 0, None)
    assert await tables(store).jobs.evaluators(job.id) == evaluators(2)
    with pytest.raises(NotFound):
        await tables(store).jobs.get_job("other", job.id)


async def test_an_idempotency_key_makes_one_job_however_many_ask_at_once(store: Store) -> None:
    made = await asyncio.gather(*(queued(store, key="k") for _ in range(5)))
    assert len({job.id for job in made}) == 1
    assert (await queued(store)).id != (await queued(store)).id
    assert await tables(store).jobs.find_by_idempotency_key(WORKSPACE, "k") == await tables(store).jobs.get_job(
        WORKSPACE, made[0].id
    )
    assert await tables(store).jobs.find_by_idempotency_key("other", "k") is None


async def test_jobs_are_listed_in_pages_the_newest_first(store: Store) -> None:
    made = [await queued(store) for _ in range(5)]
    page = await tables(store).jobs.list_overviews(WORKSPACE, limit=2)
    rest = await tables(store).jobs.list_overviews(WORKSPACE, limit=9, before=page[-1].job.created_at)
    assert [one.job.id for one in page + rest] == [job.id for job in reversed(made)]
    await tables(store).jobs.set_desired_state(WORKSPACE, made[0].id, DesiredState.PAUSE)
    assert [
        one.job.id for one in await tables(store).jobs.list_overviews(WORKSPACE, limit=9, status=JobStatus.PAUSED)
    ] == [made[0].id]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sought", ["übung 1", "ÜBUNG", "Übung", "ДОМ", "дом", "50%", "% _", "N\u0303", "ﬀ"])
async def test_a_search_finds_letters_of_every_script_in_upper_and_lower_case(store: Store, sought: str) -> None:
    names = ["Übung 1", "übung 2", "ÜBUNG 3 ДОМ", "дом", "Дом", "50% _ n\u0303 ﬀ", "plain"]
    for name in names:
        await tables(store).jobs.rename_job(WORKSPACE, (await queued(store)).id, name)
    found = await tables(store).jobs.list_overviews(WORKSPACE, limit=99, search=sought)
    assert [one.job.name for one in found] == [name for name in reversed(names) if sought.lower() in name.lower()]


async def test_an_overview_has_the_labels_the_data_set_and_the_model_calls(store: Store) -> None:
    plain, online = await queued(store, count=2), await queued(store)
    assert await tables(store).job_queue.claim_job(online, "host")
    outputs = [StoredOutput(0, '"yes"', None, 1.0, "{}"), StoredOutput(1, None, "{}", 1.0, "{}")]
    await tables(store).job_queue.save_outputs(online.id, "host", outputs)
    newest, oldest = await tables(store).jobs.list_overviews(WORKSPACE, limit=9)
    assert (newest.job.id, [one.label for one in newest.evaluators], newest.dataset, newest.asked) == (
        online.id,
        ["exact@0"],
        online.dataset_id,
        2,
    )
    assert (oldest.job.id, [one.label for one in oldest.evaluators], oldest.dataset, oldest.asked) == (
        plain.id,
        ["exact@0", "exact@1"],
        plain.dataset_id,
        0,
    )
    assert await tables(store).jobs.get_overview(WORKSPACE, plain.id) == oldest
    with pytest.raises(NotFound):
        await tables(store).jobs.get_overview("other", plain.id)


async def test_a_list_takes_as_many_statements_for_twenty_jobs_as_for_one(store: Store) -> None:
    await queued(store)
    with counted_statements() as for_one:
        assert len(await tables(store).jobs.list_overviews(WORKSPACE, limit=100)) == 1
    for _ in range(19):
        await queued(store, count=2)
    with counted_statements() as for_twenty:
        assert len(await tables(store).jobs.list_overviews(WORKSPACE, limit=100)) == 20
    assert len(for_twenty) == len(for_one) <= 3, for_twenty


async def test_one_host_takes_a_job(store: Store) -> None:
    await queued(store)
    (job,) = await tables(store).job_queue.waiting(each=9)
    taken = await asyncio.gather(*(tables(store).job_queue.claim_job(job, f"host-{n}") for n in range(5)))
    assert taken.count(True) == 1
    assert await tables(store).job_queue.waiting(each=9) == []
    (running,) = await tables(store).job_queue.running()
    assert running.owner == f"host-{taken.index(True)}"
    assert running.started_at is not None


async def test_a_silent_owner_loses_its_job_and_writes_no_more(store: Store) -> None:
    job = await queued(store)
    assert await tables(store).job_queue.claim_job(job, "slow")
    assert await tables(store).job_queue.save(job.id, "slow", [result(0)]) is DesiredState.RUN
    (abandoned,) = await tables(store).job_queue.running()
    assert await tables(store).job_queue.claim_job(abandoned, "quick")
    assert await tables(store).job_queue.save(job.id, "slow", [result(1)]) is None
    assert await tables(store).job_queue.save(job.id, "slow", ()) is None
    assert not await tables(store).job_queue.release_job(job.id, "slow", JobStatus.COMPLETED)
    assert await tables(store).job_queue.done_rows(job.id, 0) == bytearray([1])
    assert (await tables(store).jobs.get_job(WORKSPACE, job.id)).done == 1


async def test_results_and_their_count_are_kept_together(store: Store) -> None:
    job = await queued(store)
    await tables(store).job_queue.claim_job(job, "host")
    await tables(store).job_queue.save(job.id, "host", [result(0), result(2, None, error="timeout")], running_s=0.5)
    with pytest.raises(IntegrityError):
        await tables(store).job_queue.save(job.id, "host", [result(1), result(2)])
    kept = await tables(store).jobs.get_job(WORKSPACE, job.id)
    assert (kept.done, kept.failed, kept.running_s) == (2, 1, 0.5)
    assert await tables(store).job_queue.done_rows(job.id, 0) == bytearray([1, 0, 1])
    assert await tables(store).job_queue.done_rows(job.id, 1) == bytearray()


async def test_warnings_are_counted_as_results_are_stored(store: Store) -> None:
    job = await queued(store, rows=40, count=2)
    await tables(store).job_queue.claim_job(job, "host")
    missing, coerced = Note("missing_outputs", "no outputs", "give `outputs`"), Note("coerced", "taken as a number")
    for first in (20, 0):
        rows = range(first, first + 20)
        notes = {(0, row): [missing] if row else [missing, coerced] for row in rows}
        await tables(store).job_queue.save(job.id, "host", [result(row, 0.0) for row in rows], notes=notes)
    await tables(store).job_queue.save(
        job.id, "host", [result(row, None, position=1, error="timeout") for row in range(40)]
    )
    with pytest.raises(IntegrityError):
        await tables(store).job_queue.save(job.id, "host", [result(0)], notes={(0, 0): [missing]})
    doubted, failed = (await tables(store).jobs.get_overview(WORKSPACE, job.id)).evaluators
    told = doubted.tally.counted_warnings()
    assert [(one.code, one.count, one.rows) for one in told] == [
        ("missing_outputs", 40, (0, 1, 2, 3, 4)),
        ("coerced", 1, (0,)),
    ]
    assert doubted.doubt() == "40 of 40 scores are doubtful: no outputs"
    assert (failed.doubt(), failed.tally.counted_warnings()) == ("40 of 40 rows failed", ())


async def test_a_score_over_all_rows_makes_up_for_rows_without_one(store: Store) -> None:
    job = await queued(store)
    await tables(store).job_queue.claim_job(job, "host")
    await tables(store).job_queue.save(job.id, "host", [result(row, None) for row in range(3)])
    assert (await tables(store).jobs.get_overview(WORKSPACE, job.id)).evaluators[
        0
    ].doubt() == "0 of 3 rows have a score"
    await tables(store).job_queue.save_together(job.id, "host", 0, "{}")
    assert (await tables(store).jobs.get_overview(WORKSPACE, job.id)).evaluators[0].doubt() is None


@pytest.mark.parametrize("rows", [1, 400])
async def test_warnings_cost_two_statements_an_evaluator_however_many_rows_have_one(store: Store, rows: int) -> None:
    job = await queued(store, rows=rows)
    await tables(store).job_queue.claim_job(job, "host")
    notes = {(0, row): [Note("missing_outputs", "no outputs")] for row in range(rows)}
    with counted_statements() as seen:
        await tables(store).job_queue.save(job.id, "host", [result(row) for row in range(rows)], notes=notes)
    assert sum("job_evaluators" in one for one in seen) == 2


async def test_outputs_are_kept_once(store: Store) -> None:
    job = await queued(store)
    await tables(store).job_queue.claim_job(job, "host")
    outputs = [StoredOutput(1, '"Paris"', None, 3.5, "{}"), StoredOutput(2, None, "timeout", 9.0, "{}")]
    assert await tables(store).job_queue.save_outputs(job.id, "host", outputs) is DesiredState.RUN
    assert await tables(store).job_queue.answered_rows(job.id) == bytearray([0, 1, 1])
    assert await tables(store).job_queue.outputs(job.id, 2, limit=9) == {2: outputs[1]}
    with pytest.raises(IntegrityError):
        await tables(store).job_queue.save_outputs(job.id, "host", outputs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        (DesiredState.PAUSE, JobStatus.PAUSED),
        (DesiredState.CANCEL, JobStatus.CANCELLED),
        (DesiredState.RUN, JobStatus.QUEUED),
    ],
)
async def test_a_job_that_no_host_works_on_obeys_at_once(store: Store, wanted: DesiredState, status: JobStatus) -> None:
    job = await tables(store).jobs.set_desired_state(WORKSPACE, (await queued(store)).id, wanted)
    assert job.status is status
    assert (job.finished_at is not None) is status.final


async def test_a_job_at_work_is_asked_and_its_host_hears_of_it_with_the_next_write(store: Store) -> None:
    job = await queued(store)
    await tables(store).job_queue.claim_job(job, "host")
    assert (
        await tables(store).jobs.set_desired_state(WORKSPACE, job.id, DesiredState.PAUSE)
    ).status is JobStatus.RUNNING
    assert await tables(store).job_queue.save(job.id, "host", [result(0)]) is DesiredState.PAUSE
    assert await tables(store).job_queue.release_job(job.id, "host", JobStatus.PAUSED)
    assert (await tables(store).jobs.get_job(WORKSPACE, job.id)).status is JobStatus.PAUSED
    assert (await tables(store).jobs.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)).status is JobStatus.QUEUED


async def test_a_pause_that_was_taken_back_in_time_has_no_effect(store: Store) -> None:
    job = await queued(store)
    await tables(store).job_queue.claim_job(job, "host")
    await tables(store).jobs.set_desired_state(WORKSPACE, job.id, DesiredState.PAUSE)
    await tables(store).jobs.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)
    assert await tables(store).job_queue.release_job(job.id, "host", JobStatus.PAUSED)
    assert (await tables(store).jobs.get_job(WORKSPACE, job.id)).status is JobStatus.QUEUED


@pytest.mark.parametrize("error", [None, '{"code": "x", "message": "y"}'])
async def test_a_job_that_is_cancelled_while_it_pauses_is_cancelled(store: Store, error: str | None) -> None:
    job = await queued(store)
    await tables(store).job_queue.claim_job(job, "host")
    await tables(store).jobs.set_desired_state(WORKSPACE, job.id, DesiredState.PAUSE)
    await tables(store).jobs.set_desired_state(WORKSPACE, job.id, DesiredState.CANCEL)
    assert await tables(store).job_queue.release_job(job.id, "host", JobStatus.PAUSED, error=error)
    ended = await tables(store).jobs.get_job(WORKSPACE, job.id)
    assert (ended.status, ended.wanted) == (JobStatus.CANCELLED, DesiredState.CANCEL)
    assert ended.finished_at is not None


async def test_a_job_that_has_ended_stays_so_and_can_be_deleted(store: Store) -> None:
    job = await queued(store)
    with pytest.raises(InUse):
        await tables(store).jobs.delete_job(WORKSPACE, job.id)
    await tables(store).job_queue.claim_job(job, "host")
    await tables(store).job_queue.save(job.id, "host", [result(0)])
    await tables(store).job_queue.release_job(job.id, "host", JobStatus.CANCELLED)
    ended = await tables(store).jobs.get_job(WORKSPACE, job.id)
    assert (ended.status, ended.owner, ended.heartbeat_at) == (JobStatus.CANCELLED, None, None)
    assert ended.finished_at is not None
    with pytest.raises(InUse):
        await tables(store).jobs.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)
    await tables(store).jobs.delete_job(WORKSPACE, job.id)
    with pytest.raises(NotFound):
        await tables(store).jobs.get_job(WORKSPACE, job.id)
    assert await tables(store).job_queue.done_rows(job.id, 0) == bytearray()


async def failed_job(store: Store) -> Job:
    job = await queued(store)
    await tables(store).job_queue.claim_job(job, "host")
    await tables(store).job_queue.save(job.id, "host", [result(0), result(1)])
    await tables(store).job_queue.release_job(job.id, "host", JobStatus.FAILED)
    return await tables(store).jobs.get_job(WORKSPACE, job.id)


async def test_a_job_does_not_run_again_once_its_deletion_has_begun(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, change_rows = await failed_job(store), store.database.change_rows

    async def stopped(statement: Executable) -> int:
        changed = await change_rows(statement)
        if isinstance(statement, Delete):
            raise StoreUnavailable("the host stopped")
        return changed

    with monkeypatch.context() as patched:
        patched.setattr(store.database, "change_rows", stopped)
        with pytest.raises(StoreUnavailable):
            await tables(store).jobs.delete_job(WORKSPACE, job.id)
    assert await tables(store).job_queue.done_rows(job.id, 0) == bytearray()
    with pytest.raises(InUse, match="has ended"):
        await tables(store).jobs.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)
    kept = await tables(store).jobs.get_job(WORKSPACE, job.id)
    assert (kept.status, "delete it again" in str(kept.error)) == (JobStatus.CANCELLED, True)
    await tables(store).jobs.delete_job(WORKSPACE, job.id)
    with pytest.raises(NotFound):
        await tables(store).jobs.get_job(WORKSPACE, job.id)


async def test_a_failed_job_is_either_resumed_or_deleted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    job, jobs = await failed_job(store), tables(store).jobs
    read = iter([job])  # the first read of a caller returns the job as it was before the other caller changed it

    async def get_job(workspace_id: str, job_id: str) -> Job:
        return next(read, None) or await Jobs.get_job(jobs, workspace_id, job_id)

    monkeypatch.setattr(jobs, "get_job", get_job)
    resumed = await jobs.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)
    read = iter([job])
    with pytest.raises(InUse, match="the job is queued"):
        await jobs.delete_job(WORKSPACE, job.id)
    assert await tables(store).job_queue.done_rows(job.id, 0) == bytearray([1, 1])
    await jobs.set_desired_state(WORKSPACE, job.id, DesiredState.CANCEL)
    await jobs.delete_job(WORKSPACE, job.id)
    read = iter([job])
    with pytest.raises(NotFound):
        await jobs.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)
    assert resumed.status is JobStatus.QUEUED


@pytest.mark.sampled(2)
async def test_old_jobs_are_deleted_without_reading_their_requests(store: Store) -> None:
    for _ in range(20):
        await finished(store, [1.0])
    large = text("UPDATE jobs SET request = :request").bindparams(request="x" * (2 << 20))
    await store.database.change_rows(large)
    tracemalloc.start()
    assert await tables(store).jobs.delete_ended(datetime.now(UTC) + timedelta(days=1)) == 20
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20 << 20, "half of the requests must not be in memory"


async def test_an_old_job_that_ends_again_as_old_jobs_are_deleted_is_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, jobs, fetch_all = await failed_job(store), tables(store).jobs, store.database.fetch_all

    async def fetched_before_it_ran(query: Any) -> Any:
        found = await fetch_all(query)
        monkeypatch.undo()
        again = await jobs.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)
        assert again.status is JobStatus.QUEUED
        assert await tables(store).job_queue.claim_job(await jobs.get_job(WORKSPACE, job.id), "host")
        await tables(store).job_queue.release_job(job.id, "host", JobStatus.COMPLETED)
        return found

    monkeypatch.setattr(store.database, "fetch_all", fetched_before_it_ran)
    assert job.finished_at is not None
    assert await jobs.delete_ended(job.finished_at + timedelta(microseconds=1)) == 0
    assert (await jobs.get_job(WORKSPACE, job.id)).status is JobStatus.COMPLETED
    assert await jobs.delete_ended(datetime.now(UTC) + timedelta(days=1)) == 1
