"""Walks, measures and removes trees of untrusted files (of guests, packages, builds), and changes their owners.

The functions use descriptors, do not follow links and do not recurse. Guests may nest folders thousands of levels deep,
make them unreadable, give them names that are not text, and change them during a walk. `os.walk`, `shutil.rmtree`,
`Path.rglob` and `tempfile.TemporaryDirectory` fail on such trees; tests/unit/test_tree.py checks that the host does not
use them.
"""

import asyncio
import errno
import logging
import os
import secrets
import stat
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Final

DEPTH: Final = 64  # maximum nesting of folders in a package set

_log = logging.getLogger(__name__)

# maximum number of descriptors that one walk keeps open; from deeper folders, the walk goes back up by `..`
_HELD: Final = 64
_PASSES: Final = 3  # maximum number of walks to remove a tree to which another process still writes
_LINK: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC  # flags for a handle that reads nothing and needs no permission
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# errors for something that was removed or replaced since it was listed
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


@dataclass(slots=True)
class Entry:
    """A file, folder or link below the root of a walk; only valid until the walk yields the next entry."""

    name: str  # bytes that are not UTF-8 become surrogates, as with `os.fsdecode`
    stat: os.stat_result  # facts of the entry itself, not of a link's target
    folder: int  # descriptor of the folder that the entry is in
    above: list[str]  # names of the folders between the root and the entry
    enter: bool  # whether the walk should go into this folder

    @property
    def path(self) -> str:
        """Return the path relative to the root."""
        return "/".join((*self.above, self.name))

    @property
    def depth(self) -> int:
        """Return the number of levels below the root; 1 for an entry directly in the root."""
        return len(self.above) + 1

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.stat.st_mode)

    @property
    def is_file(self) -> bool:
        """Return whether the entry is an ordinary file."""
        return stat.S_ISREG(self.stat.st_mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.stat.st_mode)

    def open(self) -> BufferedReader:
        """Open the file for reading, without blocking if somebody has put a pipe in its place."""
        return os.fdopen(os.open(self.name, _FILE, dir_fd=self.folder), "rb")

    def target(self) -> str:
        """Return the target of the link as it is written in the link, relative or absolute."""
        return os.readlink(self.name, dir_fd=self.folder)

    def chmod(self, mode: int) -> None:
        """Set the mode of the file or folder, unless it has that mode already."""
        if stat.S_IMODE(self.stat.st_mode) != mode:
            handle = os.open(self.name, _LINK, dir_fd=self.folder)
            try:
                _chmod(handle, mode)
            finally:
                os.close(handle)


@dataclass(slots=True)
class _Level:
    """A folder on the way down: descriptor (-1 if closed), name, device and inode, and subfolders still to enter."""

    folder: int
    name: str = ""
    identity: tuple[int, int] = (0, 0)
    left: list[str] | None = None


def walk(root: Path, *, only_folders: bool = False, strict: bool = True) -> Generator[Entry, None, None]:
    """Yield all entries below a folder, each folder before its content; entries that vanish are left out.

    If the loop may raise an error, wrap the walk in `contextlib.closing`; otherwise a stored exception keeps
    descriptors open.

    Args:
      root: A folder, not a link to one.
      only_folders: Whether to leave out files and links.
      strict: Whether to raise an error if a folder cannot be read; otherwise its content is left out.

    Raises:
      OSError: the root is not a folder, a folder cannot be read, or a folder more than 64 levels down was moved
        during the walk.
    """
    try:
        levels = [_Level(os.open(root, _FOLDER))]
    except OSError:
        if strict:
            raise
        return
    above: list[str] = []
    try:
        while levels:
            here = levels[-1]
            if here.left is None:
                here.left = []
                for entry in _entries(here.folder, above, only_folders=only_folders, strict=strict):
                    yield entry
                    if entry.enter:
                        here.left.append(entry.name)
            elif here.left:
                _descend(levels, above, strict=strict)
            else:
                _ascend(levels, above)
    finally:
        for level in levels:
            if level.folder >= 0:
                os.close(level.folder)


