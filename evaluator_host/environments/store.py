"""Package sets installed once and kept: built on first use however many callers wait, evicted when nobody uses them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from evaluator_host.environments.asking import Asking
from evaluator_host.environments.build import Build, Workshop
from evaluator_host.environments.record import (
    BuildEvent,
    EnvironmentReport,
    Record,
    Step,
    Verified,
    set_key,
)
from evaluator_host.environments.shelf import is_digest
from evaluator_host.environments.usage import Usage
from evaluator_host.errors import HostError, InUse, NotFound
from evaluator_host.model import Environment, Language
from evaluator_host.packages.pins import Pin, RawPin

_AT_ONCE: Final = 2  # builds; more would share the same line and the same disk
_FAILED_KEPT: Final = 100
_KNOWN: Final = 4096


@dataclass(frozen=True, slots=True)
class Known:
    """An installed set as evaluators pin it: canonical pins and what to start sandboxes with."""

    packages: tuple[str, ...]
    environment: Environment


class Environments:
    """All package sets of one host. Bound to one event loop.

    Attributes:
      asking: Reads pins, and looks up those that were meant.

    Args:
      shop: What builds need.
      in_use: Digests of environments that sandboxes of this process have.
      on_changed: Told the digest of an installation whose files were removed or replaced.
    """

    def __init__(
        self, shop: Workshop, *, in_use: Callable[[], Collection[str]], on_changed: Callable[[str], None]
    ) -> None:
        self.asking = Asking(shop.index, shop.backend.name)
        self._shop = shop
        self._shelf = shop.shelf
        self._usage = Usage(shop.shelf, in_use)
        self._on_changed = on_changed
        self._known: dict[tuple[str, tuple[str, ...]], Known] = {}
        self._builds: dict[str, tuple[Build, asyncio.Task[Record]]] = {}
        self._failed: dict[str, Build] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def lookup(self, packages: tuple[str, ...], language: Language) -> Known | None:
        """Return a set that this process has used before, whatever way its pins are written; never waits."""
        known = self._known.get((language.runner, packages))
        if known is not None:
            self._usage.touch(known.environment.digest)
        return known

    async def require(self, packages: tuple[str, ...], language: Language) -> Known:
        """Return the set that an evaluator pins, installing it when it is new.

        Raises:
          InvalidPin: a pin is not exact; each hint is the pin that was probably meant.
          PackagesFailed: the set cannot be resolved or installed.
          IndexUnavailable: the index does not answer.
        """
        if (known := self.lookup(packages, language)) is not None:
            return known
        pins = await self.asking.parse(packages, language)
        known = Known(tuple(pin.text for pin in pins), await self.ensure(pins, language))
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known[language.runner, packages] = known
        return known

    async def ensure(self, pins: tuple[Pin, ...], language: Language) -> Environment:
        """Return the installed set; one build serves however many callers.

        Raises:
          PackagesFailed: it cannot be resolved or installed.
          IndexUnavailable: the index does not answer.
        """
        key = set_key(pins, language, self.asking.target(language))
        while True:
            record = await self._installed(key)
            if record is None:
                record = await asyncio.shield(self._building(key, pins, language))
            if self._usage.hold(record.digest) and self._shelf.record(record.digest) is not None:
                self._usage.touch(record.digest)
                return self._shelf.environment(record)

    async def request(self, raw: Sequence[RawPin], language: Language) -> EnvironmentReport:
        """Return a set as it is now, having its build begin when it is new.

        Raises:
          InvalidPin: see `require`.
        """
        pins = await self.asking.parse(raw, language)
        key = set_key(pins, language, self.asking.target(language))
        if await self._installed(key) is None:
            _ = self._building(key, pins, language)
        return await self.get(key)

    async def get(self, name: str) -> EnvironmentReport:
        """Return a set by its key or its digest.

        Raises:
          NotFound: there is none.
        """
        if name in self._builds:
            return self._builds[name][0].report(self._shelf)
        record = await asyncio.to_thread(self._record, name)
        if record is not None:
            return record.report()
        if name in self._failed:
            return self._failed[name].report(self._shelf)
        raise NotFound(f"no package set {name[:80]} is installed here")

    async def built(self, name: str) -> EnvironmentReport:
        """Wait for a build that was requested and return the installed set.

        Raises:
          HostError: why the build failed.
          NotFound: there is no such set.
        """
        if name in self._builds:
            await asyncio.shield(self._builds[name][1])
        elif (build := self._failed.get(name)) is not None and build.error is not None:
            raise build.error
        return await self.get(name)

    async def reports(self) -> list[EnvironmentReport]:
        """Return every set: building, installed (most recently used first), failed."""
        records = await asyncio.to_thread(self._shelf.records)
        building = [build.report(self._shelf) for build, _ in self._builds.values()]
        return [
            *building,
            *(record.report() for record in records),
            *(build.report(self._shelf) for build in self._failed.values()),
        ]

    async def events(self, name: str) -> AsyncGenerator[BuildEvent, None]:
        """Yield what a build does, from its first step to its last.

        Raises:
          NotFound: there is no such set.
        """
        if name in self._builds or name in self._failed:
            build = self._builds[name][0] if name in self._builds else self._failed[name]
            async for event in build.watch():
                yield event
            return
        report = await self.get(name)
        yield BuildEvent(Step.READY, len(report.packages), len(report.packages))

    async def delete(self, name: str) -> None:
        """Remove a set and its lock: the next build resolves it anew. Sandboxes that run keep their files.

        Raises:
          NotFound: there is none.
          InUse: it is being built, or another process of this host uses it.
        """
        if name in self._builds:
            raise InUse("the set is being built; wait until it is ready")
        if self._failed.pop(name, None) is not None:
            return
        record = await asyncio.to_thread(self._record, name)
        if record is None:
            raise NotFound(f"no package set {name[:80]} is installed here")
        if not await self._remove(record.digest):
            raise InUse("another process of this host uses the set; stop it, or try again later")
        self._shelf.forget_lock(record.key)

    async def prune(self, *, ceiling_mb: int | None = None) -> list[Record]:
        """Remove sets that nobody uses, least recently used first, until the rest fits; returns them.

        Their locks stay, so that a later build installs the same files.

        Args:
          ceiling_mb: By default the operator's.
        """
        ceiling = (self._shop.ceiling_mb if ceiling_mb is None else ceiling_mb) << 20
        records = await asyncio.to_thread(self._shelf.records)
        total = sum(record.size_bytes for record in records)
        removed = []
        for record in reversed(records):
            if total <= ceiling:
                break
            if not self._usage.is_used(record.digest) and await self._remove(record.digest):
                total -= record.size_bytes
                removed.append(record)
        return removed

    async def verify(self, name: str | None = None) -> list[Verified]:
        """Compare every installed file with what was installed, and install again what is not as it was.

        Raises:
          NotFound: there is no set of that name.
        """
        if name is not None:
            record = await asyncio.to_thread(self._record, name)
            if record is None and not is_digest(name):
                raise NotFound(f"no package set {name[:80]} is installed here")
            wanted = [record.digest if record else name]
        else:
            wanted = [record.digest for record in await asyncio.to_thread(self._shelf.records)]
            wanted += await asyncio.to_thread(self._shelf.half_written)
        found = []
        for digest in wanted:
            broken = await asyncio.to_thread(self._shelf.broken, digest)
            found.append(await self._mend(digest, broken) if broken else Verified(digest, ()))
        return found

    async def close(self) -> None:
        """Stop every build, with nothing left of it, and let other processes remove what this one used."""
        tasks = [task for _, task in self._builds.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._usage.close()
        self._known.clear()

    async def _installed(self, key: str) -> Record | None:
        return await asyncio.to_thread(self._record, key)

    def _record(self, name: str) -> Record | None:
        """Return the record of a set by its key or digest."""
        if not is_digest(name):
            return None
        lock = self._shelf.lock_of(name)
        return self._shelf.record(lock.digest if lock is not None else name)

    def _building(self, key: str, pins: tuple[Pin, ...], language: Language) -> asyncio.Task[Record]:
        if key in self._builds:
            return self._builds[key][1]
        build = Build(key, pins, language, self.asking.target(language))
        build.tell(BuildEvent(Step.RESOLVING))
        task = asyncio.get_running_loop().create_task(self._run(build))
        self._builds[key] = build, task
        self._failed.pop(key, None)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be waiting for it
        return task

    async def _run(self, build: Build) -> Record:
        try:
            async with self._turns:
                record = await build.run(self._shop)
            self._usage.hold(record.digest)
            self._usage.touch(record.digest)
        except HostError:
            while len(self._failed) >= _FAILED_KEPT:
                del self._failed[next(iter(self._failed))]
            self._failed[build.key] = build
            raise
        finally:
            del self._builds[build.key]
        await self.prune()
        return record

    async def _mend(self, digest: str, broken: Sequence[str]) -> Verified:
        """Install again from the lock. Downloads are dropped: the files there may be the very same ones."""
        record = self._shelf.record(digest)
        key = record.key if record else await asyncio.to_thread(self._shelf.key_of, digest)
        lock = self._shelf.lock_of(key) if key else None
        await asyncio.to_thread(self._shelf.drop_downloads)
        await asyncio.to_thread(self._shelf.detach, digest)
        self._forget(digest)
        if key is None or lock is None:
            return Verified(
                digest, tuple(broken), error="it was removed: its lock is lost, so that the next use installs it"
            )
        try:
            await asyncio.shield(self._building(key, lock.pins, lock.language))
        except HostError as error:
            return Verified(digest, tuple(broken), error=error.detail)
        return Verified(digest, tuple(broken), mended=True)

    async def _remove(self, digest: str) -> bool:
        removed = await self._usage.remove(digest)
        if removed:
            self._forget(digest)
        return removed

    def _forget(self, digest: str) -> None:
        self._known = {key: known for key, known in self._known.items() if known.environment.digest != digest}
        self._on_changed(digest)
