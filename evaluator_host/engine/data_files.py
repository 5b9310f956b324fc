"""Stores the data files of evaluators by digest, separately for each workspace, and makes folders for sandboxes.

A layout is a folder of hard links to data files. Its name is the number of its folders, then a digest of the files'
paths and contents. A sandbox mounts the layout read-only. Layouts that no sandbox has mounted for a while are removed.
"""

import asyncio
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from evaluator_host.engine.sandbox.linux.instance import is_dead, this_instance
from evaluator_host.engine.system.disk import lacks_disk
from evaluator_host.engine.system.files import FileLock
from evaluator_host.engine.system.tree import remove
from evaluator_host.types.errors import InvalidRequest, MachineExhausted, NotFound, OverQuota, Problem, TooLarge
from evaluator_host.types.evaluator import DataFolder
from evaluator_host.types.stored import DataFile

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_FILES, _LAYOUTS, _CONTENT, _PATHS = "files", "layouts", "content", "paths.json"
_PARTIAL: Final = "partial-"
_LOCK: Final = "lock"  # file that is locked while a data file is counted and moved into place
_ABANDONED_S: Final = 3600.0  # age from which an unfinished upload or layout counts as abandoned
_FOLDERS: Final = 50_000  # maximum number of folders in a workspace's layouts; each takes 4 KB on disk
# errors from file systems without hard links
_NO_LINKS: Final = (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
_READ_BYTES: Final = 1 << 20
_CHECKED_BYTES: Final = 4 << 20  # the free disk space is checked each time an upload has sent this many bytes
_FOR_ALL, _FOLDER_FOR_ALL = 0o444, 0o755  # every user may read the files, because each sandbox runs as a different user
# mode of the folders that contain layouts: other users can enter but not list them, and cannot guess a layout's name
_PASSED: Final = 0o711


class DataFiles:
    """The data files of one host.

    Args:
      folder: Folder in which the files are stored.
      most_bytes: Size limit of one file, and also of all files of a workspace in total.
      reserve_bytes: Bytes that must stay free on the disk.
      unused_s: A layout that no evaluator has used for this many seconds is removed. This time must be longer than the
        life of a sandbox.
    """

    def __init__(self, folder: Path, *, most_bytes: int, reserve_bytes: int = 0, unused_s: float = 7200.0) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._reserve_bytes = reserve_bytes
        self._unused_s = unused_s

    async def receive(self, workspace: str, chunks: AsyncIterator[bytes]) -> DataFile:
        """Store a file that arrives in chunks, unless it is already stored; return its digest and size.

        Raises:
          TooLarge: the file is over the size limit.
          OverQuota: the workspace has reached its storage limit.
          MachineExhausted: the disk is full.
        """
        with MachineExhausted.refused("keep the file"):
            held = await asyncio.to_thread(self._make_room, workspace)
            partial = self._files(workspace) / f"{_PARTIAL}{this_instance()}.{secrets.randbits(64)}"
            try:
                with partial.open("xb") as file:
                    digest = await self._write(file, chunks, held)
                return await asyncio.to_thread(self._keep, workspace, partial, digest)
            finally:
                await asyncio.to_thread(partial.unlink, missing_ok=True)

    async def add(self, workspace: str, path: Path) -> DataFile:
        """Store a file of this machine, unless it is already stored.

        Raises:
          HostError: see `receive`.
        """
        digest = await asyncio.to_thread(digest_of, path)
        with suppress(NotFound):
            return self.get_file(workspace, digest)
        with path.open("rb") as file:
            return await self.receive(workspace, _chunks(file))

    def list_files(self, workspace: str) -> list[DataFile]:
        """Return the files of a workspace, the newest first. Blocking."""
        folder = self._files(workspace)
        paths = folder.iterdir() if folder.is_dir() else ()
        found = [_facts(path) for path in paths if not path.name.startswith(_PARTIAL)]
        return sorted(found, key=lambda one: (one.created_at, one.digest), reverse=True)

    def get_file(self, workspace: str, digest: str) -> DataFile:
        """Return a file of a workspace. Blocking.

        Raises:
          NotFound: the workspace has no such file.
        """
        try:
            return _facts(self._path(workspace, digest))
        except (ValueError, FileNotFoundError):
            listed = "`evaluator-host data list` shows the data files of the workspace"
            raise NotFound(f"there is no data file {digest[:80]}; {listed}") from None

    def delete_file(self, workspace: str, digest: str) -> None:
        """Remove a file, and every layout that contains it. Blocking.

        Raises:
          NotFound: the workspace has no such file.
        """
        self.get_file(workspace, digest)
        self._path(workspace, digest).unlink(missing_ok=True)
        layouts = self._home(workspace) / _LAYOUTS
        for layout in layouts.iterdir() if layouts.is_dir() else ():
            with suppress(OSError, ValueError):
                if digest in json.loads((layout / _PATHS).read_bytes()).values():
                    remove(layout)

    def lay_out(self, workspace: str, data: Mapping[str, str]) -> DataFolder:
        """Return a folder with the files in `data`, which maps checked paths to digests. Blocking.

        Raises:
          InvalidRequest: the workspace has no file with one of the digests.
          OverQuota: the layouts of the workspace have too many folders, or a file is in too many of them.
          MachineExhausted: the disk is full.
        """
        paths = json.dumps(data, sort_keys=True).encode()
        digest = hashlib.sha256(paths).hexdigest()
        folders = len({path[:end] for path in data for end, sign in enumerate(path) if sign == "/"}) + 2
        home = self._home(workspace)
        layout = home / _LAYOUTS / f"{folders}-{digest}"
        found = DataFolder(f"sha256:{digest}", layout / _CONTENT, home.name)
        with suppress(FileNotFoundError):
            note_use(found)
            return found
        with MachineExhausted.refused("create the folder of the data files"):
            self._make_room(workspace)
            stage = layout.parent / f"{_PARTIAL}{folders}-{secrets.token_hex(8)}"
            try:
                # from now on, other processes count these folders, because the name of `stage` contains their number
                stage.mkdir()
                _require_folders(layout.parent, folders)
                self._link(workspace, data, stage / _CONTENT)
                (stage / _PATHS).write_bytes(paths)
                stage.rename(layout)
            except OSError:
                if not found.path.is_dir():  # another process may have created the same layout
                    raise
            finally:
                if stage.exists():
                    remove(stage)
        return found

    def _link(self, workspace: str, data: Mapping[str, str], content: Path) -> None:
        content.mkdir(parents=True)
        folders, problems = {content}, []
        for path, digest in data.items():
            target = content / path
            target.parent.mkdir(parents=True, exist_ok=True)
            folders.update(one for one in target.parents if one.is_relative_to(content))
            try:
                _link_or_copy(self._path(workspace, digest), target)
            except (ValueError, FileNotFoundError):
                problem = f"your workspace has no data file {digest[:80]} on this host"
                hint = "upload the file with POST /v1/data (or --file), and give the digest that it returns"
                problems.append(Problem(f"evaluator.data.{path}", problem, hint))
        for folder in folders:
            folder.chmod(_FOLDER_FOR_ALL)  # `mkdir` obeys the umask, which may forbid other users to read
        if problems:
            raise InvalidRequest("data files of the evaluator are missing", problems=tuple(problems))

    async def _write(self, file: BinaryIO, chunks: AsyncIterator[bytes], held: int) -> str:
        digest, size, checked, most = hashlib.sha256(), 0, 0, self._most_bytes
        async for chunk in chunks:
            size += len(chunk)
            if size - checked > _CHECKED_BYTES:
                checked = size
                await asyncio.to_thread(self._require_disk)
            if size > most:
                raise TooLarge(
                    f"the data file is over {most >> 20} MB; ask the operator to raise EVALUATOR_HOST_DATA_MB"
                )
            self._require_room(held, size)
            digest.update(chunk)
            await asyncio.to_thread(file.write, chunk)
        await asyncio.to_thread(_settle, file)
        return f"sha256:{digest.hexdigest()}"

    def _make_room(self, workspace: str) -> int:
        """Create a workspace's folder, and remove unfinished files and unused layouts from it.

        Return how many bytes its files take.

        Raises:
          MachineExhausted: the disk has too little room.
        """
        folder, home = self._files(workspace), self._home(workspace)
        self._folder.mkdir(parents=True, exist_ok=True, mode=_PASSED)
        home.mkdir(exist_ok=True, mode=_PASSED)
        folder.mkdir(exist_ok=True, mode=0o700)
        (home / _LAYOUTS).mkdir(exist_ok=True, mode=_PASSED)
        size = 0
        for path in (*folder.iterdir(), *(home / _LAYOUTS).iterdir()):
            with suppress(FileNotFoundError):
                partial = path.name.startswith(_PARTIAL)
                unused_s = _ABANDONED_S if partial else self._unused_s
                old = time.time() - path.stat().st_mtime > unused_s
                if is_dead(path.name.removeprefix(_PARTIAL)) or (old and (partial or path.parent != folder)):
                    remove(path.rename(path.with_name(f"{_PARTIAL}-{secrets.token_hex(8)}")))
                elif path.parent == folder:
                    size += path.stat().st_size
        self._require_disk()
        return size

    def _require_disk(self) -> None:
        if (error := lacks_disk(self._folder, self._reserve_bytes)) is not None:
            raise error

    def _keep(self, workspace: str, partial: Path, digest: str) -> DataFile:
        path = self._path(workspace, digest)
        lock = FileLock(self._home(workspace) / _LOCK)
        lock.acquire(wait=True)
        try:
            if not path.exists():  # another upload of the same file may have finished first
                self._require_room(sum(one.size_bytes for one in self.list_files(workspace)), partial.stat().st_size)
                partial.chmod(_FOR_ALL)
                partial.rename(path)
        finally:
            lock.release()
        return _facts(path)

    def _require_room(self, held: int, size: int) -> None:
        most = self._most_bytes
        if held + size > most:
            raise OverQuota(
                f"the data files of the workspace take {held >> 20} MB of at most {most >> 20} MB; remove some "
                "(`evaluator-host data list`), or ask the operator for a higher EVALUATOR_HOST_DATA_MB"
            )

    def _home(self, workspace: str) -> Path:
        return self._folder / hashlib.sha256(workspace.encode()).hexdigest()[:32]

    def _files(self, workspace: str) -> Path:
        return self._home(workspace) / _FILES

    def _path(self, workspace: str, digest: str) -> Path:
        if _DIGEST.fullmatch(digest) is None:
            raise ValueError(digest)
        return self._files(workspace) / digest.removeprefix("sha256:")


def note_use(folder: DataFolder) -> None:
    """Record that a layout is used now. Blocking.

    Raises:
      FileNotFoundError: there is no such layout.
    """
    os.utime(folder.path.parent)


def digest_of(path: Path) -> str:
    """Return `sha256:…` of a file's content."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _facts(path: Path) -> DataFile:
    found = path.stat()
    return DataFile(f"sha256:{path.name}", found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))


def _require_folders(layouts: Path, own: int) -> None:
    names = [path.name.removeprefix(_PARTIAL).partition("-")[0] for path in layouts.iterdir()]
    others = sum(int(name) for name in names if name.isdecimal()) - own
    if others + own > _FOLDERS:
        raise OverQuota(
            f"this evaluator's data files need {own} folders, and those of the workspace's other evaluators take "
            f"{others} of at most {_FOLDERS}; put this evaluator's files into fewer folders, or try again once other "
            "evaluators have not run for a few hours"
        )


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno == errno.EMLINK:
            raise OverQuota(
                "the evaluators of this workspace use the same data file under too many paths; use fewer paths, or try "
                "again once other evaluators have not run for a few hours"
            ) from error
        if error.errno not in _NO_LINKS:
            raise
        shutil.copyfile(source, target)
        target.chmod(_FOR_ALL)


def _settle(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(file.read, _READ_BYTES):
        yield chunk
