"""Writes files completely or not at all, opens files that users named, and locks files between processes.

A file is written beside its final path, synced to disk, then linked or renamed to that path. The kernel releases a lock
when the process that holds it dies.
"""

import asyncio
import fcntl
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from shutil import copymode
from typing import BinaryIO, Final

from evaluator_host.types.errors import InvalidRequest

_POLL_S: Final = 0.05


def write_once(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read; if the file exists already, keep it.

    Raises:
      OSError: the file cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with _draft(file, content) as draft, suppress(FileExistsError):
        os.link(draft, file)


def replace_file(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read; replace it if it exists.

    Raises:
      OSError: the file cannot be written.
    """
    with _draft(file, content) as draft:
        draft.replace(file)


@contextmanager
def _draft(file: Path, content: bytes) -> Iterator[Path]:
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _refusing(action: str, file: Path | str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidRequest(f"cannot {action} {file}: {error.strerror}") from error


reading: Final = partial(_refusing, "read")
"""Context manager that turns errors in reading a user's file into `InvalidRequest`."""

writing: Final = partial(_refusing, "write")
"""Context manager that turns errors in writing a user's file into `InvalidRequest`."""


def open_file(file: Path) -> BinaryIO:
    """Open a file that a user named, for reading.

    Raises:
      InvalidRequest: the file cannot be opened.
    """
    with reading(file):
        return file.open("rb")


@contextmanager
def written_anew(file: Path) -> Iterator[BinaryIO]:
    """Yield a file that a user named, opened to write it again.

    The old content stays until the block ends without an error.

    If the block raises an error, the new text stays beside the file as `<name>.part`. Pipes and devices are written
    directly.

    Raises:
      InvalidRequest: the file cannot be written.
    """
    if file.is_relative_to("/dev") or (file.exists() and not file.is_file()):
        with writing(file):
            opened = file.open("wb")
        with opened:
            yield opened
        return
    place = file.resolve()
    part = place.with_name(f"{place.name}.part")
    with writing(file):
        opened = part.open("wb")
    try:
        with opened:
            yield opened
        with writing(file):
            if place.exists():
                copymode(place, part)
            part.replace(place)
    finally:
        if part.exists() and not part.stat().st_size:
            part.unlink()


def read_utf8(file: Path) -> str:
    """Return the content of a text file that a user named.

    Raises:
      InvalidRequest: the file cannot be read, or is not UTF-8.
    """
    with reading(file):
        content = file.read_bytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{file} is not UTF-8 (byte {error.start}); save it as UTF-8") from error


class FileLock:
    """A lock on a file, held from `acquire` to `release` or to the end of the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self, *, shared: bool = False, wait: bool = False) -> bool:
        """Acquire the lock; return False when another process holds it.

        Args:
          shared: Whether other processes may hold a shared lock at the same time.
          wait: Whether to block until the lock is free; the result is then always True.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        while self._fd is None:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                os.close(fd)
                return False
            except BaseException:
                os.close(fd)
                raise
            if os.fstat(fd).st_nlink:
                self._fd = fd
            else:  # `discard` has removed the file: open a new one
                os.close(fd)
        return True

    def discard(self) -> None:
        """Remove the lock's file, unless a process holds the lock."""
        if self.acquire():
            self._path.unlink(missing_ok=True)
            self.release()

    def release(self) -> None:
        """Release the lock; do nothing if it is not held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


@asynccontextmanager
async def hold_lock(path: Path, *, shared: bool = False) -> AsyncIterator[None]:
    """Wait for a lock without blocking the event loop, and hold it during the block.

    Several holders may have a shared lock.
    """
    lock = FileLock(path)
    while not lock.acquire(shared=shared):  # noqa: ASYNC110 - its holder may be another process, which sends no event
        await asyncio.sleep(_POLL_S)
    try:
        yield
    finally:
        lock.release()
