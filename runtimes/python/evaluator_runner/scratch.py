"""Provides the folders that user code may write to, and empties them after each row."""

from __future__ import annotations

import os

_DIRECTORY = 0o40000
_FORMAT = 0o170000


class Scratch:
    """The directories that a row can write to; `home` is its working directory and its folder for temporary files.

    With `private`, /tmp and /dev/shm belong to the sandbox alone and are emptied. Otherwise only a directory made here
    is emptied, because the runner may be a plain process on a user's machine.
    """

    def __init__(self, *, private: bool) -> None:
        if private:
            self.home = "/tmp"  # noqa: S108 - the sandbox's own
            self._directories = ["/tmp", "/dev/shm"]  # noqa: S108
        else:
            base = os.environ.get("TMPDIR", "/tmp")  # noqa: S108
            self.home = f"{base}/evaluator-{os.getpid()}-{os.urandom(6).hex()}"
            os.mkdir(self.home, 0o700)
            self._directories = [self.home]
        self._made = not private
        self._ours = {directory: frozenset(_names(directory)) for directory in self._directories}

    def is_empty(self) -> bool:
        """Return whether the directories are empty."""
        return not any(self._left_in(directory) for directory in self._directories)

    def wipe(self) -> None:
        """Remove all files in the directories; no process may still be writing."""
        for directory in self._directories:
            if left := self._left_in(directory):
                _remove_all(directory, left)

    def remove(self) -> None:
        """Remove the directory that was made here, if one was."""
        self.wipe()
        if self._made:
            try:
                os.rmdir(self.home)
            except OSError:
                pass

    def _left_in(self, directory: str) -> list[str]:
        return [name for name in _names(directory) if name not in self._ours[directory]]


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _remove_all(directory: str, pending: list[str]) -> None:
    """Remove entries at any depth; move inner folders to the top first, so that no path grows too long."""
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
                os.chmod(inner, 0o700)  # moving a folder changes its `..` entry
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
