"""Builds package sets from pins, tests the installed packages, and reports the steps.

Any number of callers can share one build. At most three builds run at once, and at most two of one workspace. The host
remembers failed builds.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evaluator_host.engine.environments.build.builder import Builder
from evaluator_host.engine.environments.build.byte_code import compile_sources
from evaluator_host.engine.environments.build.import_check import check_imports
from evaluator_host.engine.environments.build.install import install
from evaluator_host.engine.environments.build.remedies import PinsFor
from evaluator_host.engine.environments.contents import settle
from evaluator_host.engine.environments.folder import EnvironmentFolder
from evaluator_host.engine.environments.record import BuildEvent, BuildStatus, EnvironmentReport, Record, Step, now
from evaluator_host.engine.packages.index import IndexSettings
from evaluator_host.engine.packages.lock import Lock, LockTarget, Pin
from evaluator_host.engine.packages.resolve import resolve
from evaluator_host.engine.sandbox.base import Backend
from evaluator_host.engine.system.files import hold_lock
from evaluator_host.engine.system.spans import Attributes, span
from evaluator_host.engine.system.tree import remove, size_bytes
from evaluator_host.engine.system.turns import Turns
from evaluator_host.types.errors import HostError, MachineExhausted
from evaluator_host.types.evaluator import Environment, Language, Package

_log = logging.getLogger(__name__)

_AT_ONCE: Final = 3  # maximum number of builds at once
# maximum number of builds of one workspace at once: one less, so that another workspace's first build need not wait
_OF_ONE: Final = 2
_FAILED_KEPT: Final = 100
_LOCKS_BYTES: Final = 64 << 20  # maximum total size, in bytes, of stored locks whose package sets are not installed


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The folders, tools and settings with which a host builds package sets."""

    folder: EnvironmentFolder
    builder: Builder
    backend: Backend
    index: IndexSettings
    pins_for: PinsFor
    allow_source_builds: bool
    ceiling_mb: int
    free_disk_mb: int = 0  # number of MB to leave free on the disk of the data directory
    # repository in a container registry, in which the host first looks for a set whose lock is known
    packages_from: str | None = None


