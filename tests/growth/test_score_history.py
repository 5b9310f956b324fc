"""Reading the score history of a data set costs the same, however many jobs this and other data sets have."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import insert

from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.platform.jobs.schema import JobEvaluatorTable, JobTable
from evaluator_host.platform.store.database import row_values
from evaluator_host.platform.store.store import Store
from evaluator_host.types.jobs import JobStatus
from tests.databases import EACH_ENGINE, Databases, opened_store
from tests.growth.counted import Count, cost, learn
from tests.store.records import WORKSPACE, dataset, evaluators
from tests.tables import tables

SHOWN, FEW, TIMES = 5, 1000, 4
SAME: Final = 1.5  # a cost that grows by at most this factor counts as the same
SETS: Final = {"qa": datetime(2020, 1, 1, tzinfo=UTC), "other": datetime(2025, 1, 1, tzinfo=UTC)}
"""Data sets, each with the time at which its jobs begin. All jobs over the data set `other` are newer."""


@pytest.fixture(params=EACH_ENGINE)
async def store(request: pytest.FixtureRequest, databases: Databases, tmp_path: Path) -> AsyncIterator[Store]:
    # PostgreSQL's statistics about the rows of an earlier test would change how it reads
    async with opened_store(databases.make(request.param), tmp_path) as opened:
        yield opened


async def _add_jobs(store: Store, sets: dict[str, str], numbers: range) -> None:
    same = {"workspace_id": WORKSPACE, "status": JobStatus.COMPLETED, "wanted": DesiredState.RUN, "request": "{}"}
    same |= {"rows": 1, "done": 3, "failed": 0, "running_s": 1.0}
    jobs = [
        {
            **same,
            "id": f"{name}_{n}",
            "dataset_id": sets[name],
            "dataset_name": name,
            "created_at": begin + timedelta(hours=n),
        }
        for name, begin in SETS.items()
        for n in numbers
    ]
    scored = [{"job_id": job["id"], **row_values(one)} for job in jobs for one in evaluators(3)]
    async with tables(store).jobs._database.transaction() as connection:
        await connection.execute(insert(JobTable), jobs)
        await connection.execute(insert(JobEvaluatorTable), scored)
    await learn(store)


async def _cost(store: Store) -> Count:
    return await cost(
        tables(store).jobs._database, lambda: tables(store).jobs.list_completed(WORKSPACE, "qa", limit=SHOWN)
    )


async def test_the_newest_jobs_are_found_without_the_others(store: Store) -> None:
    sets = {name: (await dataset(store, name)).id for name in SETS}
    await _add_jobs(store, sets, range(FEW))
    few = await _cost(store)
    await _add_jobs(store, sets, range(FEW, TIMES * FEW))
    many = await _cost(store)
    newest = [job.id for job, _ in await tables(store).jobs.list_completed(WORKSPACE, "qa", limit=SHOWN)]
    assert newest == [f"qa_{n}" for n in range(TIMES * FEW - 1, TIMES * FEW - 1 - SHOWN, -1)]
    assert len([one for one, _ in many.asked if one.startswith("SELECT")]) == 2
    assert many.statements <= few.statements
    assert many.read <= SAME * few.read
