"""Decides what the operator lets a workspace use: models, secrets in code, other hosts.

Everything that runs evaluators uses this module. A test checks that no other module reads the settings
EVALUATOR_HOST_MODELS, EVALUATOR_HOST_CODE_SECRETS and EVALUATOR_HOST_NETWORK_HOSTS.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from evaluator_host.engine.config.settings import ModelEndpoint, Settings
from evaluator_host.platform.models.gateway.hosts import HostPort, granted_hosts

if TYPE_CHECKING:
    from evaluator_host.platform.store.workspaces import Workspaces


class OperatorGrants:
    """Finds the models, hosts and secrets that the operator grants to a workspace.

    On the command line there are no workspaces, and `workspaces` is None.
    """

    def __init__(self, settings: Settings, workspaces: "Workspaces | None") -> None:
        self._settings = settings
        self._workspaces = workspaces

    async def models(self, workspace: str) -> dict[str, ModelEndpoint]:
        """Return the operator's models that a workspace may use, keyed by name.

        Models for other workspaces are left out.
        """
        configured = self._settings.models
        if not any(one.workspaces for one in configured.values()):
            return configured
        names = await self._names(workspace)
        return {
            name: one for name, one in configured.items() if not one.workspaces or not names.isdisjoint(one.workspaces)
        }

    async def code_secrets(self, workspace: str) -> set[str]:
        """Return the names of the secrets that code of a workspace may be granted; `*` means all."""
        return set(_entries_for(self._settings.code_secrets, await self._names(workspace)))

    async def hosts(self, workspace: str, entries: Iterable[str]) -> list[HostPort]:
        """Return the hosts in an evaluator's `entries`, after checking that its workspace may reach them.

        Raises:
          InvalidRequest: an entry is not a host, or the operator does not allow it.
        """
        names = await self._names(workspace) if entries else frozenset({workspace})
        return granted_hosts(entries, allowed=_entries_for(self._settings.network_hosts, names))

    async def problems(self) -> list[str]:
        """Return a sentence about each workspace that the operator's settings name but that does not exist."""
        if self._workspaces is None:
            return []
        settings, named = self._settings, dict[str, list[str]]()
        for name, model in settings.models.items():
            for one in model.workspaces:
                named.setdefault(one, []).append(f"EVALUATOR_HOST_MODELS: {name}")
        entries = {
            "EVALUATOR_HOST_CODE_SECRETS": settings.code_secrets,
            "EVALUATOR_HOST_NETWORK_HOSTS": settings.network_hosts,
        }
        for setting, allowed in entries.items():
            for entry in allowed:
                if whose := entry.rpartition("/")[0]:
                    named.setdefault(whose, []).append(f"{setting}: {entry}")
        for one in settings.workspace_limits:
            named.setdefault(one, []).append("EVALUATOR_HOST_WORKSPACE_LIMITS")
        unknown = await self._workspaces.advice_on_unknown(named) if named else {}
        return [
            f"there is no workspace {one}, but the settings name it ({', '.join(named[one])}); {advice}"
            for one, advice in unknown.items()
        ]

    async def _names(self, workspace: str) -> frozenset[str]:
        """Return the id and the name of a workspace. Settings may use either of them."""
        name = await self._workspaces.name_of(workspace) if self._workspaces is not None else None
        return frozenset({workspace, name or workspace})


def _entries_for(allowed: Iterable[str], names: frozenset[str]) -> Iterator[str]:
    """Yield a setting's entries for a workspace. `NAME` is for every workspace, `WORKSPACE/NAME` for one workspace."""
    for one in allowed:
        whose, _, name = one.rpartition("/")
        if not whose or whose in names:
            yield name
