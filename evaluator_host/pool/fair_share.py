"""What each workspace has of the pool, so that no flood takes every sandbox or every place in the queue.

A workspace may take three sandboxes for each that it leaves free, and nine places of the queue for each that it leaves:
one flood gets three quarters and nine tenths, two get 3/7 and 9/19 each, and something is always left for who comes
next. Who has none at work may always start one, and who has nobody waiting may always wait. There is nobody to leave
anything for until a second workspace has called.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from evaluator_host.model.errors import Busy
from evaluator_host.model.evaluator import SandboxSpec
from evaluator_host.pool.capacity import Capacity

SANDBOXES_PER_FREE: Final = 3
PLACES_PER_FREE: Final = 9
_SOONEST_S: Final = 1.0
_LATEST_S: Final = 30.0  # a queue that moves slower than that is worth a look before


@dataclass(slots=True)
class Share:
    """What one workspace has.

    Attributes:
      waiting: Its calls in the queue.
      sandboxes: Of its sandboxes, those at work: starting, leased or being ended. Idle ones can be had by anybody.
      memory_mb: Sum of their memory limits.
      waited_s: How long the call waited that was served last.
      moved_at: When its queue last moved.
    """

    waiting: int = 0
    sandboxes: int = 0
    memory_mb: int = 0
    waited_s: float = 0.0
    moved_at: float = field(default_factory=time.monotonic)

    @property
    def retry_after_s(self) -> float:
        """When to come back: whoever waits now is served after about as long as the last one waited."""
        stalled_s = time.monotonic() - self.moved_at
        return min(_LATEST_S, max(_SOONEST_S, self.waited_s, stalled_s))


class Shares:
    """The shares of all workspaces, against the ceilings of the pool."""

    def __init__(self, capacity: Capacity, *, queue_limit: int) -> None:
        self._capacity = capacity
        self._queue_limit = queue_limit
        self._all = Share()
        self._of: dict[str, Share] = {}

    @property
    def waiting(self) -> int:
        """Calls in the queue."""
        return self._all.waiting

    def of(self, workspace: str) -> Share:
        """Return the share of a workspace; it is known from then on."""
        share = self._of.get(workspace)
        if share is None:
            share = self._of[workspace] = Share()
        return share

    def memory_with(self, workspace: str, spec: SandboxSpec) -> int:
        """Return what the workspace would have at work, in MB, with one more sandbox."""
        return self.of(workspace).memory_mb + spec.memory_mb

    def may_start(self, workspace: str, spec: SandboxSpec) -> bool:
        """Whether one more sandbox at work leaves enough for others; whether it fits is `Capacity`'s to say."""
        own = self.of(workspace)
        if own.sandboxes == 0 or len(self._of) == 1:
            return True
        free = self._capacity.max_sandboxes - self._all.sandboxes - 1
        free_mb = self._capacity.memory_mb - self._all.memory_mb - spec.memory_mb
        return (
            own.sandboxes + 1 <= SANDBOXES_PER_FREE * free
            and own.memory_mb + spec.memory_mb <= SANDBOXES_PER_FREE * free_mb
        )

    def begin(self, workspace: str, spec: SandboxSpec) -> None:
        """Count a sandbox that is at work from now on."""
        for share in (self.of(workspace), self._all):
            share.sandboxes += 1
            share.memory_mb += spec.memory_mb

    def end(self, workspace: str, spec: SandboxSpec) -> None:
        """Count a sandbox that idles or is gone."""
        for share in (self.of(workspace), self._all):
            share.sandboxes -= 1
            share.memory_mb -= spec.memory_mb

    @contextmanager
    def queued(self, workspace: str) -> Iterator[None]:
        """Hold a place in the queue.

        Raises:
          Busy: this workspace has all it may have.
        """
        own = self.of(workspace)
        if not self._may_wait(own):
            retry_after_s = own.retry_after_s
            raise Busy(
                f"{own.waiting} calls of this workspace wait already; send fewer at once, or several rows per call, "
                f"and come back in {retry_after_s:.0f} s",
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
        if own.waiting == 0 or len(self._of) == 1:
            return own.waiting == 0 or free > 0
        return own.waiting < PLACES_PER_FREE * free
