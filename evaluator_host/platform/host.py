"""The class `Host`: opens the resources of a host, runs their tasks, and contains what they share."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.service import Service
from evaluator_host.platform.resource import Kept, Resource, Task, resource_classes
from evaluator_host.platform.store.store import Store
from evaluator_host.platform.users import Users
from evaluator_host.types.errors import StoreUnavailable

_DELETE_EVERY_S: Final = 3600.0

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_R = TypeVar("_R", bound=Resource)


class Host:
    """The service and the database of one host, and its resources.

    Args:
      service: The service that evaluates.
      store: The database.
      given: Objects through which this host uses parts that run in another process, such as the runner of jobs.
    """

    def __init__(self, service: Service, store: Store, *given: object) -> None:
        self.service = service
        self.store = store
        self.resources: dict[str, Resource] = {}
        self.users = Users(self.resources.values())
        self._given = given
        self._opened: dict[type[Resource], Resource] = {}

    @property
    def settings(self) -> Settings:
        return self.service.settings

    def open_resources(self) -> None:
        """Open all resources, in the order of their names."""
        for name, kind in resource_classes():
            self.resources[name] = self.resource(kind)

    def resource(self, kind: type[_R]) -> _R:
        """Return the resource of this class, which every host must have. The first call opens the resource."""
        if kind not in self._opened:
            self._opened[kind] = kind(self)
        found = self._opened[kind]
        if not isinstance(found, kind):
            raise TypeError(
                f"the resource {kind.__name__} was opened as an object of another class, {type(found).__name__}"
            )
        return found

    def find(self, kind: type[_T]) -> _T | None:
        """Return the part of the host that implements this runtime-checkable protocol; None if there is no such part.

        Call this method only when all resources are open, unless the part was passed to this host's constructor.
        """
        parts = (*self._given, *self.resources.values())
        return next((one for one in parts if isinstance(one, kind)), None)


@asynccontextmanager
async def open_host(service: Service, store: Store, *given: object) -> AsyncIterator[Host]:
    """Yield a host, and run the tasks of its resources until the block ends. Running jobs then go back to the queue.

    See `Host` for `given`.

    Raises:
      StoreUnavailable: the database does not answer.
    """
    host = Host(service, store, *given)
    host.open_resources()
    service.supervisor.checks.append(store.watch.require_serving)
    resources = host.resources.values()
    kept = [
        Kept("audit entries", service.settings.audit_days, store.audit.delete_before),
        *(each for one in resources for each in one.kept()),
    ]
    tasks = (
        Task("the task that watches the database", store.watch.run),
        Task("the task that deletes old data", partial(_delete_old, kept)),
        *(task for one in resources for task in one.tasks()),
    )
    async with AsyncExitStack() as running:
        for one in resources:
            await running.enter_async_context(one.running())
        for task in tasks:
            await running.enter_async_context(service.supervisor.running(task.name, task.run))
        yield host


async def _delete_old(kept: Iterable[Kept]) -> None:
    """Delete data that is too old: now, and then every hour. If the limit is 0 days, data is never deleted."""
    while True:
        for name, days, delete_before in kept:
            with suppress(StoreUnavailable):  # the task that watches the database reports the outage
                if days and (deleted := await delete_before(datetime.now(UTC) - timedelta(days=days))):
                    _log.info("deleted %d %s that were older than %d days", deleted, name, days)
        await asyncio.sleep(_DELETE_EVERY_S)
