"""Which package sets a workspace sees: those that it asked for, by a build or by an evaluator that pins them.

Installed files are shared by everybody who pins the same packages; that somebody else did is not told. A caller without
a key is the host's operator and sees every set.
"""

from typing import Final

from evaluator_host.environments.record import EnvironmentReport
from evaluator_host.model.errors import NotFound, StoreUnavailable
from evaluator_host.store.package_sets import PackageSetUses
from evaluator_host.web.auth.keyring import Caller

_KEPT: Final = 50_000  # names known to be stored; forgetting one costs a write


class PackageVisibility:
    """Who asked for what. Bound to one event loop."""

    def __init__(self, uses: PackageSetUses) -> None:
        self._uses = uses
        self._noted: set[tuple[str, str]] = set()
        self._unwritten: dict[str, set[str]] = {}

    def note(self, caller: Caller, *names: str | None) -> None:
        """Note that a workspace asked for a set under these names; never waits."""
        for name in names:
            pair = (caller.workspace, name or "")
            if name and pair not in self._noted:
                if len(self._noted) >= _KEPT:
                    self._noted.clear()
                self._noted.add(pair)
                self._unwritten.setdefault(caller.workspace, set()).add(name)

    async def write(self) -> None:
        """Write what was noted.

        Raises:
          StoreUnavailable: the database does not answer; it waits for the next try.
        """
        while self._unwritten:
            workspace, names = self._unwritten.popitem()
            try:
                await self._uses.asked(workspace, names)
            except StoreUnavailable:
                self._unwritten.setdefault(workspace, set()).update(names)
                raise

    async def filtered(self, caller: Caller, reports: list[EnvironmentReport]) -> list[EnvironmentReport]:
        """Return those of the sets that a caller sees."""
        if caller.key_id is None:
            return reports
        names = await self._names(caller)
        return [report for report in reports if _names_of(report) & names]

    async def require(self, caller: Caller, report: EnvironmentReport, name: str) -> None:
        """Refuse a set that a caller does not see, by the name that they asked for.

        Raises:
          NotFound: in the words in which one that does not exist is refused.
        """
        if not await self.filtered(caller, [report]):
            raise no_such_set(name)

    async def is_shared(self, caller: Caller, report: EnvironmentReport) -> bool:
        """Whether another workspace asked for a set too, so that it is not this caller's to remove."""
        if caller.key_id is None:
            return False
        await self.write()  # who asked a moment ago counts too
        return await self._uses.wanted_by_others(caller.workspace, _names_of(report))

    async def forget(self, caller: Caller, report: EnvironmentReport) -> None:
        """Note that a workspace wants a set no longer."""
        names = _names_of(report)
        self._noted -= {(caller.workspace, name) for name in names}
        await self.write()  # what was asked for before must not be written after
        await self._uses.forget_set(caller.workspace, names)

    async def _names(self, caller: Caller) -> set[str]:
        noted = {name for workspace, name in self._noted if workspace == caller.workspace}
        return noted | await self._uses.names(caller.workspace)


def no_such_set(name: str) -> NotFound:
    """Return what a caller is told of a set that does not exist, and of somebody else's: the very same."""
    return NotFound(f"this workspace has asked for no package set {name[:80]}; POST /v1/environments asks for one")


def _names_of(report: EnvironmentReport) -> set[str]:
    return {name for name in (report.key, report.digest) if name}
