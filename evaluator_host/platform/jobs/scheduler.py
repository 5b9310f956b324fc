"""Claims and runs queued jobs and the jobs of hosts that died: a few at a time, shared out between workspaces.

As soon as there are two workspaces, no workspace may use all slots for running jobs (unless there is only one slot):
one slot is left for others. A job of the workspace with the most running jobs may go back to the queue after a minute.
The job goes back if another workspace has a queued job, and has no running job or at least two fewer running jobs.

Hosts may share a database but not a data directory, so a host claims only jobs with rows that it can read.

A job fails after two hosts in a row died while they ran it and stored nothing for it (`_TRIES`). Two jobs that each
lost their last host in this way do not run at the same time: a harmless job must not fail because of the other.
"""

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

from evaluator_host.engine.sandbox.linux.instance import is_dead, this_instance
from evaluator_host.engine.system.turns import most_slots
from evaluator_host.platform.jobs.ended import record_end
from evaluator_host.platform.jobs.failures import error_json
from evaluator_host.platform.jobs.records import DesiredState, Job, JobEvaluator
from evaluator_host.platform.jobs.run import JobContext, JobRun
from evaluator_host.platform.jobs.spec import spec_from_json
from evaluator_host.platform.jobs.table import Jobs
from evaluator_host.types.errors import StoreUnavailable
from evaluator_host.types.jobs import Executor, JobStatus

LOOK_EVERY_S: Final = 2.0  # seconds between two checks for jobs that other hosts have stored
SILENT_S: Final = 15.0  # seconds without a heartbeat after which the host that runs a job counts as dead

TURN_S: Final = 60.0  # seconds after which a running job that has stored something may be queued again
LONG_TURN_S: Final = 600.0  # seconds after which any running job may be queued again

# maximum number of other hosts' data sets to remember; small, because each query for jobs contains all of them
_ELSEWHERE_KEPT: Final = 1000
_TRIES: Final = 2  # how many hosts in a row may die while they run a job and store nothing for it
_STOP_S: Final = 1.0  # seconds for storing the results of running jobs when the host stops
_TOOK_HOSTS_DOWN: Final = (
    f"{_TRIES} hosts stopped one after the other while they ran this job, and stored no results in between, so the job "
    "is not run again. Its results so far are kept. The log of the host may say why the hosts stopped. If the job was "
    "not the cause, continue it with `jobs resume`; otherwise make a new job without the row or "
    "evaluator that caused it"
)

_log = logging.getLogger(__name__)
_numbers: Final = itertools.count(1)


def owner_name() -> str:
    """Return a unique name for a scheduler of this process; `is_dead(name)` returns whether the process has ended."""
    return f"{this_instance()}.{next(_numbers)}"


@dataclass(frozen=True, slots=True)
class _Beat:
    """The last heartbeat of an owner, and the monotonic time at which this host noticed it."""

    owner: str | None
    at: datetime | None
    noticed: float


