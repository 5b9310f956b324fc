"""A page of a job's results costs the same, however many rows the job has. The cost of a download grows only as fast as
the number of rows.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import func, select

from evaluator_host.platform.jobs import table
from evaluator_host.platform.jobs.queue import StoredResult
from evaluator_host.platform.jobs.records import Job
from evaluator_host.platform.jobs.results.table import Filter, Sort
from evaluator_host.platform.jobs.schema import ResultTable
from evaluator_host.platform.store.database import DatabaseKind
from evaluator_host.platform.store.store import Store
from evaluator_host.types.jobs import JobStatus
from tests.databases import EACH_ENGINE, Databases, opened_store
from tests.growth.counted import Count, cost, learn
from tests.store.records import queued
from tests.tables import tables

FEW, TIMES, EVALUATORS = 2000, 4, 3
# maximum factor for costs that must not grow with the rows, and for costs that may grow with the rows
SAME, WITH_THE_ROWS = 1.5, 1.25 * TIMES
_LIMIT = 20
_EVERY, _FAILED, _PASSED = Filter(), Filter(status="failed"), Filter(passed=True)
_FILTERS = (
    _EVERY,
    Filter(1),
    _FAILED,
    Filter(0, status="scored"),
    _PASSED,
    Filter(0, passed=False),
    Filter(error_code="timeout"),
)
_BY_INDEX = [(Sort.ROW, which) for which in _FILTERS]
_BY_INDEX += [(sort, which) for sort in (Sort.SCORE, Sort.SCORE_DOWN, Sort.STATUS) for which in (_EVERY, Filter(1))]
_BY_INDEX += [(Sort.SCORE, Filter(min_score=0.5)), (Sort.SCORE_DOWN, Filter(max_score=0.5))]
_BY_A_PASS = [(sort, which) for sort in (Sort.RUN_MS, Sort.RUN_MS_DOWN) for which in (_EVERY, Filter(1), _FAILED)]
_BY_A_PASS += [(Sort.ROW, Filter(min_score=0.98)), (Sort.SCORE, _FAILED), (Sort.SCORE_DOWN, _PASSED)]


@dataclass(frozen=True)
class Jobs:
    store: Store
    few: Job
    many: Job

    async def of_both(self, work: Callable[[Job], Awaitable[object]]) -> list[Count]:
        """Return the cost of some work for each of the two jobs."""
        return [await cost(tables(self.store).results._database, partial(work, job)) for job in (self.few, self.many)]

    async def page(self, job: Job, which: Filter, sort: Sort) -> Count:
        """Return the cost of the second page of a job's results."""
        first, cursor = await tables(self.store).results.page(job.id, which, sort=sort, limit=_LIMIT)
        assert cursor is not None, "there is only one page"
        assert len(first) == _LIMIT

        async def second() -> None:
            page, _ = await tables(self.store).results.page(job.id, which, sort=sort, cursor=cursor, limit=_LIMIT)
            assert len(page) == _LIMIT

        return await cost(tables(self.store).results._database, second)


def _result(row: int, position: int) -> StoredResult:
    """Return the result of a row. One in fifty rows has failed, and one in three rows has one of two scores that many
    rows share.
    """
    if row % 50 == 7:
        return StoredResult(position, row, "failed", None, None, "timeout", 1.0, "{}", "{}")
    score = (row % 2) * 0.5 if row % 3 == 0 else (row * 7919 % 10007) / 10007
    return StoredResult(
        position, row, "scored", score, row % 25 > 0, None, row * 7919 % 20011, json.dumps({"score": score}), "{}"
    )


async def _filled(store: Store, rows: int) -> Job:
    job = await queued(store, rows=rows, count=EVALUATORS)
    await tables(store).job_queue.claim_job(job, "host")
    for first in range(0, rows, FEW):
        part = range(first, first + FEW)
        results = [_result(row, position) for row in part for position in range(EVALUATORS)]
        await tables(store).job_queue.save(job.id, "host", results)
    return job


@pytest.fixture(scope="module", params=EACH_ENGINE)
async def jobs(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Jobs]:
    async with opened_store(databases.make(request.param), tmp_path_factory.mktemp("store")) as store:
        few, many = await _filled(store, FEW), await _filled(store, TIMES * FEW)
        await learn(store)
        yield Jobs(store, few, many)


@pytest.mark.sampled(15)
@pytest.mark.parametrize(("sort", "which"), _BY_INDEX)
async def test_a_page_costs_the_same_of_a_larger_job(jobs: Jobs, sort: Sort, which: Filter) -> None:
    few, many = [await jobs.page(job, which, sort) for job in (jobs.few, jobs.many)]
    assert many.statements <= few.statements
    assert many.read <= SAME * few.read


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("sort", "which"), _BY_A_PASS)
async def test_each_statement_of_a_page_without_an_index_is_one_pass(jobs: Jobs, sort: Sort, which: Filter) -> None:
    few, many = [await jobs.page(job, which, sort) for job in (jobs.few, jobs.many)]
    assert many.statements <= few.statements
    if tables(jobs.store).results._database.address.engine is DatabaseKind.SQLITE:
        assert many.read <= WITH_THE_ROWS * few.read
    else:  # here the database is free to choose another index, or to use no index
        assert many.read <= many.statements * (1 + TIMES) * FEW * EVALUATORS


