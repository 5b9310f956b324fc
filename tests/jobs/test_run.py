"""A job scores every row once, even if sandboxes, hosts or the database fail; it can be paused and cancelled, and has
limits.
"""

import asyncio
import csv
import errno
import io
import itertools
import json
import os
import time
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select, update

from evaluator_host.engine.sandbox.messages import LoadRequest
from evaluator_host.engine.sandbox.session import Sandbox
from evaluator_host.engine.service import attempts
from evaluator_host.engine.system.turns import Turns
from evaluator_host.platform.datasets.files import RowsFolder
from evaluator_host.platform.http.json_routes import LateRoute
from evaluator_host.platform.jobs import failures, result_writer, retries
from evaluator_host.platform.jobs.queue import JobQueue, StoredResult
from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.platform.jobs.results.compared_jobs import JobComparisons
from evaluator_host.platform.jobs.results.exports import JobExports
from evaluator_host.platform.jobs.results.routes import job_results_api
from evaluator_host.platform.jobs.results.table import Filter
from evaluator_host.platform.jobs.schema import ResultTable, SharedPartTable
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.platform.jobs.table import Jobs
from evaluator_host.platform.store import usage
from evaluator_host.types.errors import Busy, HostBusy, InUse, InvalidRequest, NotFound, OverQuota, StoreUnavailable
from evaluator_host.types.evaluator import Evaluator, EvaluatorSettings, Limits
from evaluator_host.types.formats import Format
from evaluator_host.types.jobs import Failures, JobConfig, JobStatus
from evaluator_host.types.outcome import EvaluationResult, Failed, Loaded
from tests import forked
from tests.jobs.desk import OK, ON_EACH_DATABASE, WORKSPACE, Desk, opened
from tests.tables import tables

BAD = Evaluator("bad")


def folders(desk: Desk) -> list[str]:
    return [path.name for path in desk.folder.path.iterdir()] if desk.folder.path.is_dir() else []


@pytest.mark.long
async def test_jobs_over_the_shards_of_a_data_set_merge_into_one_run(desk: Desk, tmp_path: Path) -> None:
    words = ["garbage" if number in (7, 30) else "ok" for number in range(50)]
    reader = desk.reader
    exports = JobExports(desk.results, reader)
    for number in range(3):
        job = await desk.ended(await desk.start(words, shard=f"{number}/3", failures=Failures.ZERO))
        due = list(range(number, 50, 3))
        assert (job.status, job.progress.rows, job.progress.done) == (JobStatus.COMPLETED, len(due), len(due))
        assert await desk.rows_of(job, 0) == due
        parts = [part async for part in exports.write(WORKSPACE, job.id, Format.JSONL, Filter())]
        (tmp_path / f"part-{number}.jsonl").write_bytes(b"".join(parts))
    merged = forked.run(("merge", *(f"part-{number}.jsonl" for number in (2, 0, 1)), "--json"), cwd=tmp_path)
    statistics = json.loads(merged.stdout)
    assert (statistics["rows"], statistics["failed"], statistics["mean_rows"], statistics["min"]) == (50, 2, 50, 0)
    part = tmp_path / "part-1.jsonl"
    part.write_text(part.read_text().replace(',"failures":"zero"}', "}"))
    mixed = forked.run(("merge", *(f"part-{number}.jsonl" for number in range(3))), cwd=tmp_path)
    assert (mixed.returncode, "counts failed rows as 0" in mixed.stderr) == (2, True)
    empty = await desk.ended(await desk.start(["ok"], shard="1/2"))
    assert (empty.status, empty.progress.rows) == (JobStatus.COMPLETED, 0)
    with pytest.raises(InvalidRequest, match="is not a shard"):
        await desk.start(["ok"], shard="3/3")


