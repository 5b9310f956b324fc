"""Jobs with as many evaluators as a host allows do not block the event loop when they are created or listed."""

import gc
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert

from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.platform.jobs.schema import JobEvaluatorTable, JobTable
from evaluator_host.platform.store.database import row_values
from evaluator_host.types.evaluator import Evaluator, EvaluatorSettings
from evaluator_host.types.jobs import JobStatus
from tests.jobs.desk import ON_EACH_DATABASE, WORKSPACE, Desk, opened
from tests.loop_watch import held_s, watching
from tests.store.records import dataset, evaluators
from tests.tables import tables

JOBS, EVALUATORS = 120, 100


async def fill(desk: Desk) -> None:
    """Store completed jobs over the data set `wide`."""
    dataset_id = (await dataset(desk.store, "wide")).id
    same = {"workspace_id": WORKSPACE, "status": JobStatus.COMPLETED, "wanted": DesiredState.RUN, "request": "{}"}
    same |= {"dataset_id": dataset_id, "dataset_name": "wide", "rows": 1, "done": 1, "failed": 0, "running_s": 1.0}
    at = datetime(2026, 1, 1, tzinfo=UTC)
    wide = [replace(one, name=f"wide-{one.position}") for one in evaluators(EVALUATORS)]
    jobs = [{**same, "id": f"job_{n}", "created_at": at + timedelta(hours=n)} for n in range(JOBS)]
    scored = [{"job_id": job["id"], **row_values(one)} for job in jobs for one in wide]
    async with tables(desk.store).jobs._database.transaction() as connection:
        await connection.execute(insert(JobTable), jobs)
        await connection.execute(insert(JobEvaluatorTable), scored)


@pytest.mark.long("tests/growth has lists of many records")
async def test_lists_of_jobs_with_many_evaluators_do_not_hold_the_event_loop(database_url: str, tmp_path: Path) -> None:
    async with opened(database_url, tmp_path) as desk:
        await fill(desk)
        held = held_s()
        gc.collect()
        # a server also freezes its objects when it starts
        gc.freeze()
        with watching() as watch:
            history = await desk.board.history_of(WORKSPACE, "wide", limit=JOBS)
            parts = [part async for part in desk.board.overviews(WORKSPACE, limit=JOBS)]
            listed = await desk.board.list_jobs(WORKSPACE, limit=JOBS)
        gc.unfreeze()
        newest_first = [f"job_{n}" for n in reversed(range(JOBS))]
        assert [one.id for one in history.jobs] == newest_first[::-1]
        assert len(history.evaluators) == EVALUATORS
        assert all(score is not None for line in history.evaluators for score in line.scores)
        assert [one.job.id for part in parts for one in part] == newest_first
        assert max(map(len, parts)) < 10
        assert [one.id for one in listed] == newest_first
        assert watch.longest_s < held, watch.longest


@ON_EACH_DATABASE
async def test_a_job_with_many_long_evaluators_does_not_hold_the_event_loop(database_url: str, tmp_path: Path) -> None:
    long = [
        Evaluator("ok", settings=EvaluatorSettings(config={"text": f"{n}" + "x" * 300_000})) for n in range(EVALUATORS)
    ]
    async with opened(database_url, tmp_path) as desk:
        held = held_s()
        gc.collect()
        gc.freeze()
        with watching() as watch:
            job = await desk.ended(await desk.start(["ok"], evaluators=long))
            found = await desk.results.evaluators(WORKSPACE, job.id)
            grants = await desk.board.grants_of(job.id)
        gc.unfreeze()
        assert (job.status, job.progress.done, len(found), grants) == (JobStatus.COMPLETED, EVALUATORS, EVALUATORS, ())
        assert watch.longest_s < held, watch.longest
