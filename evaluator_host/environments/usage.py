"""Who uses which installation: this process's sandboxes and callers, and other processes by locks on the disk."""

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Final

from evaluator_host.environments.folder import EnvironmentFolder
from evaluator_host.system.file_lock import FileLock

_RECENT_S: Final = 120.0  # a caller may have looked a set up and not have its sandbox yet


class Usage:
    """The installations that this process uses.

    Args:
      folder: Of the host.
      in_use: Digests of environments that sandboxes of this process have.
    """

    def __init__(self, folder: EnvironmentFolder, in_use: Callable[[], Collection[str]]) -> None:
        self._folder = folder
        self._in_use = in_use
        self._used_at: dict[str, float] = {}
        self._holding: dict[str, FileLock] = {}

    def hold(self, digest: str) -> bool:
        """Say to other processes that this one uses an installation; false when one is removing it."""
        if digest in self._holding:
            return True
        lock = self._folder.use_lock(digest)
        if not lock.acquire(shared=True):
            return False
        self._holding[digest] = lock
        return True

    def touch(self, digest: str) -> None:
        """Note that it is used now; cheap."""
        now = time.monotonic()
        if now - self._used_at.get(digest, -_RECENT_S) > _RECENT_S / 2:
            self._folder.used(digest)
        self._used_at[digest] = now

    def is_used(self, digest: str) -> bool:
        """Whether something in this process uses it."""
        return time.monotonic() - self._used_at.get(digest, -_RECENT_S) < _RECENT_S or digest in self._in_use()

    async def remove(self, digest: str) -> bool:
        """Remove an installation unless another process uses it. Files that sandboxes here have stay until a sweep."""
        held = self._holding.pop(digest, None)
        if held is not None:
            held.release()
        alone = self._folder.use_lock(digest)
        if not alone.acquire():
            self.hold(digest)
            return False
        await asyncio.to_thread(self._folder.detach, digest)
        alone.release()
        if digest in self._in_use():
            self.hold(digest)
        await asyncio.to_thread(self._folder.sweep_removed)
        return True

    def close(self) -> None:
        """Let other processes remove what this one used."""
        for lock in self._holding.values():
            lock.release()
        self._holding.clear()
