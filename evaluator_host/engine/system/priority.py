"""Lowers the priority of processes that work beside calls, so that calls go first on a busy processor."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_SESSION: Final = Path("/proc/self/autogroup")


def give_way(nice: int) -> None:
    """Raise the nice value of this process, and of its session.

    Where Linux groups processes by session (autogroup, sched(7)), the nice value of a process counts only within its
    session; that of the session counts against the host, which is in another one.

    Args:
      nice: Value to add, 1 to 19: with 5 a process gets a third of the usual processor weight, with 10 a ninth.
    """
    with suppress(OSError):  # the kernel may lack it; ordinary users may set it ten times a second
        _SESSION.write_text(str(nice))
    os.nice(nice)
