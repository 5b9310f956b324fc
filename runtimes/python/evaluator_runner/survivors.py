"""Ends processes that are still there after their row.

When a row has ended, processes that left its process group are children of the supervisor.
"""

from __future__ import annotations

import os
import time

from evaluator_runner import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_PAUSE_S = 0.0005
# how many times to kill survivors and look for more; a count, not a time limit, because a busy machine takes longer
_TRIES = 10_000
_SIGKILL = 9


def end_survivors(zygote: int, *, keep: Collection[int]) -> bool:
    """Kill the children of this process and of the zygote, except those in `keep`. Reap the children of this process.

    Return False if some of the killed processes still run.
    """
    for _ in range(_TRIES):
        ours = [pid for pid in kernel.children_of(os.getpid()) if pid not in keep]
        strays = (
            [pid for pid in kernel.children_of(zygote) if pid not in keep and not kernel.is_dead(pid)] if zygote else []
        )
        if not ours and not strays:
            return True
        for pid in (*ours, *strays):
            try:
                os.kill(pid, _SIGKILL)
            except OSError:
                pass
        if sum(_reap(pid) for pid in ours) < len(ours) + len(strays):
            time.sleep(_PAUSE_S)
    return False


def _reap(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except OSError:
        return True
