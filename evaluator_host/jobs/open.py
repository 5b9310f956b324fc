"""Opens the verbs over what is stored, with the scheduler that works on jobs meanwhile."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from evaluator_host.datasets.blobs import BlobFolder
from evaluator_host.datasets.files import RowsFolder
from evaluator_host.datasets.shelf import DatasetShelf
from evaluator_host.evaluators.library import Library
from evaluator_host.jobs.board import JobBoard
from evaluator_host.jobs.exports import JobExports
from evaluator_host.jobs.judges import open_judges
from evaluator_host.jobs.kept_models import KeptModels
from evaluator_host.jobs.models import Models
from evaluator_host.jobs.records import Records
from evaluator_host.jobs.results import JobResults
from evaluator_host.jobs.rows_read import JobRowsRead
from evaluator_host.jobs.run import Means
from evaluator_host.jobs.scheduler import Scheduler, owner_name
from evaluator_host.service import Service
from evaluator_host.store.entities import Kind
from evaluator_host.store.store import Store
from evaluator_host.traffic import open_traffic

_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_records(service: Service, store: Store) -> AsyncIterator[Records]:
    """Open the verbs, and work on jobs until the block ends; those at work are then left for the next host.

    Raises:
      StoreUnavailable: the database does not answer.
    """
    settings = service.settings
    folder = RowsFolder(settings.data_dir / "datasets")
    blobs = BlobFolder(settings.data_dir / "filesets", max_bytes=settings.datasets_mb << 20)
    await _sweep(store, folder, blobs)
    models = Models(settings, secrets=store.secrets, outputs=store.outputs, any_key=store.keys.any_made)
    means = Means(service, store.job_work, folder, owner_name(), models)
    scheduler = Scheduler(means, store.jobs, at_once=settings.jobs_at_once)
    working = asyncio.create_task(scheduler.run())
    library = Library(service, store.evaluators)
    try:
        results = JobResults(store.jobs, store.results, store.datasets, folder)
        rows = JobRowsRead(store.jobs, store.results, store.datasets, folder, outputs=store.outputs)
        async with (
            open_judges(settings, store.secrets, kept=KeptModels(store.entities)) as service.models,
            open_traffic(service, library, store.traces, days=settings.traces_days) as traffic,
        ):
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


async def _sweep(store: Store, folder: RowsFolder, blobs: BlobFolder) -> None:
    """Remove rows that belong to nothing: of uploads that were broken off, and of jobs that are gone."""
    await store.datasets.forget_unused()
    known = await store.datasets.ids()
    for leftover in await asyncio.to_thread(folder.leftovers, known):
        _log.info("removing the rows of %s, which nothing refers to", leftover)
        await asyncio.to_thread(folder.remove, leftover)
    kept = {str(content.get("blob")) for content in await store.entities.contents(Kind.FILE)}
    await asyncio.to_thread(blobs.sweep, kept)