def _entries(folder: int, above: list[str], *, only_folders: bool, strict: bool) -> Iterator[Entry]:
    try:
        opened = os.scandir(folder)  # `scandir` opens its own descriptor, in addition to `folder`
    except OSError:
        if strict:
            raise
        return
    with opened as found:
        for one in found:
            is_folder = one.is_dir(follow_symlinks=False)
            if is_folder or not only_folders:
                with suppress(FileNotFoundError):
                    yield Entry(one.name, one.stat(follow_symlinks=False), folder, above, is_folder)


def _descend(levels: list[_Level], above: list[str], *, strict: bool) -> None:
    here = levels[-1]
    assert here.left  # noqa: S101 - its caller looked
    name = here.left.pop()
    try:
        folder = os.open(name, _FOLDER, dir_fd=here.folder)
    except OSError as error:
        if strict and error.errno not in _GONE:
            raise
        return
    levels.append(_Level(folder))
    above.append(name)
    if len(levels) > _HELD:
        here.identity = _identity(here.folder)
        os.close(here.folder)
        here.folder = -1


def _ascend(levels: list[_Level], above: list[str]) -> None:
    below = levels.pop()
    try:
        if above:
            above.pop()
        if levels and levels[-1].folder < 0:
            levels[-1].folder = os.open("..", _FOLDER, dir_fd=below.folder)
            if _identity(levels[-1].folder) != levels[-1].identity:
                raise OSError(errno.ESTALE, "a folder was moved while it was read")
    finally:
        os.close(below.folder)


def _identity(folder: int) -> tuple[int, int]:
    about = os.fstat(folder)
    return about.st_dev, about.st_ino


@contextmanager
def open_folder(root: Path, below: str) -> Iterator[int]:
    """Yield a descriptor of the folder at the path `below` in `root`; no link is followed on the way.

    Raises:
      OSError: there is no such folder, a link is in the path, or the path has `..` in it.
    """
    folder = os.open(root, _FOLDER)
    try:
        for name in filter(None, below.split("/")):
            if name == "..":
                raise NotADirectoryError(errno.ENOTDIR, "the path points outside the folder", below)
            outer, folder = folder, os.open(name, _FOLDER, dir_fd=folder)
            os.close(outer)
        yield folder
    finally:
        os.close(folder)


def size_bytes(root: Path, *, occupied: bool = False) -> int:
    """Return the total size of the files below a folder; if `occupied`, the disk space that all entries take.

    Return 0 if there is no such folder.

    Raises:
      OSError: see `walk`.
    """
    try:
        if occupied:
            return sum(entry.stat.st_blocks * 512 for entry in walk(root))
        return sum(entry.stat.st_size for entry in walk(root) if not entry.is_folder)
    except FileNotFoundError:
        return 0


def take_over(root: Path, uid: int | None) -> None:
    """Give the owners of a tree's folders full access to them, and make `uid` the owner of all entries.

    If `uid` is None, the owners stay.

    Raises:
      OSError: a folder cannot be read, or this process may not change owners.
    """
    with closing(walk(root)) as entries:
        for entry in entries:
            if uid is not None:
                os.chown(entry.name, uid, uid, dir_fd=entry.folder, follow_symlinks=False)
            if entry.is_folder:
                entry.chmod(stat.S_IMODE(entry.stat.st_mode) | stat.S_IRWXU)
    if uid is not None:
        os.chown(root, uid, uid, follow_symlinks=False)


