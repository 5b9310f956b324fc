"""A host that owns a job counts as alive as long as it writes to the database, even if its clock is wrong; no row is
scored twice.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.platform.jobs.schema import JobTable
from evaluator_host.types.jobs import JobReport, JobStatus
from tests.jobs.desk import WORKSPACE, Desk, opened
from tests.store.records import result
from tests.tables import tables

SILENT_S = 1.0
# the name of an owner on another machine where the first pid namespace has the same number: no host here can find out
# whether the process is alive
ELSEWHERE = f"host-0123456789ab-{this_instance().split('-')[2]}-4194305-1.1"


async def owner_elsewhere(desk: Desk, job: JobReport, *, ahead: timedelta) -> asyncio.Task[None]:
    """Act as a host on another machine, whose clock is fast by `ahead`: score some rows, and claim to work on the rest.

    Return the task that goes on claiming this until it is cancelled.
    """
    assert await tables(desk.store).job_queue.claim_job(
        await tables(desk.store).jobs.get_job(WORKSPACE, job.id), ELSEWHERE
    )
    await tables(desk.store).job_queue.save(job.id, ELSEWHERE, [result(row) for row in range(0, 300, 3)])

    async def beat() -> None:
        while True:
            now = {"heartbeat_at": datetime.now(UTC) + ahead}
            async with desk.store.database.transaction() as connection:
                await connection.execute(update(JobTable).where(JobTable.id == job.id).values(**now))
            await asyncio.sleep(0.1)

    return asyncio.create_task(beat())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("database_url", "hours"),
    # the owner's clock is an hour fast or an hour slow
    [("sqlite", 1), pytest.param("postgresql", -1, marks=pytest.mark.engine)],
    indirect=["database_url"],
)
@pytest.mark.slow
async def test_an_owner_loses_its_job_once_it_is_silent_and_not_before(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    monkeypatch.setattr("evaluator_host.platform.jobs.scheduler.SILENT_S", SILENT_S)
    monkeypatch.setattr("evaluator_host.platform.jobs.scheduler.LOOK_EVERY_S", 0.1)
    async with opened(database_url, tmp_path, jobs_at_once=0) as idle:
        job = await idle.start(["ok"] * 300)
        lives = await owner_elsewhere(idle, job, ahead=timedelta(hours=hours))
        async with opened(database_url, tmp_path) as successor:
            await asyncio.sleep(2.5 * SILENT_S)
            kept = await tables(successor.store).jobs.get_job(WORKSPACE, job.id)
            assert (kept.owner, kept.done) == (ELSEWHERE, 100)
            lives.cancel()
            ended = await successor.ended(job)
            assert (ended.status, ended.progress.done) == (JobStatus.COMPLETED, 300)
            assert await successor.rows_of(job) == list(range(300))
            assert await tables(idle.store).job_queue.save(job.id, ELSEWHERE, [result(1)]) is None


@pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.engine)], indirect=True
)
async def test_a_job_whose_owner_is_silent_shows_no_rate(database_url: str, tmp_path: Path) -> None:
    async with opened(database_url, tmp_path, jobs_at_once=0) as desk:
        job = await desk.start(["ok"] * 300)
        assert await tables(desk.store).job_queue.claim_job(
            await tables(desk.store).jobs.get_job(WORKSPACE, job.id), ELSEWHERE
        )
        await tables(desk.store).job_queue.save(job.id, ELSEWHERE, [result(row) for row in range(100)], running_s=1.0)
        progress = (await desk.board.get_job(WORKSPACE, job.id)).progress
        assert (progress.rows_per_s, progress.eta_s) == (100, 2)
        kept = await tables(desk.store).jobs.get_job(WORKSPACE, job.id)
        assert kept.heartbeat_at is not None
        ago = {"heartbeat_at": kept.heartbeat_at - timedelta(seconds=20)}
        async with desk.store.database.transaction() as connection:
            await connection.execute(update(JobTable).where(JobTable.id == job.id).values(**ago))
        progress = (await desk.board.get_job(WORKSPACE, job.id)).progress
        assert (progress.rows_per_s, progress.eta_s) == (None, None)
