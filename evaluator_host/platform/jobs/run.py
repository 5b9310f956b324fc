"""Runs one job: calls every evaluator for every row that has no result yet.

A run ends when the job is done, paused, cancelled or failed, or when the host shuts down. A run also ends when the
workspace has reached its quota; the job is then paused, with the reason. The results are stored before the host
releases the job. A host that dies loses the results since the last write, and the next host scores the rows again.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, assert_never

from evaluator_host.engine.contracts.table import may_score_together
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.service.model_grants import Meter, ModelTerms
from evaluator_host.engine.system.spans import Attributes, span
from evaluator_host.engine.system.threads import work_for
from evaluator_host.engine.system.turns import Turns
from evaluator_host.platform.datasets.files import RowsFolder
from evaluator_host.platform.jobs.ended import record_end
from evaluator_host.platform.jobs.executors import JobExecutor, LocalExecutor, RayExecutor
from evaluator_host.platform.jobs.failures import RowFailures, ending
from evaluator_host.platform.jobs.nodes import RayNodes
from evaluator_host.platform.jobs.output_table import Outputs
from evaluator_host.platform.jobs.outputs import Generation, Prompts, answered
from evaluator_host.platform.jobs.queue import JobQueue
from evaluator_host.platform.jobs.records import DesiredState, Job, JobEvaluator
from evaluator_host.platform.jobs.result_writer import NoLongerOurs, ResultWriter
from evaluator_host.platform.jobs.retries import Retries
from evaluator_host.platform.jobs.row_source import RowChunk, RowSource
from evaluator_host.platform.jobs.spec import evaluator_of, names_of, spec_from_json
from evaluator_host.platform.models.access import ModelAccess
from evaluator_host.platform.store.usage import StorageUsage
from evaluator_host.types.errors import HostBusy, Misconfigured, StoreUnavailable
from evaluator_host.types.evaluator import Evaluator, ModelBudget, Row
from evaluator_host.types.jobs import Executor, JobConfig, JobStatus
from evaluator_host.types.names import counted
from evaluator_host.types.outcome import EvaluationError

_TOGETHER_AT_ONCE: Final = 2
_ROOM_EVERY_S: Final = 5.0  # how often, in seconds, to check whether the workspace may store more
_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 15.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JobContext:
    """The services that every job of a host uses."""

    service: Service  # evaluates rows
    queue: JobQueue  # job queue in the store
    folder: RowsFolder  # the rows of all data sets
    owner: str  # name of this host's scheduler, see `scheduler.owner_name`
    usage: StorageUsage  # checks whether a workspace may store more
    outputs: Outputs  # stored answers of models to rows of jobs
    models: ModelAccess | None = None  # access to models for online jobs; None for a host without them
    nodes: RayNodes | None = None  # evaluates rows on a Ray cluster; None for a host without one
    # lets only two jobs at a time score their rows together, since all rows of a job are then in memory
    together: Turns = field(default_factory=lambda: Turns(_TOGETHER_AT_ONCE))

    def executor_of(self, job: Job, config: JobConfig) -> JobExecutor:
        """Return the executor for the rows of a job.

        Raises:
          Misconfigured: the job needs a Ray cluster, which this host does not have.
        """
        if config.executor is Executor.LOCAL:
            return LocalExecutor(self.service, config.isolation)
        if self.nodes is None:
            raise Misconfigured("this host has no Ray cluster; the operator can set EVALUATOR_HOST_RAY_ADDRESS")
        return RayExecutor(self.nodes, config.isolation, job=job, queue=self.queue, owner=self.owner)


class JobRun:
    """One run of a job on this host: from the moment when the host claims the job until the host releases it."""

    def __init__(self, context: JobContext, job: Job, evaluators: list[JobEvaluator]) -> None:
        self._context = context
        self._job = job
        self._evaluators = evaluators
        self._request = spec_from_json(job.request)
        self._writer = ResultWriter(context.queue, job.id, context.owner, on_desired=self.set_desired_state)
        self._desired = DesiredState.RUN
        self._stop = asyncio.Event()
        self._began = time.monotonic()
        self.is_put_back = False
        config = self._request.config
        self._failures = RowFailures(config.max_failures, evaluators=len(evaluators))
        self._meter = Meter(config.budget, "the job")
        self._terms = ModelTerms(config.replay, self._meter)
        self._executor = context.executor_of(job, config)
        self.set_desired_state(job.wanted)

    def set_desired_state(self, desired: DesiredState) -> None:
        """If `desired` is to pause or cancel the job, stop the run soon."""
        if desired is not DesiredState.RUN:
            self._desired = desired
            self._stop.set()

    @property
    def progressed(self) -> bool:
        """Whether a result or a model's answer was stored since this host claimed the job."""
        return self._writer.stored > 0

    def had_its_turn(self, turn_s: float, long_turn_s: float) -> bool:
        """Whether the job has run for `turn_s` seconds and made progress, or has run for `long_turn_s` seconds."""
        return time.monotonic() - self._began >= (turn_s if self.progressed else long_turn_s)

    def put_back(self) -> None:
        """Stop the run soon, and put its job back in the queue."""
        self.is_put_back = True
        self._stop.set()

    async def run(self) -> None:
        """Run the job until it is done or must stop, and release it. If this task is cancelled, queue the job again."""
        work_for(self._job.workspace_id)
        try:
            status, error = await self._work()
        except NoLongerOurs:
            _log.warning("another host has claimed job %s, or the job was deleted", self._job.id)
        except asyncio.CancelledError:
            with suppress(NoLongerOurs):
                await self._writer.flush()
                await self._release(JobStatus.QUEUED, None)
            raise
        except Exception as fault:  # noqa: BLE001 - a job that stayed claimed would be run again and again
            await self._release(*ending(self._job.id, fault))
        else:
            await self._release(status, error)

    async def _work(self) -> tuple[JobStatus, str | None]:
        """Score until all rows are done or the job must stop, and store the results. Return its status and error."""
        scoring = asyncio.create_task(self._score())
        writing = asyncio.create_task(self._writer.run())
        stopping = asyncio.create_task(self._stop.wait())
        watching = asyncio.create_task(self._watch_room())
        tasks = (scoring, writing, stopping, watching)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if not writing.cancelled():
            writing.result()  # raises the error that ended the writing, if there is one
        await self._writer.flush()
        if not watching.cancelled():
            _, error = ending(self._job.id, watching.exception())
            return JobStatus.PAUSED, error
        if scoring.cancelled():
            return self._stopped_as(), None
        return ending(self._job.id, scoring.exception())

    async def _watch_room(self) -> None:
        """Wait until the workspace may store no more, then raise the error that says why.

        Raises:
          OverQuota: the workspace has reached its quota.
          MachineExhausted: this machine has too little free disk.
        """
        while True:
            with suppress(StoreUnavailable):
                await self._context.usage.require_room(self._job.workspace_id)
            await asyncio.sleep(_ROOM_EVERY_S)

    def _stopped_as(self) -> JobStatus:
        match self._desired:
            case DesiredState.CANCEL:
                return JobStatus.CANCELLED
            case DesiredState.PAUSE:
                return JobStatus.PAUSED
            case DesiredState.RUN:
                return JobStatus.QUEUED
            case _ as unreachable:
                assert_never(unreachable)

    async def _release(self, status: JobStatus, error: str | None) -> None:
        pause_s = _PAUSE_S
        await self._executor.close()
        while True:
            try:
                ours = await self._context.queue.release_job(self._job.id, self._context.owner, status, error=error)
            except StoreUnavailable:
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            else:
                if ours:
                    record_end(self._context.service.metrics, self._job, status, error)
                return

    async def _score(self) -> None:
        if self._request.target is not None:
            await Retries(self._job.id).run(self._generate)
        config = self._request.config
        if self._job.done and config.budget != ModelBudget():
            await Retries(self._job.id).run(self._count_earlier_use)
        settings = self._context.service.settings
        evaluators = await asyncio.to_thread(lambda: [evaluator_of(one) for one in self._evaluators])
        waits = any(one.connects for one in evaluators)
        parallelism = config.parallelism or (settings.waiting_rows if waits else settings.max_sandboxes_per_evaluator)
        at_once = min(len(self._evaluators), parallelism)
        places = asyncio.Semaphore(at_once)
        async with asyncio.TaskGroup() as group:
            for kept, evaluator in zip(self._evaluators, evaluators, strict=True):
                group.create_task(self._evaluate(kept, evaluator, places, parallelism=max(1, parallelism // at_once)))

    async def _count_earlier_use(self, _: Retries) -> None:
        """Count the model use of earlier runs in the job's budget."""
        self._meter.continue_from(await self._context.queue.model_usage(self._job.id))

    async def _evaluate(
        self, kept: JobEvaluator, evaluator: Evaluator, places: asyncio.Semaphore, *, parallelism: int
    ) -> None:
        async with places:
            await Retries(self._job.id).run(partial(self._score_rows, kept, evaluator, parallelism))
            if may_score_together(evaluator):
                await Retries(self._job.id).run(partial(self._score_together, kept, evaluator))

    async def _score_rows(self, kept: JobEvaluator, evaluator: Evaluator, parallelism: int, retries: Retries) -> None:
        """Score every row for which this evaluator has no result yet.

        Raises:
          HostBusy: some rows failed because of the host, and will be tried again.
        """
        await self._writer.flush()
        done = await self._context.queue.done_rows(self._job.id, kept.position)
        unscored = 0
        chunks = self._chunks(kept, done)
        async with aclosing(self._run_chunks(kept, evaluator, chunks, parallelism=parallelism)) as counts:
            async for given, scored in counts:
                unscored += given - scored
                retries.add_done(scored)
        if unscored:
            raise HostBusy(
                f"the sandboxes of {counted(unscored, 'row')} were lost, or got no processor time; the job tries again"
            )

    async def _score_together(self, kept: JobEvaluator, evaluator: Evaluator, _: Retries) -> None:
        """Let the evaluator compute its score over all rows that it has scored, unless this score is already stored."""
        await self._writer.flush()
        if await self._context.queue.has_together(self._job.id, kept.position):
            return
        async with self._context.together.turn(self._job.workspace_id):
            result = await self._context.service.score_together(
                evaluator, self._scored(kept), caller=self._caller(kept)
            )
        if result is not None:
            await self._writer.write_together(kept.position, result)

    def _caller(self, kept: JobEvaluator) -> Caller:
        return Caller(self._job.workspace_id, kept.lock, self._terms)

    async def _scored(self, kept: JobEvaluator) -> AsyncGenerator[Row, None]:
        unscored = await self._context.queue.unscored_rows(self._job.id, kept.position, count=self._job.rows)
        async for chunk in self._chunks(kept, unscored):
            for row in chunk.rows:
                if isinstance(row, Row):
                    yield row

    async def _chunks(self, kept: JobEvaluator, done: bytearray) -> AsyncGenerator[RowChunk, None]:
        rows = RowSource(
            self._context.folder,
            self._context.service.processes,
            self._job,
            mapping=self._request.parse_mapping(),
            shard=self._request.shard,
            names=names_of(kept),
            outputs_come=self._request.target is not None,
        )
        async for chunk in rows.chunks(done, most=self._executor.chunk_rows):
            if self._request.target is None:
                yield chunk
            else:
                async for with_outputs in answered(chunk, self._context.outputs, self._job.id):
                    yield with_outputs

    async def _generate(self, retries: Retries) -> None:
        """Call the model for every row that has no answer."""
        target, job = self._request.target, self._job
        assert target is not None  # noqa: S101 - only called for jobs with a target
        await self._writer.flush()
        asked, unanswered = await self._context.outputs.count(job.id)
        self._failures.begin_with(unanswered)
        shard = self._request.shard
        if asked >= len(shard.indexes(job.rows)):
            return
        prompts = Prompts(self._context.folder, self._context.service.processes, job, target, shard)
        rows = prompts.rows(await self._context.queue.answered_rows(job.id))
        async with self._models.open(target, job.workspace_id) as endpoint:
            generation = Generation(endpoint, self._writer, on_failed=self._note_unanswered)
            await generation.run(rows, concurrency=target.concurrency)
        await self._writer.flush()
        retries.add_done(len(shard.indexes(job.rows)) - asked)

    @property
    def _models(self) -> ModelAccess:
        if self._context.models is None:
            raise Misconfigured("this host does not call models")
        return self._context.models

    def _note_unanswered(self, row: int, error: EvaluationError) -> None:
        self._failures.note_unanswered(row, error)
        self._require_few_failures()

    async def _run_chunks(
        self, kept: JobEvaluator, evaluator: Evaluator, chunks: AsyncGenerator[RowChunk, None], *, parallelism: int
    ) -> AsyncGenerator[tuple[int, int], None]:
        """Run chunks, one by one or on several nodes. For each chunk, yield the counts of rows and of scored rows."""
        running: dict[asyncio.Task[int], int] = {}
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    while len(running) >= self._executor.chunks_at_once:
                        for ended in await _first_ended(running):
                            yield running.pop(ended), ended.result()
                    task = asyncio.create_task(self._run(kept, evaluator, chunk, parallelism=parallelism))
                    running[task] = len(chunk.rows)
            while running:
                for ended in await _first_ended(running):
                    yield running.pop(ended), ended.result()
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)

    async def _run(self, kept: JobEvaluator, evaluator: Evaluator, chunk: RowChunk, *, parallelism: int) -> int:
        stream = self._executor.evaluate(evaluator, chunk, self._caller(kept), parallelism=parallelism)
        scored, large = 0, evaluator.limits.has_large_results
        about: Attributes = {"evaluator_host.job.id": self._job.id, "evaluator_host.job.rows": len(chunk.rows)}
        with span("score rows of a job", about) as noted:
            async with aclosing(stream) as answers:
                async for row, result in answers:
                    if self._failures.waits(kept.position, row, result):
                        continue
                    await self._writer.add_result(kept.position, row, result, large=large)
                    scored += 1
                    self._failures.note(row, result.error)
                    self._require_few_failures()
            noted["evaluator_host.job.scored_rows"] = scored
        return scored

    def _require_few_failures(self) -> None:
        self._failures.require_few(self._job.failed + self._writer.failed)


async def _first_ended(running: Collection[asyncio.Task[int]]) -> set[asyncio.Task[int]]:
    """Wait until a task has ended, and return all tasks that have ended."""
    ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    return ended
