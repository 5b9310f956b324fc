"""Compares installations, and the backend's copies of them, with their recorded digests, and repairs both."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from evaluator_host.environments.folder import EnvironmentFolder
from evaluator_host.environments.record import Record, Verified
from evaluator_host.model.errors import HostError
from evaluator_host.packages.lock import Lock
from evaluator_host.sandbox.base import Backend
from evaluator_host.system.files import hold_lock

_IMAGE = "image: "


class Verifier:
    """Compares installations with their recorded digests, and installs again those that differ.

    Args:
      folder: Of the host.
      backend: Its copies of installations are compared too.
      install: Installs a set, by its key, from its lock.
      forget: Called with the digest of an installation that was replaced.
    """

    def __init__(
        self,
        folder: EnvironmentFolder,
        backend: Backend,
        *,
        install: Callable[[str, Lock], Awaitable[Record]],
        forget: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._backend = backend
        self._install = install
        self._forget = forget

    async def verify(self, digest: str) -> Verified:
        """Compare an installation, file by file, and repair it; return the result.

        Raises:
          SandboxUnavailable: the backend's copy cannot be read.
        """
        if broken := await asyncio.to_thread(self._folder.broken, digest):
            return await self._repair(digest, broken)
        record = self._folder.record(digest)
        if record is None:  # removed meanwhile
            return Verified(digest, ())
        environment = self._folder.environment(record)
        strange = [_IMAGE + path for path in await self._backend.compare(environment)]
        if not strange:
            return Verified(digest, ())
        await self._backend.drop_environment(digest)
        self._forget(digest)
        await self._backend.prepare(environment)
        return Verified(digest, tuple(strange), mended=True)

    async def _repair(self, digest: str, broken: Sequence[str]) -> Verified:
        """Install again from the lock. Downloads are removed first: they may be hard links to the same broken files."""
        record = self._folder.record(digest)
        key = record.key if record else await asyncio.to_thread(self._folder.key_of, digest)
        lock = self._folder.lock_of(key) if key else None
        await asyncio.to_thread(self._folder.drop_downloads)
        if key is None or lock is None or lock.digest != digest:
            await asyncio.to_thread(self._folder.detach, digest)
            self._forget(digest)
            return Verified(
                digest, tuple(broken), error="its lock is lost, so the set was removed; the next use installs it"
            )
        async with hold_lock(self._folder.build_lock(key)):
            await asyncio.to_thread(self._folder.detach, digest)
        self._forget(digest)
        try:
            await self._install(key, lock)
        except HostError as error:
            return Verified(digest, tuple(broken), error=error.detail)
        return Verified(digest, tuple(broken), mended=True)
