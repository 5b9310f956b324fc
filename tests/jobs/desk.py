"""Runs jobs with a real database and a runner in memory: only the sandboxes are not real."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.pool import Pool, PoolLimits
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.metrics import Metrics
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.files import RowsFolder
from evaluator_host.platform.evaluators.registry import ResolvedEvaluator
from evaluator_host.platform.jobs.results.results import JobResults
from evaluator_host.platform.jobs.results.row_reader import RowReader
from evaluator_host.platform.jobs.run import JobContext
from evaluator_host.platform.jobs.scheduler import Scheduler, owner_name
from evaluator_host.platform.jobs.service import JobService
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.platform.models.access import ModelAccess
from evaluator_host.platform.store.store import Store
from evaluator_host.types.errors import NotFound
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.jobs import JobConfig, JobReport, JobStatus
from tests.databases import EACH_ENGINE, opened_store
from tests.fake_runner import FakeBackend
from tests.no_packages import NoPackages
from tests.tables import tables

ON_EACH_DATABASE = pytest.mark.parametrize("database_url", EACH_ENGINE, indirect=True)
WORKSPACE = "default"
OK = Evaluator("ok")
_HANGS_S = 120.0  # seconds; on a busy machine, one second of work may take a minute


@dataclass(frozen=True, slots=True)
class Desk:
    """The part of a host that runs jobs. Its `backend` works in memory: the output of a row is a word that decides how
    the row ends.
    """

    store: Store
    backend: FakeBackend
    board: JobService
    results: JobResults
    folder: RowsFolder
    processes: LimitedProcesses

    @property
    def reader(self) -> RowReader:
        known = tables(self.store)
        return RowReader(known.jobs, known.results, known.datasets, self.folder, self.processes, known.outputs)

    async def start(
        self,
        words: Sequence[str],
        *,
        evaluators: Sequence[Evaluator | str] = (OK,),
        workspace: str = WORKSPACE,
        **config: Any,
    ) -> JobReport:
        rows = [{"inputs": {"n": n}, "outputs": word} for n, word in enumerate(words)]
        return await self.board.create_job(JobSpec(evaluators, rows, config=JobConfig(**config)), workspace)

    async def ended(self, job: JobReport, *, workspace: str = WORKSPACE) -> JobReport:
        async with asyncio.timeout(_HANGS_S):
            return [report async for report in self.board.watch_job(workspace, job.id)][-1]

    async def reached(
        self, job: JobReport, *, done: int = 0, status: JobStatus | None = None, workspace: str = WORKSPACE
    ) -> JobReport:
        async with asyncio.timeout(_HANGS_S):
            while True:
                report = await self.board.get_job(workspace, job.id)
                if report.progress.done >= done and status in (None, report.status):
                    return report
                await asyncio.sleep(0.02)

    async def rows_of(self, job: JobReport, position: int = 0) -> list[int]:
        return [one.row async for one in tables(self.store).results.values(job.id, position)]


@asynccontextmanager
async def opened(database_url: str, folder: Path, *, jobs_at_once: int = 2) -> AsyncIterator[Desk]:
    """During the block, run a host that works on jobs; afterwards, shut it down gracefully."""
    backend = FakeBackend()
    settings = Settings(data_dir=folder, max_sandboxes_per_evaluator=2)
    pool = Pool(backend, PoolLimits(idle_sandboxes=0, grace_s=0.05, max_per_evaluator=2))
    async with opened_store(database_url, folder) as store:
        service = Service(settings, pool, Metrics(), NoPackages(), LimitedProcesses())  # type: ignore[arg-type]
        rows = RowsFolder(folder / "datasets")
        models = ModelAccess(settings, secrets=store.secrets, any_key=store.keys.any_made)
        context = JobContext(
            service, tables(store).job_queue, rows, owner_name(), store.usage, tables(store).outputs, models
        )
        scheduler = Scheduler(context, tables(store).jobs, at_once=jobs_at_once)
        task = asyncio.create_task(scheduler.run())
        board = JobService(
            service,
            tables(store).jobs,
            tables(store).outputs,
            tables(store).datasets,
            folder=rows,
            runner=scheduler,
            resolve=_resolve,
            usage=store.usage,
            models=models,
        )
        try:
            yield Desk(
                store,
                backend,
                board,
                JobResults(
                    tables(store).jobs,
                    tables(store).results,
                    tables(store).datasets,
                    rows,
                    service.processes,
                    labels=lambda: None,
                ),
                rows,
                service.processes,
            )
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await pool.close()
            await service.processes.close()


async def _resolve(workspace_id: str, reference: str) -> ResolvedEvaluator:
    if reference != "exact@1":
        raise NotFound(f"there is no evaluator {reference}")
    return ResolvedEvaluator(Evaluator("ok", name="exact", version=1), None)
