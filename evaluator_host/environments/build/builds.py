"""The builds of one host: one per set for any number of callers, two at once; failed ones are remembered."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Final

from evaluator_host.environments.build.build import Build, BuildContext
from evaluator_host.environments.record import BuildEvent, Record, Step
from evaluator_host.model.errors import HostError
from evaluator_host.model.evaluator import Language
from evaluator_host.packages.lock import Target
from evaluator_host.packages.pins import Pin

_AT_ONCE: Final = 2  # more would share the same line and the same disk
_FAILED_KEPT: Final = 100


class Builds:
    """Builds by the key of their set. Bound to one event loop.

    Args:
      context: Where and how sets are installed.
      on_ready: Called with the record of each set as soon as it is installed.
      on_done: Called after that; callers do not wait for it.
    """

    def __init__(
        self,
        context: BuildContext,
        *,
        on_ready: Callable[[Record], object],
        on_done: Callable[[], Awaitable[object]],
    ) -> None:
        self._context = context
        self._on_ready = on_ready
        self._on_done = on_done
        self._running: dict[str, tuple[Build, asyncio.Task[Record]]] = {}
        self._failed: dict[str, Build] = {}
        self._queue = BuildQueue(_AT_ONCE)

    @property
    def running(self) -> Iterator[Build]:
        """The builds under way."""
        return (build for build, _ in self._running.values())

    @property
    def failed(self) -> Iterator[Build]:
        """The last builds that failed."""
        return iter(self._failed.values())

    def find_running(self, key: str) -> Build | None:
        """Return the build of a set, if it is under way."""
        return self._running[key][0] if key in self._running else None

    def find_failed(self, key: str) -> Build | None:
        """Return the last build of a set, if it failed."""
        return self._failed.get(key)

    def forget_failed(self, key: str) -> bool:
        """Forget the failed build of a set; return whether there was one."""
        return self._failed.pop(key, None) is not None

    def begin(
        self, key: str, pins: tuple[Pin, ...], language: Language, target: Target, *, workspace: str
    ) -> asyncio.Task[Record]:
        """Return the build of a set, which begins unless it is under way; to be awaited shielded.

        It takes a turn of `workspace`: of the one that asked first.
        """
        if key in self._running:
            return self._running[key][1]
        build = Build(key, pins, language, target)
        build.tell(BuildEvent(Step.RESOLVING))
        task = asyncio.get_running_loop().create_task(self._run(build, workspace))
        self._running[key] = build, task
        self._failed.pop(key, None)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # read even when nobody waits
        return task

    async def wait(self, key: str) -> None:
        """Wait for the build of a set, if it is under way.

        Raises:
          HostError: why it failed.
        """
        if key in self._running:
            await asyncio.shield(self._running[key][1])

    async def close(self) -> None:
        """Stop every build and remove its files."""
        tasks = [task for _, task in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, build: Build, workspace: str) -> Record:
        try:
            async with self._queue.turn(workspace):
                record = await build.run(self._context)
            self._on_ready(record)
        except HostError:
            while len(self._failed) >= _FAILED_KEPT:
                del self._failed[next(iter(self._failed))]
            self._failed[build.key] = build
            raise
        finally:
            del self._running[build.key]
        await self._on_done()
        return record


class BuildQueue:
    """Decides which build runs next: workspaces take turns, and none gets every place while others wait.

    Bound to one event loop.

    Args:
      at_once: How many builds may run at the same time.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._known: set[str] = set()

    @asynccontextmanager
    async def turn(self, workspace: str) -> AsyncIterator[None]:
        """Wait until a build of this workspace may run; the turn ends with the block."""
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
