"""The sandboxes and the waiting callers of one evaluator, and whose turn it is among evaluators that have none."""

import asyncio
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from evaluator_host.errors import HostError
from evaluator_host.model import Failed, Json, Loaded, SandboxSpec
from evaluator_host.sandbox.session import LoadOrder, Sandbox


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

    Attributes:
      idle: Slots waiting for a call, the most recently used last.
      waiters: Callers, the longest waiting first.
      starting: Sandboxes being started or loaded for it.
      size: Sandboxes it has in all: idle, leased, starting.
      turn_since: When it last got a sandbox while others waited for one.
      bundle: What the runner compiled, for the next sandbox of the same code.
    """

    def __init__(self, key: tuple[str, str]) -> None:
        self.key = key
        self.idle: deque[Slot] = deque()
        self.waiters: deque[Waiter] = deque()
        self.starting = 0
        self.size = 0
        self.turn_since = 0.0
        self.bundle: Json = None

    @property
    def workspace(self) -> str:
        """The workspace it belongs to."""
        return self.key[0]

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


class Starved:
    """Groups that need a sandbox when none may be started: round robin over workspaces, oldest group first in each."""

    def __init__(self) -> None:
        self._by_workspace: OrderedDict[str, OrderedDict[tuple[str, str], Group]] = OrderedDict()

    def add(self, group: Group) -> None:
        """Put a group in line; it keeps its place when it is in line already."""
        self._by_workspace.setdefault(group.workspace, OrderedDict()).setdefault(group.key, group)

    def discard(self, group: Group) -> None:
        """Take a group out of line."""
        groups = self._by_workspace.get(group.workspace)
        if groups is not None:
            groups.pop(group.key, None)
            if not groups:
                del self._by_workspace[group.workspace]

    def pop(self) -> Group | None:
        """Take the next group that still has waiters; its workspace goes to the back of the line."""
        while self._by_workspace:
            workspace, groups = next(iter(self._by_workspace.items()))
            _, group = groups.popitem(last=False)
            del self._by_workspace[workspace]
            if groups:
                self._by_workspace[workspace] = groups
            if group.has_waiters:
                return group
        return None

    def __bool__(self) -> bool:
        return bool(self._by_workspace)