def remove(root: Path) -> bool:
    """Remove a file or a tree, whatever its depth, names and modes. Return whether nothing is left.

    This raises no `OSError`: if an entry cannot be removed, it stays, and this is logged. The tree is walked up to
    three times, in case other processes still write to it.
    """
    problem: OSError | None = None
    for _ in range(_PASSES):
        try:
            folder = _open_up(root)
            try:
                problem = _Removal(folder).run()
            finally:
                os.close(folder)
            root.rmdir()
        except FileNotFoundError:
            return True
        except NotADirectoryError:
            with suppress(OSError):
                root.unlink(missing_ok=True)
        except OSError as error:
            problem = problem or error
        else:
            return True
    _log.warning("%r could not be removed: %s", os.fspath(root), problem)
    return False


class _Removal:
    """Removes all entries below an open folder. Folders more than 64 levels down are first moved up to the top."""

    def __init__(self, root: int) -> None:
        self._levels = [_Level(root)]
        self._token = f".{secrets.token_hex(8)}-"
        self._moved = 0
        self._problem: OSError | None = None

    def run(self) -> OSError | None:
        """Remove all entries that can be removed; return an error if something is left, else None."""
        try:
            while self._levels:
                try:
                    self._step(self._levels[-1])
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self._problem = error
        finally:
            for level in self._levels[1:]:
                os.close(level.folder)
        return self._problem

    def _step(self, here: _Level) -> None:
        if here.left is None:
            here.left = []
            self._remove_files(here.folder, here.left)
        elif not here.left:
            self._levels.pop()
            if self._levels:
                os.close(here.folder)
                os.rmdir(here.name, dir_fd=self._levels[-1].folder)
        elif len(self._levels) < _HELD:
            name = here.left.pop()
            self._levels.append(_Level(_open_up(name, here.folder), name))
        else:
            self._move_up(here.left.pop(), here.folder)

    def _remove_files(self, folder: int, folders: list[str]) -> None:
        with os.scandir(folder) as found:
            for one in found:
                if one.is_dir(follow_symlinks=False):
                    folders.append(one.name)
                    continue
                try:
                    os.unlink(one.name, dir_fd=folder)
                except OSError as error:
                    self._problem = error

    def _move_up(self, name: str, folder: int) -> None:
        os.close(_open_up(name, folder))  # make the folder writable, because otherwise it cannot be moved
        root = self._levels[0]
        self._moved += 1
        new = f"{self._token}{self._moved}"
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=root.folder)
        root.left = root.left or []
        root.left.append(new)


def _open_up(folder: Path | str, parent: int | None = None) -> int:
    """Give the owner of a folder access to it, and return a descriptor of the folder."""
    handle = os.open(folder, _LINK | os.O_DIRECTORY, dir_fd=parent)
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            with suppress(OSError):  # this fails for a folder of another user; root does not need the permission
                _chmod(handle, mode | stat.S_IRWXU)
        return os.open(".", _FOLDER, dir_fd=handle)
    finally:
        os.close(handle)


def _chmod(handle: int, mode: int) -> None:
    os.chmod(f"/proc/self/fd/{handle}", mode)  # noqa: PTH101 - by descriptor, so that no link can take the name's place


@contextmanager
def temporary_folder(parent: Path | None, prefix: str) -> Iterator[Path]:
    """Yield a new folder that only its owner can use; remove it with any content at the end of the `with` block."""
    path = _new_folder(parent, prefix)
    try:
        yield path
    finally:
        remove(path)


@asynccontextmanager
async def work_folder(parent: Path | None, prefix: str) -> AsyncIterator[Path]:
    """Yield a folder as `temporary_folder` does, and remove it without blocking the event loop.

    A missing parent folder is created. When the last folder in it has been removed, the parent folder is removed, too.
    """
    path = _new_folder(parent, prefix)
    try:
        yield path
    finally:
        await asyncio.shield(asyncio.to_thread(remove, path))
        if parent is not None:
            with suppress(OSError):  # the folder is not empty
                os.rmdir(parent)  # noqa: PTH106 - by Path it would count as blocking the event loop


def _new_folder(parent: Path | None, prefix: str) -> Path:
    if parent is not None:
        parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=prefix, dir=parent)).resolve()
