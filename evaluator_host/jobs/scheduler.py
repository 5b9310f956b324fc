"""Claims and runs jobs, queued ones and those of dead hosts: a few at once, workspaces in turn."""

import asyncio
import functools
import itertools
import logging
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from evaluator_host.jobs.run import JobContext, JobRun
from evaluator_host.model.errors import StoreUnavailable
from evaluator_host.sandbox.linux.instance import is_dead, this_instance
from evaluator_host.store.jobs import DesiredState, Job, Jobs

LOOK_EVERY_S: Final = 2.0  # for jobs that other hosts queued; this host wakes its scheduler itself
SILENT_S: Final = 15.0  # an owner without a heartbeat for so long counts as dead

_log = logging.getLogger(__name__)
_numbers: Final = itertools.count(1)


def owner_name() -> str:
    """Return a unique name for a scheduler of this process; `is_dead` tells from the name whether the process lives."""
    return f"{this_instance()}.{next(_numbers)}"


@dataclass(frozen=True, slots=True)
class _Beat:
    """The last heartbeat of an owner, and the monotonic time at which this host noticed it."""

    owner: str | None
    at: datetime | None
    noticed: float


class Scheduler:
    """Runs the jobs of this host. Bound to one event loop.

    Args:
      context: What every job needs.
      jobs: Of the store.
      at_once: Most jobs that run at a time.
    """

    def __init__(self, context: JobContext, jobs: Jobs, *, at_once: int) -> None:
        self._context = context
        self._jobs = jobs
        self._at_once = at_once
        self._running: dict[str, tuple[Job, JobRun, asyncio.Task[None]]] = {}
        self._beats: dict[str, _Beat] = {}
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Claim and run jobs until cancelled; then store the results of running jobs and release them as queued."""
        try:
            while True:
                try:
                    await self._claim_jobs()
                except StoreUnavailable as error:
                    _log.warning("no job is started: %s", error.detail)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), LOOK_EVERY_S)
                self._wake.clear()
        finally:
            tasks = [task for _, _, task in self._running.values()]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    def wake(self) -> None:
        """Check for jobs to run now."""
        self._wake.set()

    def set_desired_state(self, job_id: str, desired: DesiredState) -> None:
        """Stop a job running on this host at once, not only after its next write."""
        if job_id in self._running:
            self._running[job_id][1].set_desired_state(desired)

    async def _claim_jobs(self) -> None:
        while len(self._running) < self._at_once and (job := await self._next()) is not None:
            if await self._context.queue.claim_job(job, self._context.owner):
                run = JobRun(self._context, job, await self._jobs.evaluators(job.id))
                task = asyncio.create_task(run.run())
                self._running[job.id] = (job, run, task)
                task.add_done_callback(functools.partial(self._ended, job.id))

    async def _next(self) -> Job | None:
        """Return the oldest waiting job of the workspace with the fewest running jobs."""
        waiting = await self._context.queue.waiting()
        running = await self._context.queue.running()
        silent = self._silent(running)
        orphans = [job for job in running if job.id in silent or (job.owner and is_dead(job.owner))]
        found = {job.id: job for job in (*orphans, *waiting) if job.id not in self._running}
        at_work = Counter(job.workspace_id for job, _, _ in self._running.values())
        return min(found.values(), key=lambda job: (at_work[job.workspace_id], job.created_at), default=None)

    def _silent(self, running: list[Job]) -> set[str]:
        """Return the jobs whose owner has written no heartbeat for `SILENT_S` seconds of this host's monotonic clock.

        Only a change of the heartbeat counts, not its time: the clocks of hosts differ, and may be set.
        """
        now, seen = time.monotonic(), {}
        for job in running:
            last = self._beats.get(job.id)
            same = last is not None and (last.owner, last.at) == (job.owner, job.heartbeat_at)
            seen[job.id] = last if last is not None and same else _Beat(job.owner, job.heartbeat_at, now)
        self._beats = seen
        return {job_id for job_id, beat in seen.items() if now - beat.noticed > SILENT_S}

    def _ended(self, job_id: str, task: asyncio.Task[None]) -> None:
        del self._running[job_id]
        if not task.cancelled() and (fault := task.exception()) is not None:
            _log.error("job %s was dropped because of a fault of this host", job_id, exc_info=fault)
        self.wake()
