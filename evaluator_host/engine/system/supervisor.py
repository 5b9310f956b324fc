"""Keeps the long-lived tasks of a host running, and reports whether they run."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from evaluator_host.engine.system.child_watch import watch_child
from evaluator_host.types.errors import PartFailed

PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_STEADY_S: Final = 5.0  # a restarted task counts as working if no task fails for this many seconds

_log = logging.getLogger(__name__)


class Supervisor:
    """Runs the long-lived tasks of one host, and restarts tasks that raise an error. Bound to one event loop."""

    def __init__(self) -> None:
        self.restarts = 0  # number of times that a task was restarted
        self.checks: list[Callable[[], None]] = []  # functions that raise if a part of the host cannot work now
        self.silent: set[str] = set()  # names of child processes that do not answer
        self._failing: set[str] = set()
        # end of the grace period, by `time.monotonic`; None until the host stops
        self._stop_by: float | None = None

    def count_restart(self) -> None:
        """Count one restart of a part of the host."""
        self.restarts += 1

    def stop_within(self, grace_s: float) -> float:
        """On the first call, start the grace period of `grace_s` seconds; return how many seconds are left."""
        if self._stop_by is None:
            self._stop_by = time.monotonic() + grace_s
        return max(0.0, self._stop_by - time.monotonic())

    def require_working(self) -> None:
        """Check that every task runs and every check passes.

        Raises:
          PartFailed: a task raised an exception a moment ago, or a child process does not answer.
          HostError: the error of a check.
        """
        if self._failing:
            failing = ", ".join(sorted(self._failing))
            raise PartFailed(f"a part of this host has failed and is being restarted: {failing}; its log says why")
        if self.silent:
            silent = ", ".join(sorted(self.silent))
            raise PartFailed(f"a process of this host does not answer, and is replaced if it stays silent: {silent}")
        for check in self.checks:
            check()

    @asynccontextmanager
    async def running(self, name: str, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """Run a task during the `with` block, and restart it if it raises an error.

        At the end of the block, cancel the task and wait for it.

        Args:
          name: What the task does, for the log and for `/readyz`.
          work: Function that returns a new coroutine of the task; called again after an exception.
        """
        task = asyncio.create_task(self.repeat(name, work))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    @asynccontextmanager
    async def watching(
        self, name: str, pid: Callable[[], int], ask: Callable[[], Awaitable[None]]
    ) -> AsyncIterator[None]:
        """Watch a child process during the `with` block, as `watch_child` does."""
        async with self.running(f"the task that watches {name}", lambda: watch_child(name, pid, ask, self.silent)):
            yield

    async def repeat(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` until it returns or is cancelled, and run it again after each exception."""
        loop, pause_s = asyncio.get_running_loop(), PAUSE_S
        while True:
            began = loop.time()
            steady = loop.call_later(_STEADY_S, self._failing.discard, name)
            try:
                await work()
                self._failing.discard(name)
                return
            except Exception as error:  # noqa: BLE001 - whatever ended it, it is not to be missing from now on
                pause_s = PAUSE_S if loop.time() - began > _STEADY_S else min(2 * pause_s, _LONGEST_PAUSE_S)
                self.count_restart()
                self._failing.add(name)
                _log.error("%s has failed; it is started again in %g s", name, pause_s, exc_info=error)
            finally:
                steady.cancel()
            await asyncio.sleep(pause_s)
