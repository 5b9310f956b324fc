"""Provides the folders that user code may write to, and empties them after each row."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_DIRECTORY = 0o40000
_FORMAT = 0o170000


class Scratch:
    """The directories that a row can write to; `home` is its working directory and its folder for temporary files.

    With `private`, /tmp and /dev/shm belong to this sandbox alone and are emptied. Otherwise only the directory that
    this class makes is emptied, because the runner may be a plain process on a user's machine. `home` has links to
    everything in the directory `data`.
    """

    def __init__(self, *, private: bool, data: str | None = None) -> None:
        if private:
            self.home = "/tmp"  # noqa: S108 - each sandbox has its own /tmp
            self._directories = ["/tmp", "/dev/shm"]  # noqa: S108
        else:
            base = os.environ.get("TMPDIR", "/tmp")  # noqa: S108
            self.home = f"{base}/evaluator-{os.getpid()}-{os.urandom(6).hex()}"
            os.mkdir(self.home, 0o700)
            self._directories = [self.home]
        self._made = not private
        self._seed: dict[str, bytes] = {}
        self._seeded: dict[str, set[str]] = {}
        self._ours = {directory: frozenset(_names(directory)) for directory in self._directories}
        self._empty_sizes = {one: _size_if_empty(one) for one in self._directories if not self._ours[one]}
        self._data = data
        self._links: dict[str, str] = {}  # targets of links, by path below `home`
        if data is not None:
            self.seed({})

    def seed(self, files: dict[str, bytes]) -> None:
        """Write files (by path below `home`) now and after every `wipe`, so that each row finds them unchanged.

        Raises:
          OSError: there is no room for the files.
        """
        self._seed |= files
        links = {} if self._data is None else dict(_links(self._data, self._seed))
        if links != self._links:
            for path in self._links:
                _unlink(f"{self.home}/{path}")
        for path in (*files, *links):
            while path:
                path, _, name = path.rpartition("/")  # noqa: PLW2901 - continue with the parent folder
                self._seeded.setdefault(path, set()).add(name)
        self._write(files)
        if links != self._links:
            self._links = links
            self._link()

    def is_empty(self) -> bool:
        """Return whether the directories contain nothing except the files of `seed`."""
        if any(self._left_in(directory) for directory in self._directories if directory != self.home):
            return False
        if not self._seeded.get("", set()).issuperset(self._left_in(self.home)):
            return False
        folders = (folder for folder in self._seeded if folder)
        return all(self._seeded[folder].issuperset(_names(f"{self.home}/{folder}")) for folder in folders)

    def wipe(self) -> None:
        """Remove all files in the directories except those of `seed`; no process may still be writing."""
        self._empty()
        self._write(self._seed)
        self._link()

    def remove(self) -> None:
        """Remove the directory `home`, if this object created it."""
        self._empty()
        if self._made:
            try:
                os.rmdir(self.home)
            except OSError:
                pass

    def _empty(self) -> None:
        for directory in self._directories:
            if left := self._left_in(directory):
                _remove_all(directory, left)

    def _write(self, files: dict[str, bytes]) -> None:
        for folder in sorted({path[:end] for path in files for end, sign in enumerate(path) if sign == "/"}):
            os.mkdir(f"{self.home}/{folder}", 0o755)
        for path, content in files.items():
            fd = os.open(f"{self.home}/{path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            try:
                os.write(fd, content)
            finally:
                os.close(fd)

    def _link(self) -> None:
        for path, target in self._links.items():
            os.symlink(target, f"{self.home}/{path}")

    def _left_in(self, directory: str) -> list[str]:
        empty = self._empty_sizes.get(directory)
        if empty is not None and os.stat(directory).st_size == empty:
            return []
        return [name for name in _names(directory) if name not in self._ours[directory]]


def _links(data: str, files: Collection[str], below: str = "") -> Iterator[tuple[str, str]]:
    """Yield the paths of links to everything in a directory.

    A folder gets one link, unless `files` has files in this folder.
    """
    for name in os.listdir(data):
        path, inner = f"{below}{name}", f"{data}/{name}"
        if any(file.startswith(f"{path}/") for file in files):
            yield from _links(inner, files, f"{path}/")
        elif path not in files:
            yield path, inner


def _size_if_empty(directory: str) -> int | None:
    """Return the size of an empty directory, or None if a size does not show whether a directory is empty."""
    name = f"{directory}/.{os.urandom(8).hex()}"
    try:
        before = os.stat(directory).st_size
        os.mkdir(name)
        try:
            between = os.stat(directory).st_size
        finally:
            os.rmdir(name)
        after = os.stat(directory).st_size
    except OSError:
        return None
    return before if before == after < between else None


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _remove_all(directory: str, pending: list[str]) -> None:
    """Remove files and folders at any depth; move inner folders to the top first, so that no path is too long."""
    lifted = 0
    token = os.urandom(8).hex()
    while pending:
        path = f"{directory}/{pending.pop()}"
        if not _is_directory(path):
            _unlink(path)
            continue
        os.chmod(path, 0o700)
        for name in _names(path):
            inner = f"{path}/{name}"
            if _is_directory(inner):
                os.chmod(inner, 0o700)  # moving a folder changes its `..` entry, so the folder must be writable
                lifted += 1
                free = f".{token}-{lifted}"
                os.rename(inner, f"{directory}/{free}")
                pending.append(free)
            else:
                _unlink(inner)
        os.rmdir(path)


def _is_directory(path: str) -> bool:
    try:
        return os.lstat(path).st_mode & _FORMAT == _DIRECTORY
    except OSError:
        return False


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
