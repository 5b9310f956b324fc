"""Jobs of several workspaces share a host's slots for rows. A job during which two hosts died does not run a third
time.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.types.errors import InUse
from evaluator_host.types.evaluator import Evaluator, Limits
from evaluator_host.types.jobs import JobReport, JobStatus
from tests.jobs.desk import ON_EACH_DATABASE, WORKSPACE, Desk, opened
from tests.store.records import result
from tests.tables import tables

SLOW = Evaluator("ok", limits=Limits(timeout_s=0.1))  # a row that hangs for a tenth of a second
ENDLESS = Evaluator("ok", limits=Limits(timeout_s=100))
RUNNING, QUEUED = JobStatus.RUNNING, JobStatus.QUEUED


@pytest.fixture
async def desk(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setattr("evaluator_host.platform.jobs.scheduler.TURN_S", 0.3)
    monkeypatch.setattr("evaluator_host.platform.jobs.scheduler.LOOK_EVERY_S", 0.05)
    async with opened(database_url, tmp_path, jobs_at_once=3) as made:
        yield made


async def neighbour(desk: Desk) -> str:
    return (await desk.store.workspaces.ensure_workspace("neighbour")).id


async def states(desk: Desk, jobs: list[JobReport]) -> list[JobStatus]:
    return [(await desk.board.get_job(WORKSPACE, job.id)).status for job in jobs]


@ON_EACH_DATABASE
@pytest.mark.slow
async def test_jobs_of_one_workspace_make_room_for_another_and_lose_no_row(desk: Desk) -> None:
    loud = [await desk.start(["hang"] * 12, evaluators=[SLOW], parallelism=1) for _ in range(3)]
    for job in loud:
        await desk.reached(job, status=RUNNING)
    quiet = await neighbour(desk)
    ended = await desk.ended(await desk.start(["ok"], workspace=quiet), workspace=quiet)
    assert (ended.status, ended.progress.done) == (JobStatus.COMPLETED, 1)
    assert JobStatus.COMPLETED not in await states(desk, loud)
    for job in loud:
        ended = await desk.ended(job)
        assert (ended.status, ended.progress.done) == (JobStatus.COMPLETED, 12)
        assert await desk.rows_of(job) == list(range(12))


@pytest.mark.slow
async def test_a_place_is_left_once_another_workspace_is_known(desk: Desk) -> None:
    quiet = await neighbour(desk)
    await desk.ended(await desk.start(["ok"], workspace=quiet), workspace=quiet)
    loud = [await desk.start(["hang"], evaluators=[ENDLESS]) for _ in range(5)]
    for job in loud[:2]:
        await desk.reached(job, status=RUNNING)
    await desk.ended(await desk.start(["ok"], workspace=quiet), workspace=quiet)
    assert await states(desk, loud) == [RUNNING, RUNNING, QUEUED, QUEUED, QUEUED]


async def test_alone_a_workspace_has_every_place_and_keeps_it(desk: Desk) -> None:
    # the limits differ, so no sandbox is shared
    own = [replace(SLOW, limits=replace(SLOW.limits, memory_mb=128 + n)) for n in range(4)]
    loud = [await desk.start(["hang"] * 200, evaluators=[one], parallelism=1) for one in own]
    for job in loud[:3]:
        await desk.reached(job, done=4)
    assert await states(desk, loud) == [RUNNING, RUNNING, RUNNING, QUEUED], (
        "a job must not give way to another job of the same workspace"
    )


@pytest.fixture
def dead_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make hosts count as dead if their names begin with `dead`."""
    monkeypatch.setattr("evaluator_host.platform.jobs.scheduler.is_dead", lambda owner: owner.startswith("dead"))
    monkeypatch.setattr("evaluator_host.platform.jobs.scheduler.LOOK_EVERY_S", 0.05)


async def claimed(desk: Desk, job: JobReport, owner: str) -> None:
    assert await tables(desk.store).job_queue.claim_job(await tables(desk.store).jobs.get_job(WORKSPACE, job.id), owner)


@pytest.mark.usefixtures("dead_hosts")
@ON_EACH_DATABASE
@pytest.mark.slow
async def test_a_job_that_ended_two_hosts_is_failed(database_url: str, tmp_path: Path) -> None:
    async with opened(database_url, tmp_path, jobs_at_once=0) as idle:
        deadly, stored, released = [await idle.start(["ok"] * 5) for _ in range(3)]
        queue = tables(idle.store).job_queue
        for job in (deadly, stored, released):
            await claimed(idle, job, "dead-1")
        await queue.save(stored.id, "dead-1", [result(0)])
        await queue.release_job(released.id, "dead-1", QUEUED)
        for job in (deadly, stored, released):
            await claimed(idle, job, "dead-2")
        async with opened(database_url, tmp_path) as successor:
            ended = await successor.ended(deadly)
            assert ended.status is JobStatus.FAILED
            assert ended.error is not None
            assert (ended.error.code, "2 hosts stopped" in ended.error.message) == ("host_ended", True)
            for job in (stored, released):
                ended = await successor.ended(job)
                assert (ended.status, ended.progress.done) == (JobStatus.COMPLETED, 5)
            resumed = await successor.board.set_desired_state(WORKSPACE, deadly.id, DesiredState.RUN)
            assert (resumed.error, resumed.status.final) == (None, False)
            ended = await successor.ended(deadly)
            assert (ended.status, ended.error, ended.progress.done) == (JobStatus.COMPLETED, None, 5)
            with pytest.raises(InUse, match="completed"):
                await successor.board.set_desired_state(WORKSPACE, deadly.id, DesiredState.RUN)


@pytest.mark.usefixtures("dead_hosts")
@ON_EACH_DATABASE
async def test_jobs_that_may_have_ended_a_host_run_one_after_the_other(database_url: str, tmp_path: Path) -> None:
    async with opened(database_url, tmp_path, jobs_at_once=0) as idle:
        first, second, third = [await idle.start(["hang"], evaluators=[ENDLESS]) for _ in range(3)]
        for job in (first, second):
            await claimed(idle, job, "dead-1")
        async with opened(database_url, tmp_path) as successor:
            await successor.reached(first, status=RUNNING)
            await successor.reached(third, status=RUNNING)
            await asyncio.sleep(0.3)
            kept = await tables(successor.store).jobs.get_job(WORKSPACE, second.id)
            assert (kept.owner, kept.attempts) == ("dead-1", 1), "the second job must not run beside the first"
