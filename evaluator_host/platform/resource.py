"""`Resource`: a kind of object that a host stores for callers. Each has a folder; see docs/resources/adding.md."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from starlette.routing import BaseRoute

from evaluator_host.platform.folders import resource_folders
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.users import UsedObject

if TYPE_CHECKING:
    from evaluator_host.platform.host import Host


class Task(NamedTuple):
    """A task that runs until the host stops. Messages use its `name`: "the task that checks alerts"."""

    name: str
    run: Callable[[], Awaitable[None]]


class Kept(NamedTuple):
    """Objects that a host deletes after `days` (0 means never). `delete_before` deletes them and returns how many."""

    name: str
    days: int
    delete_before: Callable[[datetime], Awaitable[int]]


class Resource:
    """The parts of a host that one folder adds.

    `RESOURCE` in the folder's module `resource.py` is a subclass of this class.

    Args:
      host: The host. `host.find` returns other resources only after all of them are open.
    """

    def __init__(self, host: "Host") -> None:
        self.host = host

    def routes(self, access: Access) -> Sequence[BaseRoute]:  # noqa: ARG002 - for subclasses
        return ()

    def running(self) -> AbstractAsyncContextManager[object]:
        """Return a context manager that is entered before the tasks start, and left after they have ended."""
        return nullcontext()

    def tasks(self) -> Iterable[Task]:
        """Return the tasks that run until the host stops."""
        return ()

    def kept(self) -> Iterable[Kept]:
        """Return a `Kept` for each kind of object that the host deletes after some days."""
        return ()

    async def used(self, workspace_id: str, kind: str, name: str) -> UsedObject | None:  # noqa: ARG002 - for subclasses
        """Return the object with all its names if this resource stores it under several names, otherwise None."""
        return None

    async def users_of(self, workspace_id: str, used: UsedObject) -> list[str]:  # noqa: ARG002 - for subclasses
        """Return kind and name of each object in this resource that uses the given object, such as `["alert low"]`."""
        return []


def resource_classes() -> Iterator[tuple[str, type[Resource]]]:
    """Yield the name and the class of each resource. Each folder with a module `resource.py` is a resource."""
    for folder in resource_folders():
        if folder.has("resource"):
            yield folder.name, import_module(f"{folder.package}.resource").RESOURCE
