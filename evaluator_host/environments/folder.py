"""Where installed sets lie on disk, and in what order they come and go, so that a host that dies leaves nothing half.

sets/<key>.json          a set's lock
<digest>/env.json        the record of an installation, written before the folder gets its name
<digest>/contents.json   a digest of each file
<digest>/files/          what sandboxes see
build/downloads/         of uv and npm, shared by all builds
build/staging/           installations under way; renamed to <digest> when whole
removed/                 installations on their way out
locks/                   who builds a set, who uses one
"""

import contextlib
import hashlib
import json
import os
import shutil
import time
import uuid
from pathlib import Path
from typing import Final

from evaluator_host.environments.contents import differences, digests, size_bytes
from evaluator_host.environments.record import Record
from evaluator_host.model.errors import NotFound
from evaluator_host.model.evaluator import Environment
from evaluator_host.packages.lock import Lock
from evaluator_host.system.file_lock import FileLock
from evaluator_host.system.files import replace_file

_PREFIX: Final = "sha256:"
_USED_EVERY_S: Final = 60.0


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
        self.root.chmod(0o711)  # a sandbox without a user namespace reaches its files as another user

    def build_lock(self, key: str) -> Path:
        """Return the lock that whoever builds a set holds."""
        return self._locks / f"build-{_hex(key)}"

    def use_lock(self, digest: str) -> FileLock:
        """Return a lock, to be held shared by whoever uses an installation and alone by whoever removes it."""
        return FileLock(self._locks / f"use-{_hex(digest)}")

    def lock_of(self, key: str) -> Lock | None:
        """Return the stored lock of a set."""
        try:
            return Lock.from_json((self._sets / f"{_hex(key)}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def keep_lock(self, key: str, lock: Lock) -> None:
        """Store the lock of a set."""
        replace_file(self._sets / f"{_hex(key)}.json", lock.to_json().encode())

    def forget_lock(self, key: str) -> None:
        """Let the set be resolved anew next time."""
        (self._sets / f"{_hex(key)}.json").unlink(missing_ok=True)

    def record(self, digest: str) -> Record | None:
        """Return the record of an installation."""
        try:
            return Record.from_json((self._home(digest) / "env.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def found(self, name: str) -> Record | None:
        """Return the record of a set by its key or its digest; None too for what is neither."""
        if not is_digest(name):
            return None
        lock = self.lock_of(name)
        return self.record(lock.digest if lock is not None else name)

    def records(self) -> list[Record]:
        """Return all records, the most recently used first."""
        homes = sorted(self.root.glob("[0-9a-f]*/env.json"), key=lambda file: -_mtime(file.parent))
        found = (self.record(_PREFIX + file.parent.name) for file in homes)
        return [record for record in found if record is not None]

    def environment(self, record: Record) -> Environment:
        """Return what a sandbox is started with."""
        return Environment(
            record.digest,
            record.language,
            record.runtime,
            record.packages,
            self._home(record.digest) / "files",
            tuple(record.import_ms.items()),
        )

    def used(self, digest: str) -> None:
        """Note that an installation is in use, at most once a minute."""
        home = self._home(digest)
        if time.time() - _mtime(home) > _USED_EVERY_S:
            with contextlib.suppress(OSError):
                os.utime(home)

    def new_stage(self, key: str) -> Path:
        """Return an empty folder to install into; those of earlier, dead builds of this set are removed.

        The caller holds the build lock.
        """
        for dead in self.staging.glob(f"{_hex(key)}.*"):
            shutil.rmtree(dead, ignore_errors=True)
        stage = self.staging / f"{_hex(key)}.{uuid.uuid4().hex[:8]}"
        stage.mkdir()
        stage.chmod(0o755)
        return stage

    def put(self, stage: Path, record: Record) -> None:
        """Put a finished installation in its place."""
        (stage / "contents.json").write_text(json.dumps(digests(stage / "files")), "utf-8")
        (stage / "env.json").write_text(record.to_json(), "utf-8")
        home = self._home(record.digest)
        self.detach(record.digest)
        stage.rename(home)
        os.utime(home)

    def broken(self, digest: str) -> list[str]:
        """Return what is not as it was installed; `env.json` when there is no record."""
        home = self._home(digest)
        try:
            recorded = json.loads((home / "contents.json").read_text("utf-8"))
        except (OSError, ValueError):
            return ["contents.json"]
        if self.record(digest) is None or not isinstance(recorded, dict):
            return ["env.json"]
        return differences(home / "files", recorded)

    def detach(self, digest: str) -> None:
        """Take an installation out of its place; a sandbox that has it mounted keeps it until `sweep_removed`."""
        home = self._home(digest)
        with contextlib.suppress(FileNotFoundError):
            home.rename(self._removed / f"{_hex(digest)}.{uuid.uuid4().hex[:8]}")

    def key_of(self, digest: str) -> str | None:
        """Return the set that an installation is of, by the stored locks."""
        for file in self._sets.glob("*.json"):
            lock = self.lock_of(file.stem)
            if lock is not None and lock.digest == digest:
                return _PREFIX + file.stem
        return None

    def half_written(self) -> list[str]:
        """Return digests of folders that have no readable record."""
        names = (folder.name for folder in self.root.iterdir() if folder.is_dir() and len(folder.name) == 64)
        return [_PREFIX + name for name in names if self.record(_PREFIX + name) is None]

    def sweep(self) -> int:
        """Remove what builds and removals of dead hosts left; returns how many."""
        return self.sweep_removed() + self._sweep(self.staging, "build")

    def sweep_removed(self) -> int:
        """Remove the files of detached installations that no process uses; returns how many."""
        return self._sweep(self._removed, "use")

    def _sweep(self, folder: Path, kind: str) -> int:
        """Remove the folders `<hex>.…` whose lock nobody holds."""
        count = 0
        for dead in list(folder.iterdir()):
            lock = FileLock(self._locks / f"{kind}-{dead.name.partition('.')[0]}")
            if lock.acquire():
                shutil.rmtree(dead, ignore_errors=True)
                lock.release()
                count += 1
        return count

    def drop_downloads(self) -> int:
        """Remove everything that uv and npm have downloaded; returns how many bytes that were."""
        size = size_bytes(self.downloads)
        shutil.rmtree(self.downloads, ignore_errors=True)
        self.downloads.mkdir(parents=True, exist_ok=True)
        return size

    def _home(self, digest: str) -> Path:
        return self.root / _hex(digest)


def _hex(name: str) -> str:
    """The part of a digest that names a file; refuses what could lead elsewhere."""
    text = name.removeprefix(_PREFIX)
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise ValueError(f"no digest: {name[:80]!r}")
    return text


def engine_owner(data_dir: Path) -> str:
    """Return the name of a data directory on an engine that hosts share; it does not tell the path."""
    return hashlib.sha256(str(data_dir.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def is_digest(name: str) -> bool:
    """Whether a text is `sha256:…`, the prefix being optional."""
    try:
        _hex(name)
    except ValueError:
        return False
    return True


def digest_of(name: str) -> str | None:
    """Return `sha256:…`, given with or without its prefix; None when it is no digest."""
    return _PREFIX + name.removeprefix(_PREFIX) if is_digest(name) else None


def not_installed(name: str) -> NotFound:
    """Return what is raised for a set that is not installed here."""
    return NotFound(f"no package set {name[:80]} is installed here; `evaluator-host packages list` shows what is")


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
