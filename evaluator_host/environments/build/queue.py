"""Whose build is next: few run at once, turns go round the workspaces, and none has them all once there are others."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class BuildQueue:
    """Bound to one event loop.

    Args:
      at_once: How many may have a turn at the same time.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._known: set[str] = set()

    @asynccontextmanager
    async def turn(self, workspace: str) -> AsyncIterator[None]:
        """Wait for a turn of a workspace, and hold it."""
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

    def _end(self, workspace: str) -> None:
        self._running[workspace] -= 1
        self._next()

    def _next(self) -> None:
        while self._running.total() < self._at_once and (workspace := self._whose()) is not None:
            waiters = self._waiting.pop(workspace)
            waiter = waiters.popleft()
            if waiters:
                self._waiting[workspace] = waiters
            if not waiter.done():
                self._running[workspace] += 1
                waiter.set_result(None)

    def _whose(self) -> str | None:
        most = self._at_once if len(self._known) == 1 else max(1, self._at_once - 1)
        return next((workspace for workspace in self._waiting if self._running[workspace] < most), None)