class Build:
    """A package set being built; any number of callers can wait for it or watch its steps."""

    def __init__(self, key: str, pins: tuple[Pin, ...], language: Language, target: LockTarget) -> None:
        self.key = key
        self.pins = pins
        self.language = Language.PYTHON if language is Language.PYTHON else Language.JAVASCRIPT
        self.target = target
        self.events: list[BuildEvent] = []  # all steps of the build so far
        self.error: HostError | None = None  # why the build failed; None if it has not failed
        self._more = asyncio.Event()

    def tell(self, event: BuildEvent) -> None:
        """Add a build event, unless it is the same as the last event, and wake the watchers."""
        if not self.events or self.events[-1] != event:
            self.events.append(event)
            self._more.set()
            self._more = asyncio.Event()

    async def watch(self) -> AsyncGenerator[BuildEvent, None]:
        """Yield every build event, from the first, until the build ends."""
        seen = 0
        while True:
            more = self._more
            while seen < len(self.events):
                seen += 1
                yield self.events[seen - 1]
                if self.events[seen - 1].step.final:
                    return
            await more.wait()

    def report(self, folder: EnvironmentFolder) -> EnvironmentReport:
        """Return the API's report on this build.

        The report has the lock that is stored in `folder`, or None until packages are resolved.
        """
        lock = folder.lock_of(self.key)
        return EnvironmentReport(
            key=self.key,
            digest=lock.digest if lock else None,
            status=BuildStatus.FAILED if self.error else BuildStatus.BUILDING,
            language=self.language,
            runtime=f"{'python' if self.language is Language.PYTHON else 'node'} {self.target.runtime}",
            packages=packages_of(lock) if lock else self._pinned(),
            lock=lock.text if lock else None,
            error=self.error.detail if self.error else None,
        )

    def span_attributes(self) -> Attributes:
        """Return what tracing records about the build: language and number of pins."""
        language = self.language.value
        return {"evaluator_host.environment.language": language, "evaluator_host.environment.pins": len(self.pins)}

    def _pinned(self) -> tuple[Package, ...]:
        extras = {pin: f"[{','.join(pin.extras)}]" if pin.extras else "" for pin in self.pins}
        return tuple(Package(pin.name + extras[pin], pin.version) for pin in self.pins)

    async def run(self, context: BuildContext) -> Record:
        """Build the package set, unless it is installed, and return its record.

        Raises:
          HostError: the set cannot be resolved, installed or imported; its files are removed.
        """
        try:
            async with hold_lock(context.folder.build_lock(self.key)):
                record = await self._find_or_build(context)
        except HostError as error:
            self._failed(error)
            raise
        except OSError as error:
            refused = MachineExhausted.by(error, doing="install the package set")
            self._failed(refused)
            raise refused from error
        except BaseException as error:
            self.tell(BuildEvent(Step.FAILED, detail=f"the host stopped the build ({type(error).__name__})"))
            raise
        self.tell(BuildEvent(Step.READY, len(record.packages), len(record.packages)))
        return record

    def _failed(self, error: HostError) -> None:
        self.error = error
        self.tell(BuildEvent(Step.FAILED, detail=error.detail))

    async def _find_or_build(self, context: BuildContext) -> Record:
        started = time.monotonic()
        lock = await asyncio.to_thread(context.folder.lock_of, self.key)
        if lock is not None and (record := context.folder.record(lock.digest)) is not None:
            return record
        self.tell(BuildEvent(Step.RESOLVING))
        if lock is None:
            lock = await self._resolve(context)
            await asyncio.to_thread(context.folder.keep_lock, self.key, lock)
        # An image of an earlier, removed or broken copy of the set may be left: a sandbox must not start from it now.
        await context.backend.drop_environment(lock.digest)
        stage = await asyncio.to_thread(context.folder.new_stage, self.key)
        try:
            await install(
                lock, stage / "files", builder=context.builder, index=context.index, ceiling_mb=context.ceiling_mb,
                tell=self.tell,
            )  # fmt: skip
            self.tell(BuildEvent(Step.CHECKING, 0, len(lock.packages)))
            return await adopt(context, stage, key=self.key, lock=lock, started=started)
        finally:
            await asyncio.shield(asyncio.to_thread(remove, stage))

    async def _resolve(self, context: BuildContext) -> Lock:
        return await resolve(
            self.pins,
            self.language,
            target=self.target,
            index=context.index,
            allow_source_builds=context.allow_source_builds and self.language is Language.PYTHON,
            builder=context.builder.run_sources if context.allow_source_builds else None,
            run=context.builder.run,
            tools=context.builder.tools,
        )


async def adopt(
    context: BuildContext, stage: Path, *, key: str, lock: Lock, started: float = 0.0, pulled: Record | None = None
) -> Record:
    """Check a package set in its staging folder, move it to the final folder, and return its record.

    `started` is when the build began, as a value of `time.monotonic`. `pulled` is the record of files that were pulled
    from a registry; these files have byte code already.

    Raises:
      PackagesFailed: the files have an entry that no sandbox may have, or a package cannot be used.
      SandboxUnavailable: no sandbox can be started.
    """
    files = stage / "files"
    environment = Environment(lock.digest, lock.language, runtime_name(lock), packages_of(lock), files)
    await asyncio.to_thread(settle, files)
    files.chmod(0o755)
    try:
        imports = await check_imports(environment, lock.pins, context.backend, pins_for=context.pins_for)
        if imports.sources and pulled is None:
            room_bytes = (context.ceiling_mb << 20) - await asyncio.to_thread(size_bytes, files)
            await compile_sources(
                files, sorted(imports.sources), python=lock.target.runtime, backend=context.backend,
                room_bytes=room_bytes,
            )  # fmt: skip
            # drop the image that the import check used, because it lacks the byte code
            await context.backend.drop_environment(lock.digest)
        record = Record(
            key=key,
            digest=lock.digest,
            language=lock.language,
            runtime=environment.runtime,
            packages=environment.packages,
            lock=lock.text,
            size_bytes=await asyncio.to_thread(size_bytes, files),
            built_at=now(),
            build_s=round(time.monotonic() - started, 2) if pulled is None else pulled.build_s,
            import_ms=imports.import_ms,
            notes=(*lock.notes, *imports.notes),
        )
        await asyncio.to_thread(context.folder.keep_lock, key, lock)
        await asyncio.to_thread(context.folder.put, stage, record)
        await context.backend.prepare(context.folder.environment(record))
    except BaseException:
        with contextlib.suppress(HostError):  # report the build's error, not one from the cleanup
            await asyncio.shield(context.backend.drop_environment(lock.digest))
        raise
    return record


