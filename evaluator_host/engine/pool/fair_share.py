"""Limits how many sandboxes, and how many places in the queue, each workspace may use.

A workspace may take three sandboxes for each sandbox that stays free, and nine places of the queue for each place that
stays free. So a workspace that floods the host gets 3/4 of the sandboxes and 9/10 of the queue; two such workspaces get
3/7 and 9/19 each. Something is always left for the next workspace. A workspace without a busy sandbox may always start
one sandbox. A workspace without a waiting call may always have one call wait. Until a second workspace calls, the
first may take everything.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from evaluator_host.engine.sandbox.session import Sandbox
from evaluator_host.engine.system.turns import may_take
from evaluator_host.types.errors import Busy
from evaluator_host.types.evaluator import SandboxSpec

SANDBOXES_PER_FREE: Final = 3
PLACES_PER_FREE: Final = 9
_SOONEST_S: Final = 1.0
_LATEST_S: Final = 30.0  # longest wait that is suggested to a refused caller, however slowly the queue moves


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Limits of a pool: number, memory (MB) and age (seconds) of its sandboxes, and number of waiting calls."""

    max_sandboxes: int = 16  # maximum number of sandboxes, whether busy or idle
    max_running: int | None = None  # maximum number of sandboxes that start or run at once; None for `max_sandboxes`
    # maximum number of sandboxes that start at once; if more start than there are processors, all calls are delayed
    max_starting: int = 16
    # maximum number of sandboxes per evaluator, not counting those whose rows wait for an answer from outside
    max_per_evaluator: int = 2
    # maximum number of sandboxes per evaluator, counting those whose rows wait for an answer from outside
    max_waiting: int = 200
    memory_mb: int = 4096  # maximum MB for the sum of busy sandboxes' memory limits and idle sandboxes' memory use
    idle_sandboxes: int = 1  # sandboxes to start in advance for each recently used environment
    idle_ttl_s: float = 300.0  # a sandbox is ended when no row has used it for this many seconds
    max_rows: int = 100_000  # a sandbox is replaced after this many rows
    max_age_s: float = 3600.0  # a sandbox is replaced when it is this old
    queue_limit: int = 1000  # maximum number of calls that may wait for a sandbox
    grace_s: float = 1.0  # after a row's time limit, the runner has this many seconds to report the timeout
    answers_mb: int = 256  # maximum MB of large answers to read at once


