"""Finds the limits that the operator gives to single workspaces (EVALUATOR_HOST_WORKSPACE_LIMITS)."""

from collections.abc import Mapping
from typing import Final

from evaluator_host.engine.config.settings import WorkspaceLimits
from evaluator_host.platform.store.workspaces import Workspaces

_NONE: Final = WorkspaceLimits()


class LimitsOfWorkspaces:
    """The limits of single workspaces, keyed by the name or id that the operator's setting uses.

    Storage limits are not included: `StorageUsage` finds those itself.
    """

    def __init__(self, given: Mapping[str, WorkspaceLimits], workspaces: Workspaces) -> None:
        self._given = given
        self._workspaces = workspaces
        self._found: dict[str, WorkspaceLimits] = {}

    async def of(self, workspace_id: str) -> WorkspaceLimits:
        """Return a workspace's own limits. Only the first call for a workspace reads the database.

        Raises:
          StoreUnavailable: the database does not answer.
        """
        if not self._given:
            return _NONE
        if (found := self._found.get(workspace_id)) is None:
            name = await self._workspaces.name_of(workspace_id) or workspace_id
            found = self._given.get(name) or self._given.get(workspace_id) or _NONE
            self._found[workspace_id] = found
        return found
