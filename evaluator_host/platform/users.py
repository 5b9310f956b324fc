"""Finds the objects that use a stored object, so that nobody deletes that object by mistake."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final, Protocol

from evaluator_host.types.errors import InUse

_SHOWN: Final = 10  # maximum number of users that a message names


@dataclass(frozen=True, slots=True)
class UsedObject:
    """A stored object that somebody wants to delete.

    Attributes:
      kind: evaluator, dataset, data file, schedule, secret, model, job, or a kind of another resource.
      name: Name or id.
      names: Names by which others may refer to the object; for a data set, also the names of its versions.
      ids: For a data set, the ids of the versions to delete.
    """

    kind: str
    name: str
    names: frozenset[str]
    ids: frozenset[str] = frozenset()


class Asked(Protocol):
    """A part of the host that stores objects, which may use objects that other parts store."""

    async def used(self, workspace_id: str, kind: str, name: str) -> UsedObject | None:
        """Return the object with all its names if this part stores it under several names, otherwise None."""
        ...

    async def users_of(self, workspace_id: str, used: UsedObject) -> list[str]:
        """Return kind and name of each object in this part that uses the given object, such as `["alert low"]`."""
        ...


@dataclass(frozen=True, slots=True)
class Users:
    """Finds the objects that use an object, by calling all resources of a host."""

    resources: Collection[Asked]

    async def require_unused(
        self, workspace_id: str, kind: str, name: str, get: Callable[[str, str], Awaitable[object]], *, force: bool
    ) -> None:
        """Check that nothing uses this object, unless `force` is set.

        A job's `name` is its id.

        `get(workspace_id, name)` is called if the object has users; it raises an error if there is no such object.

        Raises:
          InUse: something uses the object; the message says what.
          NotFound: raised by `get`.
        """
        if force:
            return
        found = await self.list_users(workspace_id, kind, name)
        if found:
            await get(workspace_id, name)
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            those = "that" if len(found) == 1 else "those"
            users = f"{', '.join(found[:_SHOWN])}{more}"
            raise InUse(f"{name} is used by {users}; delete {those} first, or delete it anyway with force")

    async def list_users(self, workspace_id: str, kind: str, name: str) -> list[str]:
        """Return the objects that use an object of a workspace: `["schedule weekly", "alert low"]`."""
        used = UsedObject(kind, name, frozenset((name,)))
        for one in self.resources:
            used = await one.used(workspace_id, kind, name) or used
        return [user for one in self.resources for user in await one.users_of(workspace_id, used)]
