"""Lowers the priority of processes that do not serve calls, so that calls go first on a busy processor."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_SESSION: Final = Path("/proc/self/autogroup")


def give_way(nice: int) -> None:
    """Raise the nice value of this process, and of its session.

    If Linux groups processes by session (autogroup, sched(7)), the nice value of a process only counts within its
    session. The host is in another session; compared with the host, only the nice value of the whole session counts.

    Args:
      nice: Value to add, 1 to 19: 5 leaves a process a third of the usual processor weight, 10 a ninth.
    """
    # some kernels lack this file, and ordinary users can write to it only ten times a second
    with suppress(OSError):
        _SESSION.write_text(str(nice))
    os.nice(nice)
