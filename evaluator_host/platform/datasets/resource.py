"""Adds data sets to a host."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final

from starlette.routing import BaseRoute

from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.opening import orphan_files
from evaluator_host.platform.datasets.routes import JobRows, TraceRows, datasets_api
from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.platform.datasets.table import Datasets
from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.resource import Resource, Task
from evaluator_host.platform.users import UsedObject
from evaluator_host.types.errors import NotFound, StoreUnavailable, refusal_of

_log = logging.getLogger(__name__)

_UPLOADS: Final = 2  # maximum number of large uploads that are read at the same time
_SWEEP_EVERY_S: Final = 3600.0
_SHORT: Final = 2  # maximum number of small uploads and of queries at the same time


class DatasetResource(Resource):
    """The data sets of a host."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        settings = host.settings
        self._orphans = orphan_files(settings)
        self._uploads = LimitedProcesses(most=_UPLOADS, short=_SHORT, supervisor=host.service.supervisor)
        self.folder = self._orphans.rows
        self.service = DatasetService(
            Datasets(host.store.database),
            self.folder,
            self._uploads,
            host.store.usage,
            max_bytes=settings.datasets_mb << 20,
            max_row_bytes=settings.body_mb << 20,
        )

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        find = self.host.find
        return datasets_api(
            self.service, self.host.users, access, jobs=lambda: find(JobRows), traces=lambda: find(TraceRows)
        ).routes

    def running(self) -> AbstractAsyncContextManager[object]:
        """Return a context manager: it removes unreferenced files first, and ends the processes for uploads last."""
        return self._running()

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        await self._orphans.sweep(self.host.store)
        async with self._uploads:
            yield

    def tasks(self) -> Iterable[Task]:
        return (Task("the task that removes unreferenced files", self._sweep_again),)

    async def _sweep_again(self) -> None:
        """Remove unreferenced files every hour, because the sweep at the start leaves new files."""
        while True:
            await asyncio.sleep(_SWEEP_EVERY_S)
            try:
                with suppress(StoreUnavailable):  # another task, which watches the database, reports this
                    await self._orphans.sweep(self.host.store)
            except OSError as error:
                _log.warning("unreferenced files cannot be removed: %s", refusal_of(error))

    async def used(self, workspace_id: str, kind: str, name: str) -> UsedObject | None:
        """Return a data set with the names and ids of all versions that are deleted with it.

        None if `kind` is not `dataset`.
        """
        if kind != "dataset":
            return None
        datasets = self.service.store
        try:
            found = await datasets.get_dataset(workspace_id, name)
        except NotFound:
            return UsedObject(kind, name, frozenset())
        gone = [found]
        # deleting the newest version also deletes all other versions, see `Datasets.release`
        if found.name is not None:
            gone = await datasets.list_versions(workspace_id, found.name)
        ids = frozenset(one.id for one in gone)
        names = {*ids, *(f"{one.title}@{one.version}" for one in gone), *([found.name] if found.name else [])}
        return UsedObject(kind, name, frozenset(names), ids)


RESOURCE: Final = DatasetResource