def runtime_name(lock: Lock) -> str:
    """Return a lock's runtime with its minor version, such as `python 3.13`; sandboxes report the exact version."""
    return f"{'python' if lock.language is Language.PYTHON else 'node'} {lock.target.runtime}"


def packages_of(lock: Lock) -> tuple[Package, ...]:
    """Return every package in a lock: those that a caller pinned, and those that other packages need."""
    return tuple(Package(package.name, package.version, package.requested) for package in lock.packages)


class Builds:
    """All builds of a host, by the key of the package set. Bound to one event loop.

    `on_ready` is called with the record of each set as soon as the set is installed. `on_done` is called later, when
    callers have the result.
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
        self._turns = Turns(_AT_ONCE, each=_OF_ONE)
        self._trimming: asyncio.Task[None] | None = None

    @property
    def running(self) -> Iterator[Build]:
        return (build for build, _ in self._running.values())

    @property
    def failed(self) -> Iterator[Build]:
        """Yield the failed builds that the host remembers, at most 100."""
        return iter(self._failed.values())

    def find_running(self, key: str) -> Build | None:
        """Return the running build of a package set, or None."""
        return self._running[key][0] if key in self._running else None

    def find_failed(self, key: str) -> Build | None:
        """Return the last build of a package set if that build failed, else None."""
        return self._failed.get(key)

    def forget_failed(self, key: str) -> bool:
        """Forget the failed build of a package set; return whether there was one."""
        return self._failed.pop(key, None) is not None

    def begin(
        self, key: str, pins: tuple[Pin, ...], language: Language, target: LockTarget, *, workspace: str
    ) -> asyncio.Task[Record]:
        """Return the task that builds a package set; start the task if it is not running.

        Await the task with `asyncio.shield`.

        Workspaces take turns. A build that several workspaces share counts for the `workspace` that requested it first.
        """
        if key in self._running:
            return self._running[key][1]
        build = Build(key, pins, language, target)
        build.tell(BuildEvent(Step.RESOLVING))
        task = asyncio.get_running_loop().create_task(self._run(build, workspace))
        self._running[key] = build, task
        self._failed.pop(key, None)
        # read the exception even if no caller waits for the build, because asyncio would otherwise log it
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def wait(self, key: str) -> None:
        """Wait for the running build of a package set, if there is one.

        Raises:
          HostError: the error with which the build failed.
        """
        if key in self._running:
            await asyncio.shield(self._running[key][1])

    async def close(self) -> None:
        """Stop every build and remove its files."""
        tasks: list[asyncio.Task[Any]] = [task for _, task in self._running.values()]
        tasks += [self._trimming] if self._trimming is not None else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._context.builder.close()

    def _begin_to_trim(self) -> None:
        if self._trimming is None or self._trimming.done():
            self._trimming = asyncio.get_running_loop().create_task(self._trim())

    async def _trim(self) -> None:
        try:
            await asyncio.to_thread(self._context.folder.trim_locks, _LOCKS_BYTES)
            await asyncio.to_thread(self._context.folder.sweep)
            await self._context.folder.trim_downloads(self._context.ceiling_mb << 20)
        except OSError as error:
            _log.warning("downloads, locks and folders of failed builds could not be removed: %s", error)

    async def _run(self, build: Build, workspace: str) -> Record:
        try:
            async with self._turns.turn(workspace):
                with span("build package set", build.span_attributes()) as noted:
                    record = await build.run(self._context)
                    noted["evaluator_host.environment.digest"] = record.digest
            self._on_ready(record)
        except HostError:
            while len(self._failed) >= _FAILED_KEPT:
                del self._failed[next(iter(self._failed))]
            self._failed[build.key] = build
            self._begin_to_trim()
            raise
        finally:
            del self._running[build.key]
        self._begin_to_trim()
        await self._on_done()
        return record
