"""The queue of evaluators that need a sandbox when none can be started at once."""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator

from evaluator_host.model.evaluator import SandboxSpec
from evaluator_host.pool.evaluator_pools import EvaluatorPool
from evaluator_host.pool.fair_share import FairShare


class StartQueue:
    """Evaluator pools that need a sandbox: round robin over workspaces, in each the oldest first. False when empty."""

    def __init__(self, shares: FairShare) -> None:
        self._shares = shares
        self._by_workspace: OrderedDict[str, OrderedDict[tuple[str, str], EvaluatorPool]] = OrderedDict()

    def enqueue(self, entry: EvaluatorPool) -> None:
        """Add an evaluator pool; it keeps its place when it is in the queue already."""
        self._by_workspace.setdefault(entry.workspace, OrderedDict()).setdefault(entry.key, entry)

    def remove(self, entry: EvaluatorPool) -> None:
        """Remove an evaluator pool whose sandbox starts; its workspace goes to the back."""
        entries = self._by_workspace.pop(entry.workspace, None)
        if entries is not None:
            entries.pop(entry.key, None)
            if entries:
                self._by_workspace[entry.workspace] = entries

    def next_to_start(self, fits: Callable[[SandboxSpec], bool]) -> EvaluatorPool | None:
        """Return the evaluator pool whose turn it is, None when no sandbox can be started now.

        A large sandbox that does not fit yet is not overtaken by a workspace that would then use more memory than its
        own: small sandboxes would otherwise always take the room that it waits for.
        """
        most_mb: float = math.inf
        for entry, spec in self._eligible():
            memory_mb = self._shares.memory_with(entry.workspace, spec)
            if memory_mb > most_mb:
                continue
            if fits(spec):
                return entry
            most_mb = memory_mb
        return None

    def wants_sandbox_of(self, owner: EvaluatorPool) -> bool:
        """Return whether another evaluator in the queue could start a sandbox if `owner` gave one up."""
        return any(
            other is not owner and (other.workspace == owner.workspace or self._may_start(other))
            for other in self._first()
        )

    @property
    def eligible(self) -> int:
        """Number of evaluators in the queue whose workspace may start a sandbox."""
        return sum(len(self._by_workspace[entry.workspace]) for entry, _ in self._eligible())

    def _eligible(self) -> Iterator[tuple[EvaluatorPool, SandboxSpec]]:
        """Yield the first entry of each workspace that is within its share."""
        for entry in self._first():
            if self._may_start(entry):
                yield entry, entry.waiters[0].request.spec

    def _may_start(self, entry: EvaluatorPool) -> bool:
        return self._shares.may_start(entry.workspace, entry.waiters[0].request.spec)

    def _first(self) -> Iterator[EvaluatorPool]:
        """Yield the first entry of each workspace, in turn; entries whose callers hung up are removed."""
        for workspace, entries in list(self._by_workspace.items()):
            while entries:
                entry = next(iter(entries.values()))
                if entry.has_waiters:
                    yield entry
                    break
                del entries[entry.key]
            if not entries:
                self._by_workspace.pop(workspace, None)

    def __bool__(self) -> bool:
        return bool(self._by_workspace)