class Scheduler:
    """Runs the jobs of this host. Use it in one event loop only."""

    def __init__(self, context: JobContext, jobs: Jobs, *, at_once: int) -> None:
        self._context = context
        self._jobs = jobs
        self._at_once = at_once
        self._running: dict[str, tuple[Job, JobRun, asyncio.Task[None]]] = {}
        # for each workspace: the number of its last claim; claims are numbered from 1
        self._served: dict[str, int] = {}
        self._claims = itertools.count(1)
        self._beats: dict[str, _Beat] = {}
        self._elsewhere: set[str] = set()  # data sets of waiting jobs, whose rows this host does not have
        self._wake = asyncio.Event()
        self._at_work_at = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds since a job last ran here, or since the start."""
        return 0.0 if self._running else time.monotonic() - self._at_work_at

    async def run(self) -> None:
        """Claim and run jobs until cancelled; then store the results of running jobs and release them as queued."""
        try:
            while True:
                try:
                    await self._claim_jobs()
                except StoreUnavailable as error:
                    _log.warning("no job can be started: %s", error.detail)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), LOOK_EVERY_S)
                self._wake.clear()
        finally:
            tasks = [task for _, _, task in self._running.values()]
            for _ in range(2):  # the first cancellation stops the runs; the second stops those that wait for the store
                for task in tasks:
                    task.cancel()
                if tasks:
                    await asyncio.wait(tasks, timeout=_STOP_S)
            if self._context.nodes is not None:
                await self._context.nodes.close()

    def wake(self) -> None:
        """Check for queued jobs now, before the next regular check."""
        self._wake.set()

    def set_desired_state(self, job_id: str, desired: DesiredState) -> None:
        """Pass a new desired state at once to a job that runs on this host, before the job next writes."""
        if job_id in self._running:
            self._running[job_id][1].set_desired_state(desired)

    async def _claim_jobs(self) -> None:
        while True:
            waiting = await self._waiting()
            if (job := self._next(waiting)) is None:
                break
            evaluators = await self._jobs.evaluators(job.id)
            if not await self._context.queue.claim_job(job, self._context.owner):
                continue
            self._served[job.workspace_id] = next(self._claims)
            if job.attempts < _TRIES:
                self._begin(job, evaluators)
                continue
            _log.error("job %s is not run again, because %d hosts ended while they ran it", job.id, job.attempts)
            error = error_json("host_ended", _TOOK_HOSTS_DOWN)
            if await self._context.queue.release_job(job.id, self._context.owner, JobStatus.FAILED, error=error):
                record_end(self._context.service.metrics, job, JobStatus.FAILED, error)
        self._make_room(waiting)

    def _begin(self, job: Job, evaluators: list[JobEvaluator]) -> None:
        run = JobRun(self._context, job, evaluators)
        task = asyncio.create_task(run.run())
        self._running[job.id] = (job, run, task)
        task.add_done_callback(functools.partial(self._ended, job.id))

    async def _waiting(self) -> list[Job]:
        """Return the jobs to run: queued jobs, and jobs of hosts that died."""
        if len(self._elsewhere) > _ELSEWHERE_KEPT:
            self._elsewhere.clear()
        self._elsewhere -= await self._readable(self._elsewhere)
        queued = await self._queued()
        running = await self._context.queue.running()
        silent = self._silent(running)
        orphans = [job for job in running if job.id in silent or (job.owner and is_dead(job.owner))]
        readable = await self._readable({job.dataset_id for job in orphans})
        orphans = [job for job in orphans if job.dataset_id in readable]
        return [job for job in (*orphans, *queued) if job.id not in self._running and self._has_executor(job)]

    def _has_executor(self, job: Job) -> bool:
        """Whether this host has the executor that a job needs. Not every host has a Ray cluster."""
        return self._context.nodes is not None or spec_from_json(job.request).config.executor is Executor.LOCAL

    async def _queued(self) -> list[Job]:
        """Return the oldest queued jobs of each workspace. Leave out jobs with rows that this host cannot read."""
        while True:
            queued = await self._context.queue.waiting(each=self._at_once + 1, besides=self._elsewhere)
            datasets = {job.dataset_id for job in queued}
            elsewhere = datasets - await self._readable(datasets)
            if not elsewhere:
                return queued
            _log.warning(
                "jobs that use the data sets %s wait for a host that has the rows", ", ".join(sorted(elsewhere))
            )
            self._elsewhere |= elsewhere

    async def _readable(self, datasets: set[str]) -> set[str]:
        """Return which of these data sets this host can read: all of them if only one machine uses the database."""
        if not datasets or self._context.queue.one_machine:
            return datasets
        has_rows = self._context.folder.has_rows
        return await asyncio.to_thread(lambda: {one for one in datasets if has_rows(one)})

    def _next(self, waiting: list[Job]) -> Job | None:
        """Return the job to claim now: the oldest job of the workspace whose turn is next. None if there is none."""
        if len(self._running) >= self._at_once:
            return None
        at_work = self._at_work()
        most = most_slots(self._at_once, len({*self._served, *(job.workspace_id for job in waiting)}))
        suspected = any(job.attempts and not run.progressed for job, run, _ in self._running.values())
        may = (job for job in waiting if at_work[job.workspace_id] < most and not (suspected and job.attempts))
        return min(may, key=lambda job: (*self._turn(job.workspace_id, at_work), job.created_at), default=None)

    def _turn(self, workspace: str, at_work: Counter[str]) -> tuple[int, int]:
        """Return the sort key of a workspace: fewest running jobs first, then the oldest last claim."""
        return at_work[workspace], self._served.get(workspace, 0)

    def _make_room(self, waiting: list[Job]) -> None:
        """Put a job of the workspace with the most running jobs back in the queue, if another workspace has too few."""
        if len(self._running) < self._at_once or any(run.is_put_back for _, run, _ in self._running.values()):
            return
        at_work = self._at_work()
        most = max(at_work.values(), default=0)
        fewest = min((at_work[job.workspace_id] for job in waiting), default=most)
        if fewest == most or (fewest and most - fewest < 2):
            return
        for job, run, _ in self._running.values():  # the jobs are in the order in which they were claimed
            if at_work[job.workspace_id] == most and run.had_its_turn(TURN_S, LONG_TURN_S):
                _log.info("job %s waits while jobs of other workspaces run", job.id)
                run.put_back()
                return

    def _at_work(self) -> Counter[str]:
        return Counter(job.workspace_id for job, _, _ in self._running.values())

    def _silent(self, running: list[Job]) -> set[str]:
        """Return the ids of the jobs whose owner has not written a heartbeat for `SILENT_S` seconds.

        This host measures the seconds with its monotonic clock from the last change of the heartbeat. The time in the
        heartbeat does not count, because the clocks of hosts differ, and may be changed.
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
        self._at_work_at = time.monotonic()
        if not task.cancelled() and (fault := task.exception()) is not None:
            _log.error("job %s was dropped because of a fault of this host", job_id, exc_info=fault)
        self.wake()
