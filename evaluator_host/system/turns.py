"""Divides places between workspaces: in turn, and never all of them to one when another is known."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from evaluator_host.model.errors import Busy


def most_places(places: int, known: int) -> int:
    """Return how many of `places` one workspace may have at a time when `known` workspaces are known."""
    return places if known <= 1 else max(1, places - 1)


class Turns:
    """Decides who works next: workspaces take turns, and one workspace cannot occupy every place.

    As long as only one workspace has asked, it may take every place. Bound to one event loop.

    Args:
      places: How many may work at the same time.
      each: Most places of one workspace, whoever else asks; None for all but one.
      queue_limit: Most waiters of one workspace; None for any number.
    """

    def __init__(self, places: int, *, each: int | None = None, queue_limit: int | None = None) -> None:
        self._places = places
        self._each = each
        self._queue_limit = queue_limit
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._known: set[str] = set()

    @asynccontextmanager
    async def turn(self, workspace: str) -> AsyncIterator[None]:
        """Wait until this workspace may work; the next one may when the block ends.

        Raises:
          Busy: `queue_limit` calls of the workspace wait already.
        """
        waiting = len(self._waiting.get(workspace, ()))
        if self._queue_limit is not None and waiting >= self._queue_limit:
            raise Busy(f"{waiting} such calls of this workspace wait already; send fewer at once", retry_after_s=2)
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
        while self._running.total() < self._places and (workspace := self._whose()) is not None:
            waiters = self._waiting.pop(workspace)
            waiter = waiters.popleft()
            if waiters:
                self._waiting[workspace] = waiters
            if not waiter.done():
                self._running[workspace] += 1
                waiter.set_result(None)

    def _whose(self) -> str | None:
        most = self._each or most_places(self._places, len(self._known))
        return next((workspace for workspace in self._waiting if self._running[workspace] < most), None)
