"""Says what the death of a sandbox means to the author of its evaluator. Pure: an autopsy in, an error code out."""

import re
import signal
from typing import Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.sandbox.base import Autopsy

# V8 cannot raise when its heap is full: it prints one of these and aborts the process.
_HEAP_EXHAUSTED: Final = re.compile(
    r"heap out of memory|Allocation failed|Fatal process out of memory|FATAL ERROR: .*\bOOM\b|"
    r"process OOM|std::bad_alloc|MemoryError|cannot allocate memory",
    re.IGNORECASE,
)
_ABORTS: Final = frozenset({signal.SIGABRT, signal.SIGTRAP, signal.SIGILL, signal.SIGSEGV, signal.SIGBUS})
_NODE_ABORTED: Final = 134  # what a shell, or a runner that passes on its child's end, makes of SIGABRT


def classify(autopsy: Autopsy, *, memory_mb: int) -> tuple[ErrorCode, str]:
    """Return why a sandbox ended, as an error code and a sentence for the author of the evaluator.

    Whoever noticed first, a limit is named by what was hit: the kernel's kill and V8's own abort are `memory_limit`.

    Args:
      autopsy: How it ended, as its backend tells.
      memory_mb: Its memory limit, for the message.
    """
    if autopsy.lost:
        return ErrorCode.SANDBOX_LOST, "the sandbox was lost, not through the evaluator; try again"
    if autopsy.oom_killed or _heap_exhausted(autopsy):
        return (
            ErrorCode.MEMORY_LIMIT,
            f"the evaluator used more than {memory_mb} MB of memory and was ended; use less or raise limits.memory_mb",
        )
    if autopsy.pids_hit:
        return (
            ErrorCode.PROCESS_LIMIT,
            "the evaluator started too many processes or threads; start fewer or raise limits.processes",
        )
    return ErrorCode.CRASHED, f"the evaluator ended its sandbox ({_manner(autopsy)})"


def _heap_exhausted(autopsy: Autopsy) -> bool:
    aborted = autopsy.signal in _ABORTS or autopsy.exit_code == _NODE_ABORTED
    return aborted and _HEAP_EXHAUSTED.search(autopsy.stderr_tail) is not None


def _manner(autopsy: Autopsy) -> str:
    if autopsy.signal is not None:
        return f"killed by {_signal_name(autopsy.signal)}"
    if autopsy.exit_code is not None:
        return f"its runner exited with code {autopsy.exit_code}"
    return "it broke the channel to the host"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
