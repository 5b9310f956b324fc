"""Opens the services over the store, together with the scheduler that runs jobs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from evaluator_host.config.settings import Settings
from evaluator_host.datasets.files import BlobFolder, RowsFolder
from evaluator_host.datasets.orphan_files import OrphanFiles
from evaluator_host.datasets.service import DatasetService
from evaluator_host.evaluators.live_traffic import Traffic, open_traffic
from evaluator_host.evaluators.registry import EvaluatorRegistry
from evaluator_host.jobs.results.exports import JobExports
from evaluator_host.jobs.results.results import JobResults
from evaluator_host.jobs.results.row_reader import RowReader
from evaluator_host.jobs.run import JobContext
from evaluator_host.jobs.scheduler import Scheduler, owner_name
from evaluator_host.jobs.service import JobService
from evaluator_host.models.access import ModelAccess
from evaluator_host.service import Service
from evaluator_host.store.database import Database
from evaluator_host.store.secrets import Secrets
from evaluator_host.store.store import Store


@dataclass(frozen=True, slots=True)
class StoredResources:
    """All services that read or write the database."""

    evaluators: EvaluatorRegistry
    datasets: DatasetService
    jobs: JobService
    results: JobResults
    rows: RowReader
    exports: JobExports
    secrets: Secrets
    traffic: Traffic
    database: Database
    blobs: BlobFolder


@asynccontextmanager
async def open_stored_resources(service: Service, store: Store) -> AsyncIterator[StoredResources]:
    """Open the services and run jobs until the block ends; then release running jobs to the next host.

    Raises:
      StoreUnavailable: the database does not answer.
    """
    settings = service.settings
    swept = orphan_files(settings)
    folder, blobs = swept.rows, swept.blobs
    await swept.sweep(store)
    models = ModelAccess(settings, secrets=store.secrets, outputs=store.outputs, any_key=store.keys.any_made)
    context = JobContext(service, store.job_queue, folder, owner_name(), models)
    scheduler = Scheduler(context, store.jobs, at_once=settings.jobs_at_once)
    supervisor = service.supervisor
    supervisor.checks.append(store.watch.require_serving)
    registry = EvaluatorRegistry(service, store.evaluators)
    async with (
        supervisor.running("the watch of the database", store.watch.run),
        supervisor.running("the scheduler of jobs", scheduler.run),
    ):
        results = JobResults(store.jobs, store.results, store.datasets, folder)
        rows = RowReader(store.jobs, store.results, store.datasets, folder, outputs=store.outputs)
        async with open_traffic(service, registry, store.traces) as traffic:
            yield StoredResources(
                evaluators=registry,
                datasets=DatasetService(
                    store.datasets,
                    folder,
                    max_bytes=settings.datasets_mb << 20,
                    max_row_bytes=settings.body_mb << 20,
                ),
                jobs=JobService(
                    service,
                    store.jobs,
                    store.datasets,
                    folder=folder,
                    scheduler=scheduler,
                    resolve=registry.resolve,
                    models=models,
                ),
                results=results,
                rows=rows,
                exports=JobExports(results, rows),
                secrets=store.secrets,
                traffic=traffic,
                database=store.database,
                blobs=blobs,
            )


def orphan_files(settings: Settings) -> OrphanFiles:
    """Return the object that removes unreferenced rows and files of a host."""
    blobs = BlobFolder(settings.data_dir / "filesets", max_bytes=settings.datasets_mb << 20)
    return OrphanFiles(settings.data_dir, RowsFolder(settings.data_dir / "datasets"), blobs)
