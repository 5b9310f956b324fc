"""The package sets of a host.

Each set is built once for all callers, on its first use. Unused sets can be removed.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from evaluator_host.engine.environments.build.build import Build, BuildContext, Builds
from evaluator_host.engine.environments.folder import Usage, digest_of, is_digest, not_installed
from evaluator_host.engine.environments.queries import PackageQueries
from evaluator_host.engine.environments.record import (
    BuildEvent,
    EnvironmentReport,
    Record,
    Step,
    Verified,
    require_fit,
    set_key,
)
from evaluator_host.engine.environments.registry.transfer import RegistryTransfer
from evaluator_host.engine.packages.lock import Lock, LockTarget, Pin, RawPin
from evaluator_host.engine.system.disk import lacks_disk
from evaluator_host.engine.system.files import hold_lock
from evaluator_host.types.errors import HostError, InUse
from evaluator_host.types.evaluator import Environment, Language

_KNOWN: Final = 4096
_IMAGE = "image: "
_RELEASE_EVERY_S: Final = 30.0
_LOOK_EVERY_S: Final = 0.02
_LOOKS: Final = 250


@dataclass(frozen=True, slots=True)
class InstalledSet:
    """An installed package set: its canonical pins, and the environment for its sandboxes."""

    packages: tuple[str, ...]
    environment: Environment


class Environments:
    """All package sets of one host. Bound to one event loop.

    Attributes:
      queries: Parses pins, and searches the index for suggestions.
      transfer: Pushes installed sets to registries, and pulls sets from registries.

    Args:
      context: Folders, tools and settings for installing sets.
      queries: Parses pins, and searches the index for versions.
      in_use: Returns the digests of environments that sandboxes of this process use.
      on_changed: Called with the digest of an installation after its files were removed or replaced.
      release_elsewhere: Makes the other processes of this host call `release` with the same digest.
    """

    def __init__(
        self,
        context: BuildContext,
        queries: PackageQueries,
        *,
        in_use: Callable[[], Collection[str]],
        on_changed: Callable[[str], None],
        release_elsewhere: Callable[[str], Awaitable[None]],
    ) -> None:
        self.queries = queries
        self._context = context
        self._folder = context.folder
        self._usage = Usage(context.folder, in_use)
        self._on_changed = on_changed
        self._release_elsewhere = release_elsewhere
        self._known: dict[tuple[str, tuple[str, ...]], InstalledSet] = {}
        self._builds = Builds(context, on_ready=self._use, on_done=self.prune)
        self.transfer = RegistryTransfer(
            context, find=self._folder.found, use=self._use, target_of=self.queries.target_of, on_pulled=self.prune
        )

    def lookup(self, packages: tuple[str, ...], language: Language, python: str | None = None) -> InstalledSet | None:
        """Return a package set if this process has used it before, else None; never wait."""
        known = self._known.get((f"{language.runner} {python}", packages))
        if known is not None:
            self._usage.touch(known.environment.digest)
        return known

    def lock_of(self, digest: str) -> str | None:
        """Return an installed package set's lock as JSON, to install the same files later; None if there is no lock."""
        record = self._folder.record(digest)
        lock = self._folder.lock_of(record.key) if record is not None else None
        return None if lock is None or lock.digest != digest else lock.to_json()

    async def require(
        self, packages: tuple[str, ...], language: Language, python: str | None = None, *, workspace: str = ""
    ) -> InstalledSet:
        """Return the package set that an evaluator pins; install it if it is new.

        Workspaces take turns at building. `workspace` is the caller's workspace; it is empty for builds by the host
        itself.

        Raises:
          InvalidPin: a pin is not exact; each hint is the pin that was probably meant.
          PackagesFailed: the set cannot be resolved or installed.
          IndexUnavailable: the index does not answer.
        """
        if (known := self.lookup(packages, language, python)) is not None:
            return known
        pins = await self.queries.parse(packages, language, python, workspace=workspace)
        known = InstalledSet(
            tuple(pin.text for pin in pins), await self.ensure(pins, language, python, workspace=workspace)
        )
        self._remember((f"{language.runner} {python}", packages), known)
        return known

    async def require_locked(self, lock: Lock, *, workspace: str = "") -> InstalledSet:
        """Return the package set that a lock describes; install it if it is new. `workspace` is the caller's workspace.

        Raises:
          PackagesFailed: the set is for another runtime or platform, or cannot be installed.
          IndexUnavailable: the index does not answer.
        """
        packages = tuple(pin.text for pin in lock.pins)
        known = self._known.get((lock.digest, packages))
        if known is not None:
            self._usage.touch(lock.digest)
            return known
        require_fit(lock, await self.queries.target_of(lock))
        known = InstalledSet(packages, await self._ensure_locked(lock, workspace))
        self._remember((lock.digest, packages), known)
        return known

    async def _ensure_locked(self, lock: Lock, workspace: str) -> Environment:
        """Install the packages of a lock without resolving pins; the lock's digest becomes the package set's key."""
        if await asyncio.to_thread(self._folder.record, lock.digest) is None:
            repository = self._context.packages_from
            if repository is not None and await self.transfer.pull_locked(lock, repository):
                return await self._held(lock.digest, lock.pins, lock.language, lock.target, workspace=workspace)
            await asyncio.to_thread(self._folder.keep_lock, lock.digest, lock)
        return await self._held(lock.digest, lock.pins, lock.language, lock.target, workspace=workspace)

    async def ensure(
        self, pins: tuple[Pin, ...], language: Language, python: str | None = None, *, workspace: str = ""
    ) -> Environment:
        """Install a package set unless it is installed, and return its environment; concurrent callers share a build.

        Raises:
          PackagesFailed: the set cannot be resolved or installed.
          IndexUnavailable: the index does not answer.
        """
        target = self.queries.target(language, python)
        return await self._held(set_key(pins, language, target), pins, language, target, workspace=workspace)

    async def _held(
        self, key: str, pins: tuple[Pin, ...], language: Language, target: LockTarget, *, workspace: str
    ) -> Environment:
        """Keep other processes from removing a package set, install it if it is missing, and return its environment."""
        while True:
            record = await self._installed(key)
            if record is None:
                await self._make_room()
                record = await asyncio.shield(self._builds.begin(key, pins, language, target, workspace=workspace))
            if self._use(record) and await asyncio.to_thread(self._folder.record, record.digest) is not None:
                return self._folder.environment(record)

    async def request(
        self, raw: Sequence[RawPin], language: Language, python: str | None = None, *, workspace: str = ""
    ) -> EnvironmentReport:
        """Return a package set's state; start to build the set if it is new. `workspace` is the caller's workspace.

        Raises:
          InvalidPin: a pin is not exact; each hint is the pin that was probably meant.
          InvalidRequest: there is no such Python here.
        """
        python = await self.queries.python_of_set(python, language)
        pins = await self.queries.parse(raw, language, python, workspace=workspace)
        target = self.queries.target(language, python)
        key = set_key(pins, language, target)
        if await self._installed(key) is None:
            await self._make_room()
            _ = self._builds.begin(key, pins, language, target, workspace=workspace)
        return await self.find_report(key)

    async def find_report(self, name: str) -> EnvironmentReport:
        """Find a package set by its key or digest, and return its report.

        Raises:
          NotFound: there is no such set.
        """
        if (running := self._builds.find_running(name)) is not None:
            return await asyncio.to_thread(running.report, self._folder)
        record = await asyncio.to_thread(self._folder.found, name)
        if record is not None:
            return record.report()
        if (failed := self._builds.find_failed(name)) is not None:
            return await asyncio.to_thread(failed.report, self._folder)
        raise not_installed(name)

    async def built(self, name: str) -> EnvironmentReport:
        """Wait for a requested build and return the installed package set.

        Raises:
          HostError: the error with which the build failed.
          NotFound: there is no such set.
        """
        await self._builds.wait(name)
        if (build := self._builds.find_failed(name)) is not None and build.error is not None:
            raise build.error
        return await self.find_report(name)

    async def reports(self) -> list[EnvironmentReport]:
        """Return reports of all package sets: first sets being built, then installed sets, then failed sets."""
        running, failed = list(self._builds.running), list(self._builds.failed)
        return await asyncio.to_thread(self._all_reports, running, failed)

    def _all_reports(self, running: Sequence[Build], failed: Sequence[Build]) -> list[EnvironmentReport]:
        return [
            *(build.report(self._folder) for build in running),
            *(record.report() for record in self._folder.records()),
            *(build.report(self._folder) for build in failed),
        ]

    async def events(self, name: str) -> AsyncGenerator[BuildEvent, None]:
        """Yield the build events of a package set, from the first to the last.

        Raises:
          NotFound: there is no such set.
        """
        if (build := self._builds.find_running(name) or self._builds.find_failed(name)) is not None:
            async for event in build.watch():
                yield event
            return
        report = await self.find_report(name)
        yield BuildEvent(Step.READY, len(report.packages), len(report.packages))

    async def delete(self, name: str) -> None:
        """Remove a package set and its lock; the next build resolves the pins again. Running sandboxes keep the files.

        Raises:
          NotFound: there is no such set.
          InUse: the set is being built, or another process (of this host or of another host) uses it.
        """
        if self._builds.find_running(name) is not None:
            raise InUse("the package set is being built; wait until it is ready")
        if self._builds.forget_failed(name):
            return
        record = await asyncio.to_thread(self._folder.found, name)
        if record is None and not (is_digest(name) and self._folder.lock_of(name)):
            raise not_installed(name)
        if record is not None and not await self._remove(record.digest):
            await self._release_elsewhere(record.digest)
            if not await self._remove(record.digest):
                raise InUse(
                    "another process is using the package set (a running row, or another host); try again later"
                )
        self._folder.forget_lock(record.key if record else name)
        await self._prune_backend()

    async def prune(self, *, ceiling_mb: int | None = None) -> list[Record]:
        """Remove unused package sets, least recently used first, down to the limit; return the removed sets.

        The locks of these sets stay, so that a later build installs the same files. `ceiling_mb` is the limit; if it is
        None, the operator's setting applies.
        """
        ceiling = (self._context.ceiling_mb if ceiling_mb is None else ceiling_mb) << 20
        records = await asyncio.to_thread(self._folder.records)
        total = sum(record.size_bytes for record in records)

        async def fits(freed_bytes: int) -> bool:
            return total - freed_bytes <= ceiling

        return await self._remove_unused(records, fits)

    async def _make_room(self) -> None:
        lacks = partial(lacks_disk, self._folder.root, self._context.free_disk_mb << 20)
        if await asyncio.to_thread(lacks) is None:
            return
        await self._folder.trim_downloads(-1)

        async def fits(_: int) -> bool:
            return await asyncio.to_thread(lacks) is None

        await self._remove_unused(await asyncio.to_thread(self._folder.records), fits)
        if (error := await asyncio.to_thread(lacks)) is not None:
            raise error

    async def _remove_unused(self, records: Sequence[Record], fits: Callable[[int], Awaitable[bool]]) -> list[Record]:
        """Remove unused package sets, least recently used first; return the records of the removed sets.

        Stop as soon as `fits` returns true for the number of freed bytes.
        """
        removed: list[Record] = []
        freed_bytes = 0
        for record in reversed(records):
            if await fits(freed_bytes):
                break
            if not self._usage.is_used(record.digest) and await self._remove(record.digest):
                freed_bytes += record.size_bytes
                removed.append(record)
        await self._prune_backend()
        return removed

    async def verify(self, name: str | None = None) -> list[Verified]:
        """Compare installed files with recorded digests, reinstall sets that differ, and return a result for each set.

        With a `name` (a key or digest), do this only for one set.

        Raises:
          NotFound: there is no set with that key or digest.
        """
        wanted = [record.digest for record in await asyncio.to_thread(self._folder.records)]
        wanted += await asyncio.to_thread(self._folder.half_written)
        if name is not None:
            record = await asyncio.to_thread(self._folder.found, name)
            sought = record.digest if record else digest_of(name)
            if sought not in wanted:
                raise not_installed(name)
            wanted = [sought]
        return [await self._verify(digest) for digest in wanted]

    async def release(self, digest: str) -> None:
        """End this process's idle sandboxes that use a package set.

        Other processes may then remove the set, unless a row in this process uses it.
        """
        self._forget(digest)
        for _ in range(_LOOKS):  # wait for idle sandboxes to end, which takes a few milliseconds
            if self._usage.release(digest):
                return
            await asyncio.sleep(_LOOK_EVERY_S)

    async def run_releases(self) -> None:
        """Until cancelled, repeatedly let other processes remove package sets that this process no longer uses."""
        while True:
            await asyncio.sleep(_RELEASE_EVERY_S)
            for digest in self._usage.release_unused():
                self._forget(digest)

    async def close(self) -> None:
        """Stop every build, remove its files, and release this process's package sets to other processes."""
        await self._builds.close()
        self._usage.close()
        self._known.clear()

    async def _verify(self, digest: str) -> Verified:
        """Compare an installation with its recorded digests, and repair it if files differ; return the result.

        Raises:
          SandboxUnavailable: the copy of the installation in the backend's image cannot be read.
        """
        if broken := await asyncio.to_thread(self._folder.broken, digest):
            return await self._repair(digest, broken)
        record = self._folder.record(digest)
        if record is None:  # the set has been removed
            return Verified(digest, ())
        environment = self._folder.environment(record)
        strange = [_IMAGE + path for path in await self._context.backend.compare(environment)]
        if not strange:
            return Verified(digest, ())
        await self._context.backend.drop_environment(digest)
        self._forget(digest)
        await self._context.backend.prepare(environment)
        return Verified(digest, tuple(strange), mended=True)

    async def _repair(self, digest: str, broken: Sequence[str]) -> Verified:
        """Install a package set again from its lock, and return the result.

        Delete the downloads first, because they may be hard links to the broken files.
        """
        record = self._folder.record(digest)
        key = record.key if record else await asyncio.to_thread(self._folder.key_of, digest)
        lock = self._folder.lock_of(key) if key else None
        await self._folder.trim_downloads(-1)
        if key is None or lock is None or lock.digest != digest:
            await asyncio.to_thread(self._folder.detach, digest)
            self._forget(digest)
            return Verified(
                digest,
                tuple(broken),
                error="the lock file of the set is lost, so the set was removed; its next use installs it again",
            )
        async with hold_lock(self._folder.build_lock(key)):
            await asyncio.to_thread(self._folder.detach, digest)
        self._forget(digest)
        try:
            await self._install(key, lock)
        except HostError as error:
            return Verified(digest, tuple(broken), error=error.detail)
        return Verified(digest, tuple(broken), mended=True)

    async def _installed(self, key: str) -> Record | None:
        return await asyncio.to_thread(self._folder.found, key)

    def _remember(self, name: tuple[str, tuple[str, ...]], known: InstalledSet) -> None:
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known[name] = known

    async def _install(self, key: str, lock: Lock) -> Record:
        return await asyncio.shield(self._builds.begin(key, lock.pins, lock.language, lock.target, workspace=""))

    async def _remove(self, digest: str) -> bool:
        removed = await self._usage.remove(digest)
        if removed:
            self._forget(digest)
        return removed

    def _use(self, record: Record) -> bool:
        held = self._usage.hold(record.digest)
        self._usage.touch(record.digest)
        return held

    async def _prune_backend(self) -> None:
        live = {record.digest for record in await asyncio.to_thread(self._folder.records)}
        await self._context.backend.prune_environments(live)

    def _forget(self, digest: str) -> None:
        self._known = {key: known for key, known in self._known.items() if known.environment.digest != digest}
        self._on_changed(digest)