@ON_EACH_DATABASE
@pytest.mark.slow
async def test_every_evaluator_scores_every_row_once(desk: Desk) -> None:
    job = await desk.ended(await desk.start(["ok"] * 700, evaluators=[OK, "exact@1"]))
    assert (job.status, job.progress.rows, job.progress.done, job.progress.failed) == (
        JobStatus.COMPLETED,
        1400,
        1400,
        0,
    )
    assert job.evaluators == ("evaluator 1", "exact@1")
    assert job.started_at is not None
    assert job.finished_at is not None
    assert job.progress.eta_s is None
    for position in (0, 1):
        assert await desk.rows_of(job, position) == list(range(700))


@pytest.mark.slow
async def test_a_failing_row_never_fails_the_job(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["ok", "die", "ok", "garbage", "lost", "ok"] * 5
    monkeypatch.setattr(retries, "_PAUSE_S", 0.01)
    monkeypatch.setattr(retries, "_LONGEST_PAUSE_S", 0.01)
    job = await desk.ended(await desk.start(words))
    assert (job.status, job.progress.done, job.progress.failed) == (JobStatus.COMPLETED, 30, 15)
    assert await desk.rows_of(job) == list(range(30))


@pytest.mark.long
@pytest.mark.slow
async def test_rows_for_which_the_machine_has_no_time_are_tried_again_and_fail_alone_at_last(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "_ROW_PATIENCE", 2)
    monkeypatch.setattr(retries, "_PAUSE_S", 0.01)
    quick = Evaluator("ok", limits=Limits(timeout_s=0.05))
    job = await desk.ended(await desk.start(["ok", "late", *["ok"] * 20], evaluators=[quick]))
    assert (job.status, job.progress.done, job.progress.failed) == (JobStatus.COMPLETED, 22, 1)
    assert await desk.rows_of(job) == list(range(22))
    late = [call for link in desk.backend.links for call in link.calls if call["args"][1] == "late"]
    assert len(late) == 2 * 3


async def test_rows_whose_sandboxes_are_lost_are_tried_again_and_fail_alone_at_last(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "_ROW_PATIENCE", 3)
    monkeypatch.setattr(retries, "_PAUSE_S", 0.01)
    job = await desk.ended(await desk.start(["ok", "lost", *["ok"] * 20]))
    assert (job.status, job.progress.done, job.progress.failed) == (JobStatus.COMPLETED, 22, 1)
    lost = [call for link in desk.backend.links for call in link.calls if call["args"][1] == "lost"]
    assert len(lost) == 3 * 2


@pytest.mark.long
@pytest.mark.slow
async def test_loads_for_which_the_machine_has_no_time_fail_no_row(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "_PAUSE_S", 0.01)
    monkeypatch.setattr(attempts, "_PAUSES_S", (0.0, 0.0, 0.0))
    load, starvings = Sandbox.load, [HostBusy("no processor time")] * 11

    async def starved(sandbox: Sandbox, request: LoadRequest, **options: Any) -> Loaded | Failed:
        if starvings:
            raise starvings.pop()
        return await load(sandbox, request, **options)

    monkeypatch.setattr(Sandbox, "load", starved)
    job = await desk.ended(await desk.start(["ok"] * 300))
    assert (job.status, job.progress.done, job.progress.failed) == (JobStatus.COMPLETED, 300, 0)


async def test_fields_that_results_share_are_stored_once(desk: Desk) -> None:
    words = ["ok", "die"] * 20
    job = await desk.ended(await desk.start(words, evaluators=[OK, "exact@1"]))
    async with desk.store.database.reading() as connection:
        stored = list(await connection.scalars(select(ResultTable.result).where(ResultTable.job_id == job.id)))
        parts = list(await connection.scalars(select(SharedPartTable.content)))
    assert (len(stored), len(parts)) == (80, 2)
    assert not [text for text in stored if "digest" in text or '"metrics"' in text]
    rows = desk.reader
    page = await rows.page(WORKSPACE, job.id, Filter())
    names = [field.name for field in fields(EvaluationResult)]
    assert all(list(row.result) == names for row in page.rows)
    by_label = {(row.index, row.evaluator): row.result for row in page.rows}
    pasted, named = by_label[0, "evaluator 1"], by_label[0, "exact@1"]
    assert (pasted["evaluator"]["name"], named["evaluator"]["name"]) == (None, "exact")
    assert (pasted["metrics"], pasted["error"], pasted["warnings"]) == ({"score": 1.0}, None, [])
    failed = by_label[1, "exact@1"]
    assert (failed["status"], failed["error"]["code"], failed["metrics"]) == ("failed", "crashed", {})
    await desk.board.delete_job(WORKSPACE, job.id)
    async with desk.store.database.reading() as connection:
        assert not list(await connection.scalars(select(SharedPartTable.content)))


async def test_a_job_over_its_workspaces_quota_is_paused_and_goes_on_once_there_is_room(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(usage, "_MEASURED_S", 0.0)
    monkeypatch.setattr(desk.store.usage, "_quota", usage.Quota(workspace_bytes=4000, data_dir=tmp_path))
    with pytest.raises(OverQuota, match="more do not fit"):
        await desk.start(["ok"], evaluators=[Evaluator("ok" + " " * 4000)])
    job = await desk.start(["ok"] * 200)  # this job may begin, because the workspace stores nothing yet
    paused = await desk.reached(job, status=JobStatus.PAUSED)
    assert paused.error is not None
    assert (paused.error.code, paused.error.message.startswith("the workspace stores")) == ("over_quota", True)
    with pytest.raises(OverQuota):
        await desk.start(["ok"])
    monkeypatch.setattr(desk.store.usage, "_quota", usage.Quota())
    await desk.board.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)
    ended = await desk.ended(job)
    assert (ended.status, ended.progress.done, ended.error) == (JobStatus.COMPLETED, 200, None)
    assert await desk.rows_of(job) == list(range(200))


async def test_a_job_whose_rows_cannot_be_read_for_lack_of_descriptors_goes_on_when_there_are_some(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, lines = [], RowsFolder.lines

    def scarce(folder: RowsFolder, *args: Any, **options: Any) -> Any:
        opened.append(args)
        if len(opened) < 3:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return lines(folder, *args, **options)

    monkeypatch.setattr(RowsFolder, "lines", scarce)
    monkeypatch.setattr(retries, "_PAUSE_S", 0.01)
    ended = await desk.ended(await desk.start(["ok"] * 5))
    assert (ended.status, ended.progress.done, ended.error) == (JobStatus.COMPLETED, 5, None)


async def test_a_job_is_created_although_its_rows_are_removed_meanwhile(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job is created although its rows are removed at that moment. Deleting another data set also deletes every data
    set that has neither a name nor a job, and so the data set of this job.
    """
    removed, add_job = [], Jobs.add_job

    async def late(jobs: Jobs, *args: Any, **options: Any) -> Any:
        if not removed:
            await tables(desk.store).datasets.forget_unused(remove=removed.append)
            for dataset_id in removed:
                desk.folder.remove(dataset_id)
        return await add_job(jobs, *args, **options)

    monkeypatch.setattr(Jobs, "add_job", late)
    ended = await desk.ended(await desk.start(["ok"] * 5))
    assert (ended.status, ended.progress.done, len(removed)) == (JobStatus.COMPLETED, 5, 1)


async def test_rows_with_criteria_by_evaluator_ask_only_those(desk: Desk) -> None:
    first = Evaluator("ok", settings=EvaluatorSettings(config={"id": "First", "evaluatorConfig": {}}))
    asked: list[dict[str, object]] = [{"First": {}, "exact": None}, {"exact": None}, {"First": None}]
    rows = [{"inputs": {}, "outputs": "ok", "criteria_by_evaluator": one} for one in asked]
    rows[2]["agent_error"] = "boom"
    job = await desk.ended(await desk.board.create_job(JobSpec([first, "exact@1", BAD], rows), WORKSPACE))
    assert (job.status, job.progress.done, job.progress.failed) == (JobStatus.COMPLETED, 9, 1)
    assert job.evaluators == ("First", "exact@1", "evaluator 3")
    statistics = await desk.results.statistics(WORKSPACE, job.id)
    counts = [(one.scored, one.skipped, one.failed) for one in statistics.evaluators]
    assert counts == [(1, 1, 1), (2, 1, 0), (0, 3, 0)]
    assert statistics.evaluators[0].errors[0].code == "target_failed"
    assert statistics.evaluators[2].run_ms is None


async def test_metrics_of_rows_without_the_score_count(desk: Desk) -> None:
    job = await desk.ended(await desk.start(["ok"] * 5))
    for row, status, metrics in [(0, "scored", '{"b":1}'), (1, "skipped", '{"b":0.5}'), (2, "skipped", '{"b":0}')]:
        now = {"status": status, "metrics": metrics, **({"score": None} if status == "skipped" else {})}
        chosen = update(ResultTable).where(ResultTable.row == row).values(**now)
        await tables(desk.store).jobs._database.change_rows(chosen)
    (found,) = (await desk.results.statistics(WORKSPACE, job.id)).evaluators
    counts = {one.name: (one.count, one.mean, one.nan_count) for one in found.metrics}
    assert (found.skipped, counts) == (2, {"score": (3, 1.0, 0), "b": (3, 0.5, 2)})


async def test_an_evaluator_that_does_not_load_fails_its_rows_and_no_other_ones(desk: Desk) -> None:
    job = await desk.ended(await desk.start(["ok"] * 10, evaluators=[BAD, OK]))
    assert (job.status, job.progress.failed) == (JobStatus.COMPLETED, 10)
    statistics = await desk.results.statistics(WORKSPACE, job.id)
    assert [(one.scored, one.failed) for one in statistics.evaluators] == [(0, 10), (10, 0)]
    assert statistics.evaluators[0].errors[0].code == "syntax_error"


async def test_more_failures_than_allowed_end_the_job(desk: Desk) -> None:
    job = await desk.ended(await desk.start(["die"] * 50, max_failures=3, parallelism=1))
    assert job.status is JobStatus.FAILED
    assert job.error is not None
    assert (job.error.code, "allows at most 3" in job.error.message) == ("max_failures", True)
    assert job.error.row is not None
    assert job.error.message.startswith(f"row {job.error.row}: ")
    assert 3 < job.progress.done < 50
    failed = job.progress.failed
    resumed = await desk.board.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)
    assert (resumed.error, resumed.config.max_failures) == (None, failed + 3)
    again = await desk.ended(job)
    assert (again.status, failed + 3 < again.progress.failed < 50) == (JobStatus.FAILED, True)


async def test_the_statistics_of_a_resumed_job_are_those_of_its_last_end(desk: Desk) -> None:
    job = await desk.ended(await desk.start(["die", *["ok"] * 9], max_failures=0, parallelism=1))
    assert job.status is JobStatus.FAILED
    assert (await desk.results.statistics(WORKSPACE, job.id)).evaluators[0].rows < 10
    await desk.board.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)
    again = await desk.ended(job)
    statistics = (await desk.results.statistics(WORKSPACE, job.id)).evaluators[0]
    assert (again.status, statistics.scored, statistics.failed) == (JobStatus.COMPLETED, 9, 1)
    assert [one.name for one in statistics.metrics] == ["score"]


async def test_remembered_statistics_do_not_wait_for_a_turn(desk: Desk) -> None:
    job, other = [await desk.ended(await desk.start(["ok"] * 3)) for _ in range(2)]
    await desk.results.statistics(WORKSPACE, job.id)
    known, reader = tables(desk.store), desk.reader
    comparisons = JobComparisons(known.jobs, known.results, known.datasets, desk.folder, desk.processes)
    no_turns = Turns(1, queue_limit=0)
    api = job_results_api(desk.results, comparisons, reader, JobExports(desk.results, reader), turns=no_turns)
    (route,) = [one for one in api.routes if isinstance(one, LateRoute) and one.name == "statistics"]
    answer = await route.endpoint(job.id, WORKSPACE)
    assert [one["scored"] for one in json.loads(answer.body)["evaluators"]] == [3]
    with pytest.raises(Busy):
        await route.endpoint(other.id, WORKSPACE)


async def test_a_sample_is_the_first_rows(desk: Desk) -> None:
    job = await desk.ended(await desk.start(["ok"] * 10, limit_samples=4))
    assert (job.progress.rows, await desk.rows_of(job)) == (4, [0, 1, 2, 3])


async def test_the_csv_file_of_a_running_job_has_metrics_that_appear_later(desk: Desk) -> None:
    job = await desk.start(["ok"] * 520 + ["hang"])
    await desk.reached(job, done=520)
    parts = JobExports(desk.results, desk.reader).write(WORKSPACE, job.id, Format.CSV, Filter())
    begun = await anext(parts)  # the header, and the first 500 rows
    later = update(ResultTable).where(ResultTable.job_id == job.id, ResultTable.row == 510)
    await desk.store.database.change_rows(later.values(metrics='{"late":2.0}'))
    await desk.board.set_desired_state(WORKSPACE, job.id, DesiredState.CANCEL)
    text = (begun + b"".join([part async for part in parts])).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["metrics.score"] for row in rows[:520]} == {"1.0"}
    assert {row["index"]: row["metrics"] for row in rows if row["metrics"]} == {"510": '{"late":2.0}'}
    await desk.ended(job)


async def test_the_csv_file_has_every_column_of_a_wide_data_set(desk: Desk) -> None:
    wide = {f"c{number}": number for number in range(1001)}
    narrow = {"outputs": "ok", "c0": "0"}
    job = await desk.ended(await desk.board.create_job(JobSpec([OK], [narrow | wide, narrow]), WORKSPACE))
    parts = JobExports(desk.results, desk.reader).write(WORKSPACE, job.id, Format.CSV, Filter())
    rows = list(csv.DictReader(io.StringIO(b"".join([part async for part in parts]).decode())))
    assert [rows[0][f"row.c{number}"] for number in (0, 998)] == ["0", "998"]
    assert [row["row"] for row in rows] == ['{"c999":999,"c1000":1000}', ""]


async def test_a_cancelled_job_keeps_what_it_scored_and_stops_at_once(desk: Desk) -> None:
    job = await desk.start(["ok"] * 20 + ["hang"] * 20)
    await desk.reached(job, done=20)
    await desk.board.set_desired_state(WORKSPACE, job.id, DesiredState.CANCEL)
    ended = await desk.ended(job)
    assert (ended.status, ended.progress.done) == (JobStatus.CANCELLED, 20)
    assert desk.backend.alive <= 2
    with pytest.raises(InUse):
        await desk.board.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times at which watched jobs were read, in seconds."""
    asked: list[float] = []
    find = Jobs.find_overviews

    async def timed(self: Jobs, ids: list[str]) -> Any:
        asked.append(time.monotonic())
        return await find(self, ids)

    monkeypatch.setattr(Jobs, "find_overviews", timed)
    return asked


async def test_watchers_of_a_job_share_their_queries(desk: Desk, queries: list[float]) -> None:
    job = await desk.start(["hang"])
    watchers = [asyncio.create_task(desk.ended(job)) for _ in range(30)]
    await desk.reached(job, status=JobStatus.RUNNING)
    await desk.board.set_desired_state(WORKSPACE, job.id, DesiredState.CANCEL)
    assert {report.status for report in await asyncio.gather(*watchers)} == {JobStatus.CANCELLED}
    assert 1 <= len(queries) < len(watchers)


async def test_new_watchers_cause_at_most_ten_queries_a_second(desk: Desk, queries: list[float]) -> None:
    job = await desk.start(["hang"])
    watchers = []
    for _ in range(20):
        watchers.append(asyncio.create_task(desk.ended(job)))
        await asyncio.sleep(0.03)
    await desk.board.set_desired_state(WORKSPACE, job.id, DesiredState.CANCEL)
    await asyncio.gather(*watchers)
    assert len(queries) <= 1 + 10 * (queries[-1] - queries[0] + 0.1)


@ON_EACH_DATABASE
@pytest.mark.slow
async def test_a_paused_job_goes_on_where_it_was(desk: Desk) -> None:
    slow = Evaluator("ok", limits=Limits(timeout_s=0.2))
    job = await desk.start((["ok"] * 10 + ["hang"]) * 12, evaluators=[slow], parallelism=1)
    await desk.reached(job, done=1)
    await desk.board.set_desired_state(WORKSPACE, job.id, DesiredState.PAUSE)
    paused = await desk.reached(job, status=JobStatus.PAUSED)
    assert 0 < paused.progress.done < 132
    await asyncio.sleep(0.3)
    assert (await desk.board.get_job(WORKSPACE, job.id)).progress.done == paused.progress.done
    await desk.board.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)
    ended = await desk.ended(job)
    assert (ended.status, ended.progress.done, ended.progress.failed) == (JobStatus.COMPLETED, 132, 12)
    assert await desk.rows_of(job) == list(range(132))


@pytest.mark.slow
async def test_a_host_that_shuts_down_leaves_its_jobs_to_the_next_one(database_url: str, tmp_path: Path) -> None:
    async with opened(database_url, tmp_path) as first:
        job = await first.start(["ok"] * 30 + ["hang"])
        await first.reached(job, done=30)
    async with opened(database_url, tmp_path) as second:
        taken = await second.reached(job, status=JobStatus.RUNNING)
        assert taken.progress.done == 30
        await second.board.set_desired_state(WORKSPACE, job.id, DesiredState.CANCEL)
        assert (await second.ended(job)).progress.done == 30


@ON_EACH_DATABASE
@pytest.mark.slow
async def test_a_host_that_died_is_succeeded_and_no_row_is_scored_twice(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(database_url, tmp_path) as desk:
        monkeypatch.setattr("evaluator_host.platform.jobs.scheduler.this_instance", lambda: "host-000000000000-0-0-0")
        job = await desk.start(["ok"] * 1000)
        await desk.reached(job, done=1)
        kept = await tables(desk.store).jobs.get_job(WORKSPACE, job.id)
        monkeypatch.setattr("evaluator_host.platform.jobs.scheduler.is_dead", lambda owner: owner == kept.owner)
        # this second host takes the job although the first host still works on it
        async with opened(database_url, tmp_path) as successor:
            ended = await successor.ended(job)
            assert (ended.status, ended.progress.done) == (JobStatus.COMPLETED, 1000)
            assert await successor.rows_of(job) == list(range(1000))


@pytest.mark.long
@pytest.mark.slow
async def test_a_database_that_fails_for_a_while_loses_no_result(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    save, faults = JobQueue.save, iter([True, True])
    counted_s: list[float] = []
    clock = itertools.count()  # a second passes between two writes
    monkeypatch.setattr(result_writer, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))

    async def failing(self: JobQueue, job_id: str, owner: str, results: list[StoredResult], **more: float) -> object:
        counted_s.append(more["running_s"])
        if results and next(faults, False):
            # the results are stored, but the caller does not learn that
            await save(self, job_id, owner, results, **more)
            raise StoreUnavailable("the connection broke")
        return await save(self, job_id, owner, results, **more)

    monkeypatch.setattr(JobQueue, "save", failing)
    job = await desk.ended(await desk.start(["ok"] * 4000))
    assert (job.status, job.progress.done) == (JobStatus.COMPLETED, 4000)
    assert await desk.rows_of(job) == list(range(4000))
    assert list(faults) == []
    assert sum(counted_s) == len(counted_s), "no second of running time may be counted twice"


async def test_results_that_cannot_be_kept_end_the_job(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    save = JobQueue.save

    async def refusing(self: JobQueue, job_id: str, owner: str, results: list[StoredResult], **more: float) -> object:
        if results:
            raise InvalidRequest("a value cannot be kept")
        return await save(self, job_id, owner, results, **more)

    monkeypatch.setattr(JobQueue, "save", refusing)
    job = await desk.ended(await desk.start(["ok"] * 10))
    assert (job.status, job.progress.done) == (JobStatus.FAILED, 0)
    assert job.error is not None
    assert job.error.message == "a value cannot be kept"


@pytest.mark.slow
async def test_sandboxes_that_cannot_be_started_for_a_while_only_cost_time(desk: Desk) -> None:
    desk.backend.broken = True
    job = await desk.start(["ok"] * 10)
    await desk.reached(job, status=JobStatus.RUNNING)
    await asyncio.sleep(0.3)
    desk.backend.broken = False
    assert (await desk.ended(job)).progress.done == 10


@ON_EACH_DATABASE
async def test_the_same_idempotency_key_is_the_same_job(desk: Desk) -> None:
    order = JobSpec([OK], [{"inputs": {}, "outputs": "ok"}])
    made = [await desk.board.create_job(order, WORKSPACE, idempotency_key="k") for _ in range(2)]
    assert made[0].id == made[1].id
    assert len(await desk.board.list_jobs(WORKSPACE)) == 1


@pytest.mark.parametrize(
    ("order", "error", "match"),
    [
        (JobSpec([], [{"inputs": {}}]), InvalidRequest, "needs an evaluator"),
        (JobSpec([OK], []), InvalidRequest, "no row"),
        (JobSpec([OK], [7]), InvalidRequest, "an object, not a number"),
        (JobSpec([OK], "none"), NotFound, "no data set none"),
        (JobSpec(["other"], [{"inputs": {}}]), NotFound, "no evaluator other"),
        (JobSpec([OK], [{"inputs": {}}], mapping={"score": "a"}), InvalidRequest, "mapping"),
        (JobSpec([OK], [{"inputs": {}}], mapping={"outputs": "a" * 66_000}), InvalidRequest, "65,536 characters"),
        (JobSpec([OK], [{"inputs": {}}], mapping={"outputs": "{{ 9 ** 9 }}"}), InvalidRequest, "mapping"),
        (JobSpec([Evaluator("ok", limits=Limits(timeout_s=1e6))], [{"inputs": {}}]), InvalidRequest, "evaluator"),
    ],
)
async def test_a_job_that_cannot_run_is_refused_before_it_is_queued(
    desk: Desk, order: JobSpec, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        await desk.board.create_job(order, WORKSPACE)
    assert await desk.board.list_jobs(WORKSPACE) == []
    assert folders(desk) == []


async def test_rows_that_the_mapping_cannot_make_fail_by_themselves(desk: Desk) -> None:
    rows = [{"answer": "ok"}, {"other": 1}, {"answer": "ok"}]
    order = JobSpec([OK], rows, mapping={"outputs": "answer"}, config=JobConfig())
    job = await desk.ended(await desk.board.create_job(order, WORKSPACE))
    assert (job.progress.done, job.progress.failed) == (3, 1)
    found = await tables(desk.store).results.one(job.id, 0, 1)
    assert found is not None
    assert found.error_code == "binding_error"
    assert "no column 'answer'" in found.result


@ON_EACH_DATABASE
async def test_removing_a_job_removes_its_rows_and_results(desk: Desk) -> None:
    job = await desk.ended(await desk.start(["ok"]))
    assert len(folders(desk)) == 1
    await desk.board.delete_job(WORKSPACE, job.id)
    assert folders(desk) == []
    with pytest.raises(NotFound):
        await desk.board.get_job(WORKSPACE, job.id)
