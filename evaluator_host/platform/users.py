"""Finds what uses a stored thing, so that nobody deletes it by mistake."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final, Protocol

from evaluator_host.types.errors import InUse

_SHOWN: Final = 10  # users named in a message


@dataclass(frozen=True, slots=True)
class Used:
    """A stored thing that somebody wants to delete.

    Attributes:
      kind: evaluator, dataset, data file, schedule, secret, model, job, or a kind of another resource.
      name: Its name, or id.
      names: Names by which others may refer to it; for a data set, also those of its versions.
      ids: For a data set, the ids of the versions to delete.
    """

    kind: str
    name: str
    names: frozenset[str]
    ids: frozenset[str] = frozenset()


class Asked(Protocol):
    """A part of the host that stores objects, and that may use those of other parts."""

    async def used(self, workspace_id: str, kind: str, name: str) -> Used | None:
        """Return an object of this part with all its names; None if it has only one, or belongs to another part."""
        ...

    async def users_of(self, workspace_id: str, used: Used) -> list[str]:
        """Return the things of this part that use another thing."""
        ...


@dataclass(frozen=True, slots=True)
class Users:
    """The resources of one host, to find out what they use."""

    resources: Collection[Asked]

    async def require_unused(
        self, workspace_id: str, kind: str, name: str, get: Callable[[str, str], Awaitable[object]], *, force: bool
    ) -> None:
        """Check that nothing uses the thing of this kind and name (id of a job), unless `force`.

        `get(workspace_id, name)` is called if the thing has users: it raises if there is no such thing.

        Raises:
          InUse: something uses it; the message names it.
          NotFound: `get` raises it.
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
        """Return what uses a thing of a workspace: `["schedule weekly", "alert low"]`."""
        used = Used(kind, name, frozenset((name,)))
        for one in self.resources:
            used = await one.used(workspace_id, kind, name) or used
        return [user for one in self.resources for user in await one.users_of(workspace_id, used)]