class Capacity:
    """Counts the sandboxes of a pool and their memory.

    For a resting sandbox (one that runs no row), the memory that it uses counts. For any other sandbox, its memory
    limit counts. One sandbox always fits, even if its limit is larger than the pool's memory.

    Attributes:
      running: Number of sandboxes that start, run or end, and so may use memory up to their limit.
      running_mb: Sum of the memory limits of these sandboxes.
      taken_mb: `running_mb` plus the memory that the resting sandboxes use now.
      leaving: Number of sandboxes that are being ended.
      leaving_mb: How much of `taken_mb` belongs to the sandboxes that are being ended.
      environments: Number of sandboxes on each environment, by the environment's digest.
    """

    def __init__(self, *, max_sandboxes: int, memory_mb: int, max_running: int | None = None) -> None:
        self._limits = max_sandboxes, min(max_sandboxes, max_running or max_sandboxes), memory_mb
        self.divide(1)
        self.sandboxes = self.running = self.leaving = 0
        self.taken_mb = self.running_mb = self.leaving_mb = 0
        self.environments: Counter[str] = Counter()
        self._resting: dict[Sandbox, int] = {}
        self._leaving: dict[Sandbox, int] = {}

    def divide(self, parts: int) -> None:
        """Divide the configured limits by `parts`, the number of pools in the host; each limit stays at least 1."""
        self.max_sandboxes, self.max_running, self.memory_mb = (max(1, limit // parts) for limit in self._limits)

    def fits(self, spec: SandboxSpec) -> bool:
        """Return whether there is room to start a sandbox of this spec now."""
        if self.sandboxes == 0:
            return True
        return self.sandboxes < self.max_sandboxes and self._may_run(spec.memory_mb)

    def fits_awake(self, sandbox: Sandbox) -> bool:
        """Return whether there is room for a resting sandbox to run a row now."""
        resting_mb = self._resting.get(sandbox, sandbox.spec.memory_mb)
        return self.sandboxes == 1 or self._may_run(sandbox.spec.memory_mb - resting_mb)

    def _may_run(self, more_mb: int) -> bool:
        return self.running < self.max_running and self.taken_mb + more_mb <= self.memory_mb

    def reserve(self, spec: SandboxSpec) -> None:
        """Count one more sandbox, before it starts."""
        self.sandboxes += 1
        self._run(spec, 1)
        self.environments[spec.environment.digest] += 1

    def rest(self, sandbox: Sandbox) -> None:
        """From now on, count only the memory that a sandbox uses (`idle_mb`): it has no row, or its row waits.

        Call this again after `idle_mb` has changed.
        """
        if sandbox not in self._resting:
            self._run(sandbox.spec, -1)
        self.taken_mb += sandbox.idle_mb - self._resting.get(sandbox, 0)
        self._resting[sandbox] = sandbox.idle_mb

    def wake(self, sandbox: Sandbox) -> None:
        """From now on, count a sandbox with its whole memory limit again, because it is about to run a row."""
        self.taken_mb -= self._resting.pop(sandbox)
        self._run(sandbox.spec, 1)

    def leave(self, sandbox: Sandbox) -> None:
        """Count a sandbox as being ended; the caller must call `give_back` when it has ended."""
        self._leaving[sandbox] = mb = self._resting.get(sandbox, sandbox.spec.memory_mb)
        self.leaving += 1
        self.leaving_mb += mb

    def give_back(self, spec: SandboxSpec, sandbox: Sandbox | None = None) -> None:
        """Stop counting a sandbox that has ended; `sandbox` is None if it never started."""
        if sandbox is not None and (leaving_mb := self._leaving.pop(sandbox, None)) is not None:
            self.leaving -= 1
            self.leaving_mb -= leaving_mb
        self.sandboxes -= 1
        if sandbox in self._resting:
            self.taken_mb -= self._resting.pop(sandbox)
        else:
            self._run(spec, -1)
        self.environments[spec.environment.digest] -= 1
        if not self.environments[spec.environment.digest]:
            del self.environments[spec.environment.digest]

    def short_of(self, specs: Sequence[SandboxSpec]) -> tuple[int, int]:
        """Return how many sandboxes and how many MB must still be freed before sandboxes of all `specs` can start."""
        sandboxes = self.sandboxes - self.leaving + len(specs) - self.max_sandboxes
        memory_mb = self.taken_mb - self.leaving_mb + sum(spec.memory_mb for spec in specs) - self.memory_mb
        return sandboxes, memory_mb

    def _run(self, spec: SandboxSpec, count: int) -> None:
        self.running += count
        self.running_mb += count * spec.memory_mb
        self.taken_mb += count * spec.memory_mb


@dataclass(slots=True)
class Share:
    """The sandboxes, memory and queue places that one workspace uses."""

    waiting: int = 0  # number of this workspace's calls in the queue
    # sandboxes that start, run or are about to end, but not idle ones, which other workspaces can displace
    sandboxes: int = 0
    memory_mb: int = 0  # sum over these sandboxes: the memory limit of each, or the memory in use if its row waits
    waited_s: float = 0.0  # seconds that the last served call waited
    moved_at: float = field(default_factory=time.monotonic)  # time at which the queue last moved

    @property
    def retry_after_s(self) -> float:
        """Return how long a refused caller should wait: the longer of `waited_s` and the time since `moved_at`."""
        stalled_s = time.monotonic() - self.moved_at
        return min(_LATEST_S, max(_SOONEST_S, self.waited_s, stalled_s))


class FairShare:
    """Records how much of the pool each workspace uses, and decides whether it may use more."""

    def __init__(self, capacity: Capacity, *, queue_limit: int) -> None:
        self._capacity = capacity
        self._queue_limit = queue_limit
        self._all = Share()
        self._by_workspace: dict[str, Share] = {}

    @property
    def waiting(self) -> int:
        """Return the number of calls in the queue."""
        return self._all.waiting

    def share_of(self, workspace: str) -> Share:
        """Return the share of a workspace; record the workspace if it is new.

        Once a second workspace is recorded, no workspace may take the whole pool.
        """
        share = self._by_workspace.get(workspace)
        if share is None:
            share = self._by_workspace[workspace] = Share()
        return share

    def memory_with(self, workspace: str, spec: SandboxSpec) -> int:
        """Return the sum of the memory limits of a workspace's busy sandboxes and of one more sandbox, in MB."""
        return self.share_of(workspace).memory_mb + spec.memory_mb

    def may_start(self, workspace: str, spec: SandboxSpec) -> bool:
        """Return whether a workspace can start one more sandbox and still leave enough room for other workspaces."""
        own = self.share_of(workspace)
        if own.sandboxes == 0 or len(self._by_workspace) == 1:
            return True
        free = self._capacity.max_running - self._all.sandboxes - 1
        free_mb = self._capacity.memory_mb - self._all.memory_mb - spec.memory_mb
        return (
            own.sandboxes + 1 <= SANDBOXES_PER_FREE * free
            and own.memory_mb + spec.memory_mb <= SANDBOXES_PER_FREE * free_mb
        )

    def begin(self, workspace: str, memory_mb: int) -> None:
        """Count one more busy sandbox of a workspace, with its memory limit."""
        for share in (self.share_of(workspace), self._all):
            share.sandboxes += 1
            share.memory_mb += memory_mb

    def end(self, workspace: str, memory_mb: int) -> None:
        """Stop counting a workspace's sandbox as busy, because it is idle, its row waits, or it has ended."""
        for share in (self.share_of(workspace), self._all):
            share.sandboxes -= 1
            share.memory_mb -= memory_mb

    @contextmanager
    def queued(self, workspace: str) -> Iterator[None]:
        """Take a place in the queue for the workspace during the `with` block.

        Raises:
          Busy: the workspace uses all the places that it may take.
        """
        own = self.share_of(workspace)
        if not self._may_wait(own):
            retry_after_s = own.retry_after_s
            raise Busy(
                f"{own.waiting} calls of this workspace are already waiting; send fewer at once, or several rows "
                f"per call, and try again in {retry_after_s:.0f} s",
                retry_after_s=retry_after_s,
            )
        since = time.monotonic()
        if not own.waiting:
            own.moved_at, own.waited_s = since, 0.0
        for share in (own, self._all):
            share.waiting += 1
        try:
            yield
            own.moved_at = time.monotonic()
            own.waited_s = own.moved_at - since
        finally:
            for share in (own, self._all):
                share.waiting -= 1

    def _may_wait(self, own: Share) -> bool:
        free = self._queue_limit - self._all.waiting
        return may_take(own.waiting, free, per_free=PLACES_PER_FREE, known=len(self._by_workspace))
