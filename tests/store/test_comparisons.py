"""Means of jobs are compared with those of earlier jobs over the same rows, on both databases."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import select, update

from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.files import RowsFolder
from evaluator_host.platform.jobs.queue import _first_reliable
from evaluator_host.platform.jobs.results.aggregate import aggregate
from evaluator_host.platform.jobs.results.compared_jobs import JobComparisons
from evaluator_host.platform.jobs.results.comparison import ComparedRows, Side
from evaluator_host.platform.jobs.schema import JobEvaluatorTable
from evaluator_host.platform.jobs.spec import StoredSpec, spec_to_json
from evaluator_host.platform.store.store import Store
from evaluator_host.platform.terminal.job_tables import comparison_table
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.jobs import Failures
from tests.store.records import WORKSPACE, finished
from tests.tables import tables


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("before", "after", "excluded", "zero"),
    [
        ([1.0, 0.0, 0.5], [0.5, 0.5, 0.5], 0.0, 0.0),
        # in both jobs the same number of rows failed, but different rows
        ([1.0, 1.0, None], [None, 0.0, 1.0], None, pytest.approx(-1 / 3)),
        ([1.0, None, None], [1.0, None, None], 0.0, 0.0),
        ([0.1 + 0.2], [0.3], 0.0, 0.0),
        ([1.0, None, 0.0, 0.0], [0.0, 1.0, 0.0, None], None, 0.0),
    ],
)
async def test_a_mean_is_compared_with_one_over_the_same_rows(
    store: Store, before: list[float | None], after: list[float | None], excluded: float | None, zero: float | None
) -> None:
    await finished(store, before)
    job = await finished(store, after)
    [found] = (await tables(store).jobs.get_overview(WORKSPACE, job.id)).evaluators
    assert found.previous is not None
    changes = [replace(found, previous_is_zero=one).change(failures_are_zero=one) for one in (False, True)]
    assert changes == [excluded, zero]


async def test_a_mean_is_compared_with_the_last_one_that_can_be_relied_on(store: Store) -> None:
    nothing = [None, None, None]
    first, good = await finished(store, nothing), await finished(store, [1.0, 0.0, 0.5])
    broken, last = await finished(store, nothing), await finished(store, [0.5, 0.5, 1.0])
    found = {one.job.id: one.evaluators[0] for one in await tables(store).jobs.list_overviews(WORKSPACE, limit=4)}
    jobs = (first, good, broken, last)
    assert [found[one.id].previous_job for one in jobs] == [None, None, good.id, good.id]
    assert found[last.id].change(failures_are_zero=False) == pytest.approx(1 / 6)


@pytest.mark.parametrize("doubtful", [0, 1])
async def test_doubtful_scores_have_no_change(store: Store, doubtful: int) -> None:
    jobs = [await finished(store, [1.0, 0.0]), await finished(store, [0.0, 0.0])]
    chosen = update(JobEvaluatorTable).where(JobEvaluatorTable.job_id == jobs[doubtful].id).values(doubted=2)
    await store.database.change_rows(chosen)
    found = [(await tables(store).jobs.get_overview(WORKSPACE, one.id)).evaluators[0] for one in jobs]
    assert found[doubtful].doubt() == "2 of 2 scores are doubtful: see the warnings"
    assert (found[1].previous_job, found[1].change(failures_are_zero=False)) == (jobs[0].id, None)


async def test_a_job_that_was_deleted_meanwhile_is_not_the_previous_one(store: Store) -> None:
    job = await finished(store, [1.0])
    async with store.database.transaction() as connection:
        assert await _first_reliable(connection, [("deleted", 0), (job.id, 0)]) == (job.id, 0)


async def test_rounding_errors_are_not_changes_of_rows(store: Store) -> None:
    sides = [Side((await finished(store, [score] * 10)).id, 0, "exact", zero=False) for score in (0.1 + 0.2, 0.3)]
    rows = ComparedRows(tables(store).results, *sides)
    found = await rows.comparison(())
    assert (found.regressed, found.improved, found.metrics[-1].significant) == (0, 0, False)
    assert (await rows.changes(better=None, after=-1, limit=5)).changes == ()


async def test_a_comparison_counts_the_rows_that_only_one_job_has(store: Store) -> None:
    sides = [Side((await finished(store, [1.0] * rows)).id, 0, "exact", zero=False) for rows in (5, 3)]
    for before, after, only in ((*sides, (2, 0)), (*reversed(sides), (0, 2))):
        found = await ComparedRows(tables(store).results, before, after).comparison(())
        assert (found.only_before, found.only_after) == only
        assert "left out: 2 rows with a result only in the" in comparison_table(found, {}).plain


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("earlier", "versions", "previous"),
    [
        ([(1,)], (2,), [(0, 0)]),
        ([(1,)], (1, 2), [(0, 0), None]),
        ([(1,)], (2, 1), [None, (0, 0)]),
        ([(1, 2)], (2, 1), [(0, 1), (0, 0)]),
        ([(2,), (1,)], (1, 2), [(1, 0), (0, 0)]),
        ([(1, 2)], (1, 3), [(0, 0), (0, 1)]),
        ([(1, 2)], (3,), [None]),
        ([(1,)], (2, 3), [None, None]),
        ([(4,), (1, 2)], (3,), [(0, 0)]),
    ],
)
async def test_a_version_is_not_compared_with_another_one_of_its_own_job(
    store: Store, earlier: list[Sequence[int]], versions: Sequence[int], previous: list[tuple[int, int] | None]
) -> None:
    before = [await finished(store, [1.0], versions=one) for one in earlier]
    job = await finished(store, [1.0], versions=versions)
    table = JobEvaluatorTable
    query = select(table.previous_job, table.previous_position).where(table.job_id == job.id).order_by(table.position)
    found = [tuple(row) for row in await store.database.fetch_all(query)]
    assert found == [(None, None) if one is None else (before[one[0]].id, one[1]) for one in previous]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        ((1,), (2,), [(1, 2)]),
        ((1,), (1, 2), [(1, 1)]),
        ((2, 1), (1, 2), [(2, 2), (1, 1)]),
        ((1, 2), (3, 1), [(1, 1), (2, 3)]),
        ((1,), (2, 3), []),
        ((1, 2), (3,), []),
    ],
)
async def test_versions_are_compared_with_the_same_versions_if_there_are_several(
    store: Store, tmp_path: Path, before: Sequence[int], after: Sequence[int], pairs: list[tuple[int, int]]
) -> None:
    jobs, results, datasets = tables(store).jobs, tables(store).results, tables(store).datasets
    comparisons = JobComparisons(jobs, results, datasets, RowsFolder(tmp_path), LimitedProcesses(most=1))
    ids = [(await finished(store, [1.0], versions=versions)).id for versions in (before, after)]
    if pairs:
        found = await comparisons.compare(WORKSPACE, *ids)
        assert [(one.before, one.after) for one in found] == [(f"exact@{old}", f"exact@{new}") for old, new in pairs]
    else:
        with pytest.raises(InvalidRequest, match="no evaluator in common"):
            await comparisons.compare(WORKSPACE, *ids)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("before", "after", "to_excluded", "to_zero"),
    [
        ([1.0, None], [0.5, None], None, None),
        ([1.0, None], [0.5, 0.5], pytest.approx(0.0), None),
        ([1.0, 1.0], [0.5, None], None, pytest.approx(-0.75)),
        ([1.0, 1.0], [0.5, 0.5], -0.5, -0.5),
    ],
)
async def test_no_change_is_reported_between_means_that_count_failed_rows_differently(
    store: Store,
    before: list[float | None],
    after: list[float | None],
    to_excluded: float | None,
    to_zero: float | None,
) -> None:
    changes = []
    for old, new in ((Failures.ZERO, Failures.EXCLUDE), (Failures.EXCLUDE, Failures.ZERO)):
        await finished(store, before, failures=old)
        job = await finished(store, after, failures=new)
        [found] = (await tables(store).jobs.get_overview(WORKSPACE, job.id)).evaluators
        assert found.previous_is_zero is (old is Failures.ZERO)
        changes.append(found.change(failures_are_zero=new is Failures.ZERO))
    assert changes == [to_excluded, to_zero]


async def test_a_column_called_zero_does_not_count_failed_rows_as_0(store: Store) -> None:
    request = spec_to_json(StoredSpec(mapping={"failures": "zero"}))
    await finished(store, [1.0, None], request=request)
    job = await finished(store, [1.0, None])
    [found] = (await tables(store).jobs.get_overview(WORKSPACE, job.id)).evaluators
    assert found.previous_is_zero is False


async def test_means_of_the_largest_numbers_do_not_overflow(store: Store) -> None:
    await finished(store, [1.7e308, 1.7e308, -1.7e308, 1.7e308])
    (found,) = await tables(store).jobs.list_overviews(WORKSPACE, limit=1)
    assert found.evaluators[0].tally.mean_score(failures_are_zero=False) == 0.85e308


async def test_the_mean_of_a_job_is_that_of_its_results(store: Store) -> None:
    """The mean that is counted while rows are stored has all digits of the mean over the stored rows."""
    ways = ([0.1] * 7 + [0.7, 1e-9, 1 / 3], [1e16, 1.0, -1e16, 0.25], [1e-300, 1e300, 5e-324, -1e300])
    for scores in ways:
        job = await finished(store, [*scores])
        tally = (await tables(store).jobs.get_overview(WORKSPACE, job.id)).evaluators[0].tally
        counted = tally.mean_score(failures_are_zero=False)
        assert counted == aggregate("score", scores).mean == float(sum(map(Fraction, scores)) / len(scores))
