"""Decides which package sets a workspace sees: the sets that it built, or that its evaluators pin.

Workspaces that pin the same packages share the installed files, but do not notice each other. A caller without a key
is the host's operator and sees every set.
"""

import asyncio
from typing import Final

from evaluator_host.engine.environments.record import EnvironmentReport
from evaluator_host.platform.http.auth.keyring import KeyHolder
from evaluator_host.platform.store.workspaces import PackageSetUses
from evaluator_host.types.errors import NotFound, StoreUnavailable

_KEPT: Final = 50_000  # maximum number of names to remember as stored; a forgotten name is written again


class PackageVisibility:
    """Records which workspace requested which package set. Use it in one event loop only."""

    def __init__(self, uses: PackageSetUses) -> None:
        self._uses = uses
        self._noted: set[tuple[str, str]] = set()
        self._unwritten: dict[str, set[str]] = {}

    def note(self, workspace: str, *names: str | None) -> None:
        """Record that a workspace requested a package set with these names, without waiting for the database."""
        for name in names:
            pair = (workspace, name or "")
            if name and pair not in self._noted:
                if len(self._noted) >= _KEPT:
                    self._noted.clear()
                self._noted.add(pair)
                self._unwritten.setdefault(workspace, set()).add(name)

    async def write(self) -> None:
        """Write the recorded requests to the database.

        Raises:
          StoreUnavailable: the database does not answer; the requests will be written at the next attempt.
        """
        while self._unwritten:
            workspace, names = self._unwritten.popitem()
            try:
                await self._uses.asked(workspace, names)
            except (StoreUnavailable, asyncio.CancelledError):
                self._unwritten.setdefault(workspace, set()).update(names)
                raise

    async def filtered(self, caller: KeyHolder, reports: list[EnvironmentReport]) -> list[EnvironmentReport]:
        """Return only those package sets that a caller may see."""
        if caller.key_id is None:
            return reports
        names = await self._names(caller)
        return [report for report in reports if _names_of(report) & names]

    async def sees(self, caller: KeyHolder, name: str) -> bool:
        """Whether the caller's workspace requested the package set with this name. The name is a key or a digest."""
        return caller.key_id is None or name in await self._names(caller)

    async def is_shared(self, caller: KeyHolder, report: EnvironmentReport) -> bool:
        """Whether another workspace requested the package set, too. If so, the files of the set must not be removed."""
        if caller.key_id is None:
            return False
        await self.write()  # this also writes requests that were recorded a moment ago
        return await self._uses.wanted_by_others(caller.workspace, _names_of(report))

    async def forget(self, caller: KeyHolder, report: EnvironmentReport) -> None:
        """Record that a workspace no longer uses a package set."""
        names = _names_of(report)
        self._noted -= {(caller.workspace, name) for name in names}
        await self.write()  # otherwise an older request could be written after the removal
        await self._uses.forget_set(caller.workspace, names)

    async def _names(self, caller: KeyHolder) -> set[str]:
        noted = {name for workspace, name in self._noted if workspace == caller.workspace}
        return noted | await self._uses.names(caller.workspace)


def no_such_set(name: str) -> NotFound:
    """Return the error for a package set that does not exist, or that only another workspace requested."""
    return NotFound(
        f"this workspace has not requested a package set {name[:80]}; request one with POST /v1/environments"
    )


def _names_of(report: EnvironmentReport) -> set[str]:
    return {name for name in (report.key, report.digest) if name}
