"""Opens the services that use the database, and the scheduler that runs jobs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.service import Service
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.files import FILES, FileFolder, RowsFolder
from evaluator_host.platform.datasets.orphan_files import OrphanFiles
from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.platform.evaluators.registry import EvaluatorRegistry
from evaluator_host.platform.jobs.estimates import JobEstimates
from evaluator_host.platform.jobs.nodes import RayNodes
from evaluator_host.platform.jobs.results.exports import JobExports
from evaluator_host.platform.jobs.results.results import HumanLabels, JobResults
from evaluator_host.platform.jobs.results.row_reader import RowReader
from evaluator_host.platform.jobs.run import JobContext
from evaluator_host.platform.jobs.scheduler import Scheduler, owner_name
from evaluator_host.platform.jobs.service import JobRunner, JobService
from evaluator_host.platform.models.access import ModelAccess
from evaluator_host.platform.models.service import ModelService
from evaluator_host.platform.resource import Kept, Resource, Task, open_resources, part
from evaluator_host.platform.secrets.table import Secrets
from evaluator_host.platform.store.database import Database
from evaluator_host.platform.store.objects import Objects
from evaluator_host.platform.store.store import Store
from evaluator_host.platform.usage.table import StorageUsage
from evaluator_host.platform.users import CodeUsers, Users
from evaluator_host.types.errors import StoreUnavailable

_DELETE_EVERY_S: Final = 3600.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredResources:
    """All services that read or write the database. `resources` have those that this module does not know."""

    service: Service
    evaluators: EvaluatorRegistry
    datasets: DatasetService
    jobs: JobService
    estimates: JobEstimates
    results: JobResults
    rows: RowReader
    exports: JobExports
    secrets: Secrets
    models: ModelService
    database: Database
    objects: Objects
    usage: StorageUsage
    users: Users
    resources: list[Resource]

    @property
    def settings(self) -> Settings:
        """The settings of the host."""
        return self.service.settings


def scheduler_of(service: Service, store: Store) -> Scheduler:
    """Return the scheduler that runs a host's jobs on the sandboxes of a service."""
    settings = service.settings
    models = ModelAccess(settings, secrets=store.secrets, outputs=store.outputs, any_key=store.keys.any_made)
    nodes = None if settings.ray_address is None else RayNodes(settings.ray_address)
    context = JobContext(service, store.job_queue, rows_folder(settings), owner_name(), store.usage, models, nodes)
    return Scheduler(context, store.jobs, at_once=settings.jobs_at_once)


@asynccontextmanager
async def open_stored_resources(
    service: Service, store: Store, runner: JobRunner | None = None
) -> AsyncIterator[StoredResources]:
    """Open the services and run jobs until the block ends; then release running jobs to the next host.

    `runner` runs the jobs; None for a scheduler in this process.

    Raises:
      StoreUnavailable: the database does not answer.
    """
    settings = service.settings
    swept = orphan_files(settings)
    folder = swept.rows
    await swept.sweep(store)
    models = ModelAccess(settings, secrets=store.secrets, outputs=store.outputs, any_key=store.keys.any_made)
    runner = runner or scheduler_of(service, store)
    service.supervisor.checks.append(store.watch.require_serving)
    registry = EvaluatorRegistry(service, store.evaluators, store.usage)
    jobs = JobService(
        service,
        store.jobs,
        store.datasets,
        folder=folder,
        runner=runner,
        resolve=registry.resolve,
        usage=store.usage,
        models=models,
    )
    resources: list[Resource] = []
    results = JobResults(store.jobs, store.results, store.datasets, folder, labels=lambda: part(resources, HumanLabels))
    models_of_host = ModelService(settings, store)
    async with AsyncExitStack() as running:
        uploads = await running.enter_async_context(LimitedProcesses(most=2, supervisor=service.supervisor))
        host = StoredResources(
            service=service,
            evaluators=registry,
            datasets=DatasetService(
                store.datasets,
                folder,
                uploads,
                store.usage,
                max_bytes=settings.datasets_mb << 20,
                max_row_bytes=settings.body_mb << 20,
            ),
            jobs=jobs,
            estimates=JobEstimates(jobs, results, store.models, settings),
            results=results,
            rows=(
                rows := RowReader(
                    store.jobs, store.results, store.datasets, folder, service.processes, outputs=store.outputs
                )
            ),
            exports=JobExports(results, rows),
            secrets=store.secrets,
            models=models_of_host,
            database=store.database,
            objects=store.objects,
            usage=store.usage,
            users=Users(store.datasets, [CodeUsers(registry, models_of_host.directory)], resources),
            resources=resources,
        )
        resources += open_resources(host)
        kept = [*_kept(settings, store, jobs), *(each for one in resources for each in one.kept())]
        tasks = (
            Task("the watch of the database", store.watch.run),
            Task("the scheduler of jobs", runner.run),
            Task("the deletion of what is old", partial(_delete_old, kept)),
            *(task for one in resources for task in one.tasks()),
        )
        for task in tasks:
            await running.enter_async_context(service.supervisor.running(task.name, task.run))
        yield host


def _kept(settings: Settings, store: Store, jobs: JobService) -> Iterable[Kept]:
    return (
        Kept("ended jobs", settings.jobs_days, jobs.delete_ended),
        Kept("audit entries", settings.audit_days, store.audit.delete_before),
    )


async def _delete_old(kept: Iterable[Kept]) -> None:
    """Delete what is older than so many days, now and every hour; 0 keeps it for ever."""
    while True:
        for name, days, delete_before in kept:
            with suppress(StoreUnavailable):  # which the watch of the database tells
                if days and (deleted := await delete_before(datetime.now(UTC) - timedelta(days=days))):
                    _log.info("deleted %d %s from over %d days ago", deleted, name, days)
        await asyncio.sleep(_DELETE_EVERY_S)


def orphan_files(settings: Settings) -> OrphanFiles:
    """Return an `OrphanFiles`, which removes rows and files of a host that the database does not refer to."""
    files = FileFolder(settings.data_dir / FILES)
    return OrphanFiles(settings.data_dir, rows_folder(settings), files)


def rows_folder(settings: Settings) -> RowsFolder:
    """Return the folder for rows of data sets: in the data directory, or in an object storage that hosts share.

    Raises:
      Misconfigured: the URL of the object storage is not valid.
    """
    folder = settings.data_dir / "datasets"
    if settings.storage_url is None:
        return RowsFolder(folder)
    from evaluator_host.platform.datasets.object_rows import ObjectRows  # noqa: PLC0415 - an extra

    return ObjectRows(folder, settings.storage_url)
