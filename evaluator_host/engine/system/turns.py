"""Shares out a limited number of slots between workspaces, which take turns.

Once a second workspace has requested a slot, no workspace may hold all slots, unless there is only one slot.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from evaluator_host.engine.system.threads import work_for
from evaluator_host.types.errors import Busy


def most_slots(slots: int, known: int) -> int:
    """Return how many of `slots` one workspace may have at a time, if there are `known` workspaces."""
    return slots if known <= 1 else max(1, slots - 1)


def may_take(own: int, free: int, *, per_free: int, known: int) -> bool:
    """Return whether a workspace that has `own` slots may take one more, if `free` slots are left.

    A workspace may always have one slot. If it is the only one of the `known` workspaces, it may take all slots. Else
    it may have at most `per_free` slots for each free slot.
    """
    if own == 0 or known <= 1:
        return own == 0 or free > 0
    return own < per_free * free


class Shares:
    """Counts the slots that workspaces hold, and keeps some slots free for other workspaces.

    Args:
      slots: Number of slots.
      what: What the slots are for, in words for the error message, such as `uploads`.
      per_free: How many slots a workspace may hold for each slot that stays free, once there is a second workspace.
    """

    def __init__(self, slots: int, what: str, *, per_free: int = 3) -> None:
        self._what = what
        self._per_free = per_free
        self._free = slots
        self._taken: dict[str, int] = {}

    def hold(self, workspace: str) -> "_Held":
        """Return a context manager that holds a slot for a workspace; entering it raises `Busy` as `take` does."""
        return _Held(self, workspace)

    def take(self, workspace: str) -> None:
        """Take a slot, which the caller has to give back.

        Raises:
          Busy: the workspace holds all the slots that it may have.
        """
        own = self._taken.setdefault(workspace, 0)
        if not may_take(own, self._free, per_free=self._per_free, known=len(self._taken)):
            raise Busy(f"{own} {self._what} of this workspace are under way; send fewer at once", retry_after_s=2)
        self._taken[workspace] += 1
        self._free -= 1

    def give_back(self, workspace: str) -> None:
        """Make a slot of a workspace free again."""
        self._taken[workspace] -= 1
        self._free += 1


class _Held:
    """A context in which a workspace holds a slot. Each request has one; a generator would take four times as long."""

    __slots__ = ("_shares", "_workspace")

    def __init__(self, shares: Shares, workspace: str) -> None:
        self._shares = shares
        self._workspace = workspace

    def __enter__(self) -> None:
        self._shares.take(self._workspace)

    def __exit__(self, *_: object) -> None:
        self._shares.give_back(self._workspace)


class Turns:
    """Limits how much work runs at a time: workspaces take turns, so that one workspace does not block the others.

    Until a second workspace requests a slot, the first may take every slot. Bound to one event loop.

    Args:
      slots: Maximum number of calls that run at the same time.
      each: Maximum number of slots of one workspace, even if it is the only workspace. None for all slots, or for all
        but one once there is a second workspace.
      per_free: Instead of `each`: how many slots a workspace may have for each slot that stays free.
      queue_limit: Maximum number of waiting calls of one workspace; None for any number.
    """

    def __init__(
        self, slots: int, *, each: int | None = None, per_free: int | None = None, queue_limit: int | None = None
    ) -> None:
        self._slots = slots
        self._each = each
        self._per_free = per_free
        self._queue_limit = queue_limit
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._known: set[str] = set()

    @asynccontextmanager
    async def turn(self, workspace: str) -> AsyncIterator[None]:
        """Wait for a slot for this workspace, and hold the slot during the `with` block.

        Raises:
          Busy: `queue_limit` calls of the workspace are already waiting.
        """
        waiting = len(self._waiting.get(workspace, ()))
        if self._queue_limit is not None and waiting >= self._queue_limit:
            raise Busy(
                f"{waiting} calls of this kind from this workspace are already waiting; send fewer at once",
                retry_after_s=2,
            )
        self._known.add(workspace)
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(workspace, deque()).append(waiter)
        self._next()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._end(workspace)
            raise
        try:
            yield
        finally:
            self._end(workspace)

    def set_slots(self, slots: int) -> None:
        """Change the number of slots; work that is running keeps its slot."""
        self._slots = slots
        self._next()

    def _end(self, workspace: str) -> None:
        self._running[workspace] -= 1
        if not self._running[workspace]:
            del self._running[workspace]
        self._next()

    def _next(self) -> None:
        while self._running.total() < self._slots and (workspace := self._whose()) is not None:
            waiters = self._waiting.pop(workspace)
            waiter = waiters.popleft()
            if waiters:
                self._waiting[workspace] = waiters
            if not waiter.done():
                self._running[workspace] += 1
                waiter.set_result(None)

    def _whose(self) -> str | None:
        return next(filter(self._may_work, self._waiting), None)

    def _may_work(self, workspace: str) -> bool:
        own = self._running[workspace]
        if self._per_free is not None:
            return may_take(own, self._slots - self._running.total(), per_free=self._per_free, known=2)
        return own < (self._each or most_slots(self._slots, len(self._known)))


class TasksInTurns:
    """Starts tasks for workspaces, which take turns, so that slow work of one does not delay the work of another.

    Args:
      tasks: The group in which the tasks run.
      slots: Maximum number of tasks at a time. A workspace may have one task for each slot that stays free.
    """

    def __init__(self, tasks: asyncio.TaskGroup, slots: int) -> None:
        self._tasks = tasks
        self._turns = Turns(slots, per_free=1)
        self._under_way = set[tuple[str, ...]]()

    def begin(self, workspace: str, key: tuple[str, ...], work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Start `work` as a task of this workspace, unless an earlier task with the same key is still under way."""
        if key not in self._under_way:
            self._under_way.add(key)
            self._tasks.create_task(self._run(workspace, key, work))

    async def _run(self, workspace: str, key: tuple[str, ...], work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        work_for(workspace)
        try:
            async with self._turns.turn(workspace):
                await work()
        finally:
            self._under_way.discard(key)
