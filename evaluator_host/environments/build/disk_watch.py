"""Counts the bytes that a build writes while it runs, and ends it before it fills the disk.

Downloads, unpacked files and temporary ones lie in different folders, some shared with other builds. So the bytes that
its processes wrote count (`wchar` of proc(5)); for processes that may write otherwise (mapped files), the files in the
folders that no other build has count too.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from evaluator_host.sandbox.linux.watchdog import process_tree

_LOOK_EVERY_S: Final = 0.25
_FILES: Final = 2_000_000  # a large set has 100,000; each takes an inode, empty or not
_RESERVE_MB: Final = 256  # left to the rest of the machine
_MB: Final = 1024 * 1024


class DiskWatch:
    """Watches the disk use of one command.

    Attributes:
      reached: The limit at which it was ended, as text for the user; None while there is none.

    Args:
      home: A folder on the disk that it writes to.
      limit_mb: How much it may write.
      own: Folders that nobody else writes to.
    """

    def __init__(self, home: Path, *, limit_mb: int, own: Sequence[Path] = ()) -> None:
        self.reached: str | None = None
        self._home = home
        self._limit_mb = limit_mb
        self._own = own
        self._inodes = os.statvfs(home).f_favail

    async def watch(self, pid: int | None, kill: Callable[[], None]) -> None:
        """Check until cancelled, and kill the command at the first limit that it reaches.

        Args:
          pid: The first process; all others are below it.
          kill: Ends them.
        """
        while pid is not None and self.reached is None:
            await asyncio.sleep(_LOOK_EVERY_S)
            self.reached = await asyncio.to_thread(self._look, pid)
        if self.reached is not None:
            kill()

    def _look(self, pid: int) -> str | None:
        disk = os.statvfs(self._home)
        if disk.f_bavail * disk.f_frsize < _RESERVE_MB * _MB:
            return "the disk of this host's data directory is nearly full; the operator must make room"
        if disk.f_files and self._inodes - disk.f_favail > _FILES:
            return f"they have more than {_FILES:,} files"
        if max(written_bytes(pid), sum(map(_occupied_bytes, self._own))) > self._limit_mb * _MB:
            return f"they write more than this host takes for one set ({self._limit_mb} MB)"
        return None


def written_bytes(pid: int) -> int:
    """Return the bytes that a process and its descendants have written; 0 where the kernel keeps no count."""
    total = 0
    for process in process_tree(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = dict(line.split(": ") for line in Path(f"/proc/{process}/io").read_text().splitlines())
            total += int(fields.get("wchar", 0))
    return total


def _occupied_bytes(folder: Path) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512  # noqa: PTH118 - half the time of Path
    return total