@pytest.mark.parametrize("position", [None, 1])
async def test_chosen_rows_cost_the_same_of_a_larger_job(jobs: Jobs, position: int | None) -> None:
    chosen = (3, FEW // 2, FEW - 1)

    async def page(job: Job) -> None:
        found, _ = await tables(jobs.store).results.page(job.id, Filter(position, rows=chosen), limit=1000)
        assert sorted({one.row for one in found}) == [*chosen]

    few, many = await jobs.of_both(page)
    assert many.statements <= few.statements
    assert many.read <= SAME * few.read


async def test_a_deletion_is_one_pass(databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_DELETED_AT_ONCE", 100)
    async with opened_store(databases.make("sqlite"), tmp_path) as store:
        found = []
        for rows in (FEW, TIMES * FEW):
            job = await _filled(store, rows)
            await tables(store).job_queue.release_job(job.id, "host", JobStatus.COMPLETED)
            found.append(await cost(store.database, partial(tables(store).jobs.delete_job, job.workspace_id, job.id)))
            assert await store.database.fetch_value(select(func.count()).select_from(ResultTable)) == 0
        few, many = found
        assert many.read <= WITH_THE_ROWS * few.read


@pytest.mark.sampled(3)
@pytest.mark.parametrize("which", [_EVERY, Filter(1), _FAILED])
async def test_a_download_is_one_pass(jobs: Jobs, which: Filter) -> None:
    async def download(job: Job) -> None:
        found = [(one.row, one.position) async for one in tables(jobs.store).results.every(job.id, which)]
        assert found == sorted(set(found))

    few, many = await jobs.of_both(download)
    assert many.statements <= WITH_THE_ROWS * few.statements
    assert many.read <= WITH_THE_ROWS * few.read


async def test_a_download_from_a_row_on_does_not_read_those_before(jobs: Jobs) -> None:
    async def rest(job: Job) -> None:
        results = tables(jobs.store).results
        page, cursor = await results.page(job.id, _EVERY, cursor=results.after_row(job.rows - _LIMIT - 1), limit=1000)
        assert [one.row for one in page[::EVALUATORS]] == list(range(job.rows - _LIMIT, job.rows))
        assert cursor is None

    few, many = await jobs.of_both(rest)
    assert many.statements <= few.statements
    assert many.read <= SAME * few.read


@pytest.mark.sampled(4)
@pytest.mark.parametrize("which", [_EVERY, Filter(1), _FAILED, Filter(2, status="scored")])
async def test_a_count_by_status_reads_tallies(jobs: Jobs, which: Filter) -> None:
    counts = [sum([1 async for _ in tables(jobs.store).results.every(job.id, which)]) for job in (jobs.few, jobs.many)]
    assert [await tables(jobs.store).results.count(job.id, which) for job in (jobs.few, jobs.many)] == counts
    few, many = await jobs.of_both(lambda job: tables(jobs.store).results.count(job.id, which))
    assert many.read <= SAME * few.read


async def test_the_results_of_one_row_are_found_without_the_others(jobs: Jobs) -> None:
    few, many = await jobs.of_both(lambda job: tables(jobs.store).results.of_row(job.id, FEW // 2))
    assert many.statements <= few.statements
    assert many.read <= SAME * few.read


@pytest.mark.sampled(44)
@pytest.mark.parametrize("sort", Sort)
@pytest.mark.parametrize("which", _FILTERS)
async def test_pages_give_what_sorting_all_results_gives(jobs: Jobs, sort: Sort, which: Filter) -> None:
    """All pages of a job together have the same results in the same order as a sorted list of all results. The job has
    several evaluators, and some pages end between rows with equal values.
    """
    everything = [_result(row, position) for row in range(FEW) for position in range(EVALUATORS)]
    expected = [one for one in everything if _matches(one, which)]
    name = sort.removeprefix("-")
    if sort is not Sort.ROW:
        down = -1 if sort.startswith("-") else 1
        with_value = [one for one in expected if getattr(one, name) is not None]
        without = [one for one in expected if getattr(one, name) is None]
        with_value.sort(key=lambda one: getattr(one, name) if name == "status" else down * getattr(one, name))
        expected = with_value + without
    found: list[StoredResult] = []
    cursor = None
    while cursor is not None or not found:
        page, cursor = await tables(jobs.store).results.page(jobs.few.id, which, sort=sort, cursor=cursor, limit=701)
        found += page
    assert [(one.row, one.position) for one in found] == [(one.row, one.position) for one in expected]


def _matches(one: StoredResult, which: Filter) -> bool:
    wanted = {
        "position": which.position,
        "status": which.status,
        "passed": which.passed,
        "error_code": which.error_code,
    }
    return all(value is None or getattr(one, name) == value for name, value in wanted.items())
