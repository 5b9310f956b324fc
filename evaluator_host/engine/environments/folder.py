"""Manages the folder of installed package sets.

Even if a host dies while it installs or removes a package set, no incomplete set remains.

sets/<key>.json          the lock of a set
<digest>/env.json        the record of an installation, written before the folder gets its name
<digest>/contents.json   a digest of each file
<digest>/files/          the files that sandboxes see
build/downloads/         downloads of uv and npm, shared by all builds
build/staging/           installations under way; renamed to <digest> when whole
removed/                 installations that are being removed
locks/                   file locks: one per set being built or in use
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from evaluator_host.engine.environments.contents import differences, digests
from evaluator_host.engine.environments.record import Record
from evaluator_host.engine.packages.lock import Lock
from evaluator_host.engine.system.files import FileLock, hold_lock, replace_file
from evaluator_host.engine.system.tree import remove, walk
from evaluator_host.types.errors import NotFound, refusal_of
from evaluator_host.types.evaluator import Environment

_log = logging.getLogger(__name__)

_PREFIX: Final = "sha256:"
_HEX: Final = 64  # number of hexadecimal digits in a digest
_USED_EVERY_S: Final = 60.0
# keep a set for this many seconds after its last use: a caller may have found the set, but not have a sandbox yet
_RECENT_S: Final = 120.0


class EnvironmentFolder:
    """The folder of one host's environments; several processes may share it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.build_home = root / "build"
        self.downloads = self.build_home / "downloads"
        self.staging = self.build_home / "staging"
        self._sets = root / "sets"
        self._removed = root / "removed"
        self._locks = root / "locks"
        for folder in (self.downloads, self.staging, self._sets, self._removed, self._locks):
            folder.mkdir(parents=True, exist_ok=True)
        # sandboxes without a user namespace run as another user, who must be able to enter this folder
        self.root.chmod(0o711)

    def build_lock(self, key: str) -> Path:
        """Return the path of the file that is locked while this package set is built."""
        return self._locks / f"build-{_hex(key)}"

    def use_lock(self, digest: str) -> FileLock:
        """Return the file lock of an installation.

        Processes that use the installation share the lock; a process that removes the installation holds the lock
        alone.
        """
        return FileLock(self._locks / f"use-{_hex(digest)}")

    def lock_of(self, key: str) -> Lock | None:
        """Return the stored lock (exact packages and hashes) of a package set, or None."""
        try:
            return Lock.from_json((self._sets / f"{_hex(key)}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def keep_lock(self, key: str, lock: Lock) -> None:
        """Store the lock (exact packages and hashes) of a package set."""
        replace_file(self._sets / f"{_hex(key)}.json", lock.to_json().encode())

    def forget_lock(self, key: str) -> None:
        """Delete a package set's stored lock, so that the next build resolves its pins again."""
        (self._sets / f"{_hex(key)}.json").unlink(missing_ok=True)

    def trim_locks(self, most_bytes: int) -> None:
        """Delete unused lock files, and old stored locks of sets that are not installed.

        Of the stored locks, the newest stay, up to `most_bytes` in total.
        """
        installed = {_hex(name) for record in self.records() for name in (record.key, record.digest)}
        for file in self._locks.glob("*-" + "[0-9a-f]" * _HEX):
            if file.name[-_HEX:] not in installed:
                FileLock(file).discard()
        kept_bytes = 0
        removed = (file for file in self._sets.glob("*.json") if file.stem not in installed)
        for file in sorted(removed, key=_mtime, reverse=True):
            with contextlib.suppress(FileNotFoundError):
                kept_bytes += file.stat().st_size
                if kept_bytes > most_bytes:
                    file.unlink()

    def record(self, digest: str) -> Record | None:
        """Return the record of an installation, or None."""
        try:
            return Record.from_json((self._home(digest) / "env.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def found(self, name: str) -> Record | None:
        """Find an installation by its key or digest; return its record, or None."""
        if not is_digest(name):
            return None
        lock = self.lock_of(name)
        return self.record(lock.digest if lock is not None else name)

    def records(self) -> list[Record]:
        """Return the records of all installations, the most recently used first."""
        homes = sorted(self.root.glob("[0-9a-f]*/env.json"), key=lambda file: -_mtime(file.parent))
        found = (self.record(_PREFIX + file.parent.name) for file in homes)
        return [record for record in found if record is not None]

    def environment(self, record: Record) -> Environment:
        """Return the environment for sandboxes that use this installation."""
        return Environment(
            record.digest,
            record.language,
            record.runtime,
            record.packages,
            self._home(record.digest) / "files",
            tuple(record.import_ms.items()),
        )

    def used(self, digest: str) -> None:
        """Record that an installation is used now; the recorded time changes at most once a minute."""
        home = self._home(digest)
        if time.time() - _mtime(home) > _USED_EVERY_S:
            with contextlib.suppress(OSError):
                os.utime(home)

    def new_stage(self, key: str) -> Path:
        """Return an empty folder to install into; remove the folders that earlier builds of this package set left.

        The caller holds the build lock.
        """
        for dead in self.staging.glob(f"{_hex(key)}.*"):
            remove(dead)
        stage = self.staging / f"{_hex(key)}.{uuid.uuid4().hex[:8]}"
        stage.mkdir()
        stage.chmod(0o755)
        return stage

    def put(self, stage: Path, record: Record) -> None:
        """Move a finished installation and its record to the final folder."""
        (stage / "contents.json").write_text(json.dumps(digests(stage / "files")), "utf-8")
        (stage / "env.json").write_text(record.to_json(), "utf-8")
        home = self._home(record.digest)
        self.detach(record.digest)
        stage.rename(home)
        os.utime(home)

    def broken(self, digest: str) -> list[str]:
        """Return the files that differ from their recorded digests, or `env.json` or `contents.json` if one is lost."""
        home = self._home(digest)
        try:
            recorded = json.loads((home / "contents.json").read_text("utf-8"))
        except (OSError, ValueError):
            return ["contents.json"]
        if self.record(digest) is None or not isinstance(recorded, dict):
            return ["env.json"]
        return differences(home / "files", recorded)

    def detach(self, digest: str) -> None:
        """Move an installation to `removed/`.

        Sandboxes that mount it keep the files until `sweep_removed` deletes them.
        """
        home = self._home(digest)
        with contextlib.suppress(FileNotFoundError):
            home.rename(self._removed / f"{_hex(digest)}.{uuid.uuid4().hex[:8]}")

    def key_of(self, digest: str) -> str | None:
        """Search the stored locks for a digest; return the key of the package set, or None."""
        for file in self._sets.glob("*.json"):
            lock = self.lock_of(file.stem)
            if lock is not None and lock.digest == digest:
                return _PREFIX + file.stem
        return None

    def half_written(self) -> list[str]:
        """Return the digests of the installations whose folders have no readable record."""
        names = (folder.name for folder in self.root.iterdir() if folder.is_dir() and len(folder.name) == _HEX)
        return [_PREFIX + name for name in names if self.record(_PREFIX + name) is None]

    def sweep(self) -> int:
        """Remove folders that builds and removals of dead hosts have left; return how many folders were removed."""
        return self.sweep_removed() + self._sweep(self.staging, "build")

    def sweep_removed(self) -> int:
        """Remove detached installations that no process uses any more; return how many were removed."""
        return self._sweep(self._removed, "use")

    def _sweep(self, folder: Path, kind: str) -> int:
        """Remove the folders `<hex>.…` in `folder` that no process has locked; return how many were removed."""
        count = 0
        for dead in list(folder.iterdir()):
            lock = FileLock(self._locks / f"{kind}-{dead.name.partition('.')[0]}")
            try:
                if lock.acquire():
                    count += remove(dead)
            except Exception as error:  # noqa: BLE001 - a host must start, whatever an earlier host left behind
                _log.warning("%r could not be removed: %s", str(dead), refusal_of(error))
            finally:
                lock.release()
        return count

    @asynccontextmanager
    async def using_downloads(self) -> AsyncIterator[None]:
        """Protect the downloads from deletion in the `with` block.

        If a host is deleting them, wait until it has finished.
        """
        async with AsyncExitStack() as held:
            async with hold_lock(self._locks / "downloads-turn"):
                await held.enter_async_context(hold_lock(self._locks / "downloads", shared=True))
            yield

    async def trim_downloads(self, most_bytes: int) -> None:
        """If downloads that belong to no installed package set exceed `most_bytes` in total, delete all downloads.

        Before that, wait until no build uses the downloads.
        """
        if await asyncio.to_thread(self._unshared_bytes) > most_bytes:
            async with hold_lock(self._locks / "downloads-turn"), hold_lock(self._locks / "downloads"):
                await asyncio.to_thread(self.drop_downloads)

    def drop_downloads(self) -> None:
        """Delete the download caches of uv and npm."""
        remove(self.downloads)
        self.downloads.mkdir(parents=True, exist_ok=True)

    def _unshared_bytes(self) -> int:
        found = (
            entry.stat for entry in walk(self.downloads, strict=False) if entry.is_folder or entry.stat.st_nlink == 1
        )
        return sum(about.st_blocks * 512 for about in found)

    def _home(self, digest: str) -> Path:
        return self.root / _hex(digest)


class Usage:
    """The installations that this process uses, each with a file lock that keeps other processes from removing it.

    `in_use` returns the digests of the environments that this process's sandboxes use.
    """

    def __init__(self, folder: EnvironmentFolder, in_use: Callable[[], Collection[str]]) -> None:
        self._folder = folder
        self._in_use = in_use
        self._used_at: dict[str, float] = {}
        self._holding: dict[str, FileLock] = {}

    def hold(self, digest: str) -> bool:
        """Mark an installation as used by this process; return False if another process is removing it."""
        if digest in self._holding:
            return True
        lock = self._folder.use_lock(digest)
        if not lock.acquire(shared=True):
            return False
        self._holding[digest] = lock
        return True

    def touch(self, digest: str) -> None:
        """Record that an installation is used now; the recorded time changes at most once a minute."""
        now = time.monotonic()
        if now - self._used_at.get(digest, -_RECENT_S) > _RECENT_S / 2:
            self._folder.used(digest)
        self._used_at[digest] = now

    def is_used(self, digest: str) -> bool:
        """Return whether a sandbox of this process uses an installation, or a caller used it lately."""
        return time.monotonic() - self._used_at.get(digest, -_RECENT_S) < _RECENT_S or digest in self._in_use()

    def release(self, digest: str) -> bool:
        """Let other processes remove an installation; return False if a sandbox of this process still uses it."""
        if digest in self._in_use():
            return False
        self._let_go(digest)
        return True

    def release_unused(self) -> list[str]:
        """Let other processes remove the installations that this process does not use; return their digests."""
        unused = [digest for digest in self._holding if not self.is_used(digest)]
        for digest in unused:
            self._let_go(digest)
        return unused

    async def remove(self, digest: str) -> bool:
        """Remove an installation; return False if another process uses it.

        Sandboxes of this process keep the files.
        """
        self._let_go(digest)
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
        """Release all installations, so that other processes may remove them."""
        for digest in list(self._holding):
            self._let_go(digest)

    def _let_go(self, digest: str) -> None:
        if (held := self._holding.pop(digest, None)) is not None:
            held.release()


def _hex(name: str) -> str:
    """Return the hexadecimal part of a digest; refuse a string that could lead to a path outside the folder."""
    text = name.removeprefix(_PREFIX)
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise ValueError(f"{name[:80]!r} is not the digest of a package set")
    return text


def engine_owner(data_dir: Path) -> str:
    """Return an id for a data directory, to label its images on a shared Docker engine without revealing its path."""
    return hashlib.sha256(str(data_dir.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def is_digest(name: str) -> bool:
    """Return whether a string is a digest, `sha256:…` with or without the prefix."""
    try:
        _hex(name)
    except ValueError:
        return False
    return True


def digest_of(name: str) -> str | None:
    """Return `sha256:…` for a digest with or without prefix, or None when the string is not a digest."""
    return _PREFIX + name.removeprefix(_PREFIX) if is_digest(name) else None


def not_installed(name: str) -> NotFound:
    """Return the exception for a package set that is not installed here."""
    return NotFound(
        f"no package set {name[:80]} is installed here; `evaluator-host packages list` lists the installed sets"
    )


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
