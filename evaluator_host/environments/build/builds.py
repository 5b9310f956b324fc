"""The builds of one host: one per set however many ask for it, few at once, and why the last ones failed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from evaluator_host.environments.build.build import Build, BuildContext
from evaluator_host.environments.build.queue import BuildQueue
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
      context: What builds need.
      on_ready: Told the record of each set as soon as it is installed.
      on_done: Called after that, when callers need not wait any more.
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
        self._turns = BuildQueue(_AT_ONCE)

    @property
    def running(self) -> Iterator[Build]:
        """Those under way."""
        return (build for build, _ in self._running.values())

    @property
    def failed(self) -> Iterator[Build]:
        """Those that failed, as far as they are remembered."""
        return iter(self._failed.values())

    def find_running(self, key: str) -> Build | None:
        """Return the build of a set that is under way."""
        return self._running[key][0] if key in self._running else None

    def find_failed(self, key: str) -> Build | None:
        """Return the last build of a set, if it failed."""
        return self._failed.get(key)

    def forget_failed(self, key: str) -> bool:
        """Forget that a build failed; says whether it had."""
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
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be waiting for it
        return task

    async def wait(self, key: str) -> None:
        """Wait for the build of a set, if it is under way.

        Raises:
          HostError: why it failed.
        """
        if key in self._running:
            await asyncio.shield(self._running[key][1])

    async def close(self) -> None:
        """Stop every build, with nothing left of it."""
        tasks = [task for _, task in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, build: Build, workspace: str) -> Record:
        try:
            async with self._turns.turn(workspace):
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
