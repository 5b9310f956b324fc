"""Descriptors of this process, by what they are open on: others may close theirs at any time, and reuse the numbers."""

import contextlib
import os
from pathlib import Path


def descriptors() -> set[tuple[int, int, int]]:
    """Each descriptor's number with device and inode of its file, pipe or socket."""
    found = set()
    for entry in list(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):  # the listing's own, or closed meanwhile by another thread
            status = os.fstat(int(entry.name))
            found.add((int(entry.name), status.st_dev, status.st_ino))
    return found
