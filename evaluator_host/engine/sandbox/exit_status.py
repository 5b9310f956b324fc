"""Converts the way in which a sandbox ended to an error code for the evaluator's author."""

import re
import signal
from dataclasses import dataclass
from typing import Final

from evaluator_host.types.outcome import ErrorCode

# V8 cannot raise an error when its heap is full: it prints one of these texts and aborts the process.
_HEAP_EXHAUSTED: Final = re.compile(
    r"heap out of memory|Allocation failed|Fatal process out of memory|FATAL ERROR: .*\bOOM\b|"
    r"process OOM|std::bad_alloc|MemoryError|cannot allocate memory",
    re.IGNORECASE,
)
_ABORTS: Final = frozenset({signal.SIGABRT, signal.SIGTRAP, signal.SIGILL, signal.SIGSEGV, signal.SIGBUS})
# exit code of a runner that the machine, not the evaluator, kept from working (PROTOCOL.md)
_RUNNER_STARVED: Final = 72
# exit code for SIGABRT (128 + 6), from a shell, or from a runner that passes on its child's exit code
_NODE_ABORTED: Final = 134

_LOST: Final = (ErrorCode.SANDBOX_LOST, "the sandbox was lost through no fault of the evaluator; try again")


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a sandbox ended, as far as its backend knows."""

    exit_code: int | None = None  # exit code of the runner; None when unknown
    signal: int | None = None  # the signal that killed the runner, or None
    oom_killed: bool = False  # whether the kernel (or engine) killed a process at the memory limit
    pids_hit: bool = False  # whether a fork was refused at the process limit
    # whether the sandbox ended because the backend failed (engine gone, host out of memory), not because of the guest
    lost: bool = False
    stderr_tail: str = ""  # last 8 KiB of the runner's own standard error


def classify_exit(exit_status: ExitStatus, *, memory_mb: int) -> tuple[ErrorCode, str]:
    """Return why a sandbox ended: an error code, and a sentence for the author of the evaluator.

    If the kernel kills the sandbox at the memory limit, or V8 aborts on a full heap, the code is `memory_limit`.
    """
    if exit_status.lost:
        return _LOST
    if exit_status.oom_killed or _heap_exhausted(exit_status):
        return (
            ErrorCode.MEMORY_LIMIT,
            (
                f"the evaluator used more than {memory_mb} MB of memory and was stopped; use less, or raise "
                "limits.memory_mb"
            ),
        )
    if exit_status.pids_hit:
        return (
            ErrorCode.PROCESS_LIMIT,
            "the evaluator started too many processes or threads; start fewer, or raise limits.processes",
        )
    if exit_status.exit_code == _RUNNER_STARVED:
        return _LOST
    return ErrorCode.CRASHED, f"the evaluator ended its sandbox ({_manner(exit_status)})"


def _heap_exhausted(exit_status: ExitStatus) -> bool:
    aborted = exit_status.signal in _ABORTS or exit_status.exit_code == _NODE_ABORTED
    return aborted and _HEAP_EXHAUSTED.search(exit_status.stderr_tail) is not None


def _manner(exit_status: ExitStatus) -> str:
    if exit_status.signal is not None:
        return f"killed by {_signal_name(exit_status.signal)}"
    if exit_status.exit_code is not None:
        return f"exit code {exit_status.exit_code}"
    return "it broke the connection to the host"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
