"""Reads facts about processes: whether they run, their command lines, processor time and memory.

Functions that return seconds or megabytes raise `psutil.NoSuchProcess` if the process is gone.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil

from evaluator_host.engine.sandbox.linux.watchdog import process_tree

_ENDED = {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}


def is_running(pid: int) -> bool:
    """Whether a process is alive. A process that has ended is not alive, even if its parent has not waited for it.

    The kernel reports that a killed process has ended when its first thread has ended, but files and ports stay open
    until the last thread has ended.
    """
    try:
        process = psutil.Process(pid)
        return process.status() not in _ENDED or process.num_threads() > 1
    except psutil.NoSuchProcess:
        return False


def command_of(pid: int) -> bytes:
    """Return the command line of a process with a NUL after each argument. The result is empty if the process has
    ended.

    If you use an id later, first compare the command lines, because another process may have got the same id.
    """
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def command_line(pid: int) -> str:
    """Return the command line of a process as `ps` shows it. The result is empty if the process has ended."""
    return command_of(pid).replace(b"\0", b" ").decode(errors="replace")


def own_seconds(pid: int) -> float:
    """Return the processor time of a process, without that of its children."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def seconds_below(pid: int) -> Iterator[tuple[int, float]]:
    """Yield a process and all its descendants, each with its processor time.

    The time includes that of ended children for which the process has waited.
    """
    for one in process_tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = psutil.Process(one).cpu_times()
            yield one, times.user + times.system + times.children_user + times.children_system


def resident_mb(pid: int) -> float:
    return psutil.Process(pid).memory_info().rss / (1 << 20)


def peak_mb(pid: int) -> float:
    """Return a process's peak memory since its start, or since `restart_peak`."""
    status = Path(f"/proc/{pid}/status").read_text()  # psutil does not read this field
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def restart_peak(pid: int) -> None:
    """Forget the peak of a process so far, so that `peak_mb` returns the peak from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
