"""Opens the verbs over what is stored, with the scheduler that works on jobs meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from evaluator_host.config.settings import Settings
from evaluator_host.datasets.blobs import BlobFolder
from evaluator_host.datasets.files import RowsFolder
from evaluator_host.datasets.orphan_files import Leftovers
from evaluator_host.datasets.service import DatasetShelf
from evaluator_host.evaluators.live_traffic import open_traffic
from evaluator_host.evaluators.registry import Library
from evaluator_host.jobs.results.exports import JobExports
from evaluator_host.jobs.results.results import JobResults
from evaluator_host.jobs.results.row_reader import JobRowsRead
from evaluator_host.jobs.run import Means
from evaluator_host.jobs.scheduler import Scheduler, owner_name
from evaluator_host.jobs.service import JobBoard
from evaluator_host.jobs.stored_resources import Records
from evaluator_host.models.access import Models
from evaluator_host.service import Service
from evaluator_host.store.store import Store


@asynccontextmanager
async def open_records(service: Service, store: Store) -> AsyncIterator[Records]:
    """Open the verbs, and work on jobs until the block ends; those at work are then left for the next host.

    Raises:
      StoreUnavailable: the database does not answer.
    """
    settings = service.settings
    swept = leftovers(settings)
    folder, blobs = swept.rows, swept.blobs
    await swept.sweep(store)
    models = Models(settings, secrets=store.secrets, outputs=store.outputs, any_key=store.keys.any_made)
    means = Means(service, store.job_work, folder, owner_name(), models)
    scheduler = Scheduler(means, store.jobs, at_once=settings.jobs_at_once)
    working = asyncio.create_task(scheduler.run())
    library = Library(service, store.evaluators)
    try:
        results = JobResults(store.jobs, store.results, store.datasets, folder)
        rows = JobRowsRead(store.jobs, store.results, store.datasets, folder, outputs=store.outputs)
        async with open_traffic(service, library, store.traces, days=settings.traces_days) as traffic:
            yield Records(
                evaluators=library,
                datasets=DatasetShelf(
                    store.datasets,
                    folder,
                    max_bytes=settings.datasets_mb << 20,
                    max_row_bytes=settings.body_mb << 20,
                ),
                jobs=JobBoard(
                    service,
                    store.jobs,
                    store.datasets,
                    folder=folder,
                    scheduler=scheduler,
                    find=library.find,
                    models=models,
                ),
                results=results,
                rows=rows,
                exports=JobExports(results, rows),
                secrets=store.secrets,
                traffic=traffic,
                entities=store.entities,
                blobs=blobs,
            )
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


def leftovers(settings: Settings) -> Leftovers:
    """Return what looks after the rows and files of a host."""
    blobs = BlobFolder(settings.data_dir / "filesets", max_bytes=settings.datasets_mb << 20)
    return Leftovers(settings.data_dir, RowsFolder(settings.data_dir / "datasets"), blobs)
