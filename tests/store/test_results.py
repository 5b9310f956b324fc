"""The store returns pages of results in every order, with filters and statistics, on both databases."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from evaluator_host.platform.jobs.records import Job
from evaluator_host.platform.jobs.results.table import Filter, Sort
from evaluator_host.platform.store.store import Store
from evaluator_host.types.errors import InvalidRequest
from tests.databases import EACH_ENGINE, Databases, opened_store
from tests.store.records import queued, result
from tests.tables import tables

SCORES = (0.5, None, 1.0, 0.0, 0.5, None, -3.0, 0.5)


@pytest.fixture(scope="module", params=EACH_ENGINE)
async def store(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Store]:
    """A store on each kind of database in turn. The tests share its jobs and only read them; a test that changes a job
    creates a new job.
    """
    async with opened_store(databases.make(request.param), tmp_path_factory.mktemp("store")) as opened:
        yield opened


@pytest.fixture(scope="module")
async def job(store: Store) -> Job:
    made = await queued(store, rows=8, count=2)
    await tables(store).job_queue.claim_job(made, "host")
    results = [
        result(row, score, passed=None if score is None else score >= 0.5, error="timeout" if row == 5 else None)
        for row, score in enumerate(SCORES)
    ]
    await tables(store).job_queue.save(made.id, "host", results)
    await tables(store).job_queue.save(made.id, "host", [result(0, position=1)])
    return made


async def rows(store: Store, job: Job, which: Filter, sort: Sort = Sort.ROW, *, limit: int = 3) -> list[int]:
    found: list[int] = []
    cursor = None
    while True:
        page, cursor = await tables(store).results.page(job.id, which, sort=sort, cursor=cursor, limit=limit)
        assert len(page) <= limit
        found += [one.row for one in page]
        if cursor is None:
            return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("sort", "order"),
    [
        (Sort.ROW, [0, 1, 2, 3, 4, 5, 6, 7]),
        (Sort.SCORE, [6, 3, 0, 4, 7, 2, 1, 5]),
        (Sort.SCORE_DOWN, [2, 0, 4, 7, 3, 6, 1, 5]),
        (Sort.RUN_MS_DOWN, [7, 6, 5, 4, 3, 2, 1, 0]),
        (Sort.STATUS, [5, 0, 2, 3, 4, 6, 7, 1]),
    ],
)
async def test_pages_of_any_size_give_every_row_once_in_order(
    store: Store, job: Job, sort: Sort, order: list[int]
) -> None:
    for limit in (1, 2, 3, 100):
        assert await rows(store, job, Filter(0), sort, limit=limit) == order


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        (Filter(1), [0]),
        (Filter(0, status="failed"), [5]),
        (Filter(0, status="skipped"), [1]),
        (Filter(0, error_code="timeout"), [5]),
        (Filter(0, passed=True), [0, 2, 4, 7]),
        (Filter(0, passed=False), [3, 6]),
        (Filter(0, min_score=0.5), [0, 2, 4, 7]),
        (Filter(0, min_score=0.0, max_score=0.5), [0, 3, 4, 7]),
        (Filter(0, min_score=2.0, max_score=1.0), []),
        (Filter(0, status="scored", passed=True, max_score=0.5), [0, 4, 7]),
        (Filter(0, rows=(6, 2, 6, 99)), [2, 6]),
        (Filter(0, rows=(2, 5), status="failed"), [5]),
        (Filter(0, rows=()), []),
    ],
)
async def test_filters_hold_on_every_page(store: Store, job: Job, which: Filter, expected: list[int]) -> None:
    assert await rows(store, job, which) == expected


async def test_without_an_evaluator_a_row_comes_with_every_result_of_it(store: Store, job: Job) -> None:
    page, _ = await tables(store).results.page(job.id, Filter(), limit=2)
    assert [(one.row, one.position) for one in page] == [(0, 0), (0, 1)]


@pytest.mark.parametrize("cursor", ["", "00", "zz", "5b5d", b'["-score",1,1,1]'.hex(), b'["row",null,"1",0]'.hex()])
async def test_a_cursor_of_something_else_is_refused(store: Store, job: Job, cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        await tables(store).results.page(job.id, Filter(0), cursor=cursor)


async def test_statistics_and_downloads_pass_every_result_by_row(store: Store, job: Job) -> None:
    assert [one.row async for one in tables(store).results.values(job.id, 0)] == list(range(8))
    assert [(one.row, one.position) async for one in tables(store).results.every(job.id, Filter())][:3] == [
        (0, 0),
        (0, 1),
        (1, 0),
    ]
    found = [one async for one in tables(store).results.values(job.id, 0)]
    assert (found[5].status, found[5].error_code, found[2].metrics) == ("failed", "timeout", '{"score": 1.0}')


async def test_one_result_is_found_by_its_row(store: Store, job: Job) -> None:
    found = await tables(store).results.one(job.id, 0, 6)
    assert found is not None
    assert (found.score, found.result) == (-3.0, '{"row": 6}')
    assert await tables(store).results.one(job.id, 1, 6) is None


async def test_a_page_ends_where_its_results_would_be_too_large(store: Store) -> None:
    made = await queued(store, rows=6, count=1)
    await tables(store).job_queue.claim_job(made, "host")
    sizes = [10, 50_000, 50_000, 10, 200_000, 10]
    texts = [f'{{"status":"scored","score":{row},"reason":"{"é" * size}"}}' for row, size in enumerate(sizes)]
    await tables(store).job_queue.save(
        made.id, "host", [replace(result(row, float(row)), result=text) for row, text in enumerate(texts)]
    )
    pages, cursor = [], None
    while not pages or cursor is not None:
        page, cursor = await tables(store).results.page(made.id, Filter(), cursor=cursor, limit=5, most_bytes=101_000)
        assert all(one.result == texts[one.row] for one in page)
        pages.append([one.row for one in page])
    assert pages == [[0, 1, 2, 3], [4], [5]]
    brief, _ = await tables(store).results.page(made.id, Filter(), sort=Sort.SCORE_DOWN, limit=3, brief=True)
    assert [(one.row, one.result) for one in brief] == [(5, texts[5]), (4, texts[4][: 16 << 10]), (3, texts[3])]
