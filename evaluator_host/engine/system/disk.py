"""Keeps a part of the data directory's disk free."""

import os
from pathlib import Path
from typing import Final

from evaluator_host.types.errors import MachineExhausted

_MB: Final = 1 << 20


def lacks_disk(folder: Path, reserve_bytes: int, more_bytes: int = 0) -> MachineExhausted | None:
    """Return an error if storing `more_bytes` would leave too little of a disk free; else None. Blocking.

    Raises:
      MachineExhausted: the operating system does not report how full the disk is.
    """
    if not reserve_bytes:
        return None
    with MachineExhausted.refused("measure its free disk space"):
        disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    if free - more_bytes >= reserve_bytes:
        return None
    return MachineExhausted(
        f"{folder} has {free // _MB} MB of free disk space, but {reserve_bytes // _MB} MB must stay free "
        "(EVALUATOR_HOST_FREE_DISK_MB); the operator must make room"
    )
