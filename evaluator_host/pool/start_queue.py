"""Whose turn it is among evaluators that need a sandbox and cannot have one at once."""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator

from evaluator_host.model.evaluator import SandboxSpec
from evaluator_host.pool.evaluator_pools import Group
from evaluator_host.pool.fair_share import Shares


class Starved:
    """Groups that need a sandbox: round robin over workspaces, in each the oldest group first."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._by_workspace: OrderedDict[str, OrderedDict[tuple[str, str], Group]] = OrderedDict()

    def add(self, group: Group) -> None:
        """Put a group in line; it keeps its place when it is in line already."""
        self._by_workspace.setdefault(group.workspace, OrderedDict()).setdefault(group.key, group)

    def served(self, group: Group) -> None:
        """Take a group out of line; its workspace goes to the back."""
        groups = self._by_workspace.pop(group.workspace, None)
        if groups is not None:
            groups.pop(group.key, None)
            if groups:
                self._by_workspace[group.workspace] = groups

    def next(self, fits: Callable[[SandboxSpec], bool]) -> Group | None:
        """Return whose turn it is.

        A sandbox that does not fit yet is not overtaken by a workspace that would have more of the memory: small ones
        would otherwise take whatever a large one waits for.
        """
        most_mb: float = math.inf
        for group, spec in self._eligible():
            memory_mb = self._shares.memory_with(group.workspace, spec)
            if memory_mb > most_mb:
                continue
            if fits(spec):
                return group
            most_mb = memory_mb
        return None

    def wants(self, group: Group) -> bool:
        """Whether somebody in line could start a sandbox if `group` gave one up."""
        return any(
            other is not group and (other.workspace == group.workspace or self._may_start(other))
            for other in self._first()
        )

    @property
    def eligible(self) -> int:
        """How many are in line whose workspace may start a sandbox."""
        return sum(len(self._by_workspace[group.workspace]) for group, _ in self._eligible())

    def _eligible(self) -> Iterator[tuple[Group, SandboxSpec]]:
        """Yield the first group of each workspace that is within its share."""
        for group in self._first():
            if self._may_start(group):
                yield group, group.waiters[0].order.spec

    def _may_start(self, group: Group) -> bool:
        return self._shares.may_start(group.workspace, group.waiters[0].order.spec)

    def _first(self) -> Iterator[Group]:
        """Yield the first group of each workspace, in turn; those whose callers hung up leave the line."""
        for workspace, groups in list(self._by_workspace.items()):
            while groups:
                group = next(iter(groups.values()))
                if group.has_waiters:
                    yield group
                    break
                del groups[group.key]
            if not groups:
                self._by_workspace.pop(workspace, None)

    def __bool__(self) -> bool:
        return bool(self._by_workspace)
