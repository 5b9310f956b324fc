"""The sandboxes and the waiting callers of each evaluator."""

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from evaluator_host.model.errors import HostError
from evaluator_host.model.evaluator import Json, SandboxSpec
from evaluator_host.model.outcome import Failed, Loaded
from evaluator_host.pool.fair_share import Shares
from evaluator_host.sandbox.session import LoadOrder, Sandbox

TURN_S: Final = 0.25  # how long an evaluator may keep a sandbox at least while another one has none
EMPTY_GROUPS: Final = 512  # evaluators whose compiled bundle is remembered without a sandbox


@dataclass(frozen=True, slots=True)
class Order:
    """What a lease asks for: one evaluator of one workspace, on a sandbox of this spec."""

    workspace: str
    digest: str
    spec: SandboxSpec
    load: LoadOrder

    @property
    def key(self) -> tuple[str, str]:
        """Sandboxes are shared by calls with an equal key only: never across workspaces."""
        return self.workspace, self.digest


@dataclass(slots=True, eq=False)
class Slot:
    """A sandbox that has loaded an evaluator."""

    sandbox: Sandbox
    loaded: Loaded
    fresh: bool = True
    idle_since: float = 0.0


@dataclass(slots=True, eq=False)
class Waiter:
    """A caller waiting for a slot; the future ends with a slot, or with the load's failure."""

    order: Order
    future: asyncio.Future[Slot | Failed]
    since: float = field(default_factory=time.monotonic)


class Group:
    """One evaluator of one workspace.

    What it has at work is counted in its workspace's share; an idle slot is not.

    Attributes:
      idle: Slots waiting for a call, the most recently used last.
      waiters: Callers, the longest waiting first.
      starting: Sandboxes being started or loaded for it.
      size: Sandboxes it has in all: idle, leased, starting.
      turn_until: When others that wait may have its sandboxes.
      bundle: What the runner compiled, for the next sandbox of the same code.
    """

    def __init__(self, key: tuple[str, str], shares: Shares) -> None:
        self.key = key
        self._shares = shares
        self.idle: deque[Slot] = deque()
        self.waiters: deque[Waiter] = deque()
        self.starting = 0
        self.size = 0
        self.turn_until = 0.0
        self.bundle: Json = None

    @property
    def workspace(self) -> str:
        """The workspace it belongs to."""
        return self.key[0]

    def grow(self, spec: SandboxSpec) -> None:
        """Count a sandbox that starts."""
        self.size += 1
        self.starting += 1
        self._shares.begin(self.workspace, spec)

    def begin_turn(self, *, started: float) -> None:
        """Begin its turn, now that a sandbox is ready which was asked for at `started`.

        It lasts as long as that took: on a loaded machine sandboxes would else be ended before they had served anybody.
        """
        now = time.monotonic()
        self.turn_until = now + max(TURN_S, now - started)

    def shrink(self, spec: SandboxSpec) -> None:
        """Count a sandbox less; it was at work, or taken out of `idle` to be ended."""
        self.size -= 1
        self._shares.end(self.workspace, spec)

    def park(self, slot: Slot) -> None:
        """Let a slot idle."""
        slot.idle_since = time.monotonic()
        self.idle.append(slot)
        self._shares.end(self.workspace, slot.sandbox.spec)

    def unpark(self, slot: Slot) -> Slot:
        """Take a slot out of `idle`, for a call or to be ended."""
        self.idle.remove(slot)
        self._shares.begin(self.workspace, slot.sandbox.spec)
        return slot

    def pop_waiter(self) -> Waiter | None:
        """Take the caller that waits longest, leaving out those that hung up."""
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.future.done():
                return waiter
        return None

    def answer_waiters(self, failed: Failed) -> None:
        """Let everybody who waits now have the load's failure."""
        while (waiter := self.pop_waiter()) is not None:
            waiter.future.set_result(failed)

    def fail_waiters(self, error: HostError) -> None:
        """Let everybody who waits now have the host's."""
        while (waiter := self.pop_waiter()) is not None:
            waiter.future.set_exception(error)

    @property
    def has_waiters(self) -> bool:
        """Whether anybody still waits."""
        while self.waiters and self.waiters[0].future.done():
            self.waiters.popleft()
        return bool(self.waiters)


class Groups:
    """Every group of a pool."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._by_key: dict[tuple[str, str], Group] = {}

    def of(self, order: Order) -> Group:
        """Return the group that an order belongs to."""
        group = self._by_key.get(order.key)
        if group is None:
            group = self._by_key[order.key] = Group(order.key, self._shares)
        return group

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._by_key.values()))

    def idling_longest(self) -> Group | None:
        """Return whose idle sandbox to give up first: of the workspace that has most at work, the one idle longest."""
        idle = [group for group in self if group.idle]
        return min(
            idle,
            key=lambda group: (-self._shares.of(group.workspace).sandboxes, group.idle[0].idle_since),
            default=None,
        )

    def forget_empty(self) -> None:
        """Forget the oldest groups that have neither sandbox nor caller, but for the last of them."""
        empty = [key for key, group in self._by_key.items() if not group.size and not group.waiters]
        for key in empty[: max(0, len(empty) - EMPTY_GROUPS)]:
            del self._by_key[key]
