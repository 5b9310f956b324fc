"""Locks between processes of one host: whoever dies lets go of them, so that no lock outlives its holder."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

_POLL_S: Final = 0.05


class FileLock:
    """A lock on a file, held from `take` to `release` or to the end of the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def take(self, *, shared: bool = False) -> bool:
        """Take it if nobody holds it otherwise; says whether it did."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def release(self) -> None:
        """Let go of it; idempotent."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


@asynccontextmanager
async def held(path: Path) -> AsyncIterator[None]:
    """Wait for a lock and hold it alone."""
    lock = FileLock(path)
    while not lock.take():  # noqa: ASYNC110 - another process lets go of it, and nobody tells
        await asyncio.sleep(_POLL_S)
    try:
        yield
    finally:
        lock.release()
