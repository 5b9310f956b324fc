"""Lists this process's descriptors together with their files. A number alone is not enough, because another thread may
close a descriptor at any time, and its number is then used for another file.
"""

import contextlib
import os
from pathlib import Path


def descriptors() -> set[tuple[int, int, int]]:
    """Return the number of each descriptor, with the device and inode of its file, pipe or socket."""
    found = set()
    for entry in list(Path("/proc/self/fd").iterdir()):
        # this is the descriptor that lists the folder, or another thread has just closed it
        with contextlib.suppress(OSError):
            status = os.fstat(int(entry.name))
            found.add((int(entry.name), status.st_dev, status.st_ino))
    return found
