"""Does what `os` does not offer: calls prctl, changes user and group, reads facts about processes in /proc."""

from __future__ import annotations

import os
from _functools import partial  # type: ignore[import-not-found]

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_SIGKILL = 9
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
_READ_ONLY = os.O_RDONLY | os.O_CLOEXEC
_open, _read, _close, _listdir = os.open, os.read, os.close, os.listdir


class Refused(Exception):
    """The runner must not continue, because it still has privileges that it had to give up."""


def _find_prctl() -> Callable[[int, int], Callable[[], int]]:
    """Return a function that calls prctl.

    It imports `_ctypes` (1 ms), because importing `ctypes` takes 10 ms more.
    """
    try:
        import _ctypes

        address = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        call = _ctypes.call_function
    except (ImportError, AttributeError, OSError):
        return lambda _option, _value: _fail
    return lambda option, value: partial(call, address, (option, value, 0, 0, 0))


def _fail() -> int:
    return -1


_prctl = _find_prctl()


def adopt_orphans() -> bool:
    """Make this process the parent of its orphaned descendants, as process 1 is by default; return False on failure."""
    return os.getpid() == 1 or _prctl(_PR_SET_CHILD_SUBREAPER, 1)() == 0


def set_inspectable(*, inspectable: bool) -> None:
    """Set whether other processes of this user may read this process's memory and descriptors."""
    inspectability(inspectable=inspectable)()


def inspectability(*, inspectable: bool) -> Callable[[], int]:
    """Return a function like `set_inspectable` that runs no Python code."""
    return _prctl(_PR_SET_DUMPABLE, int(inspectable))


def die_with_parent() -> None:
    """Make the kernel kill this process when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)()


def drop_to(uid: int, gid: int) -> None:
    """Switch to an ordinary user. The process cannot switch back.

    Raises:
      Refused: the process still has a part of its old identity.
    """
    try:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise Refused(f"the runner cannot become {uid}:{gid}: {error}") from error
    if 0 in os.getresuid() or 0 in os.getresgid() or os.getgroups():
        held = f"the users {os.getresuid()}, the groups {os.getresgid()} and {os.getgroups()}"
        raise Refused(f"the runner still has {held}")
    for line in read_text("/proc/self/status").splitlines():
        name, _, value = line.partition(":")
        if name in {"CapPrm", "CapEff", "CapAmb"} and int(value, 16):
            raise Refused(f"the runner still has capabilities: {name} {value.strip()}")


def read_text(path: str) -> str:
    """Return the content of a small text file."""
    fd = _open(path, _READ_ONLY)
    try:
        chunks = []
        while chunk := _read(fd, 65536):
            chunks.append(chunk)
        return b"".join(chunks).decode("utf-8", "replace")
    finally:
        _close(fd)


def children_of(pid: int) -> list[int]:
    """Return the ids of a process's children, zombies included; an empty list if the process is gone."""
    try:
        return [int(child) for child in read_text(f"/proc/{pid}/task/{pid}/children").split()]
    except FileNotFoundError:
        return _children_by_scan(pid)
    except OSError:
        return []


def _children_by_scan(pid: int) -> list[int]:
    """Find a process's children by scanning /proc, for kernels without the `children` file."""
    found = []
    for name in _listdir("/proc"):
        if not name.isdigit():
            continue
        stat = process_stat(int(name))
        if stat is not None and int(stat[1]) == pid:
            found.append(int(name))
    return found


def process_stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on: `["S", "<parent id>", …]`; None if the process is gone."""
    try:
        return read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except OSError:
        return None


def is_dead(pid: int) -> bool:
    """Return whether a process has ended. A process that was not reaped yet counts as ended."""
    stat = process_stat(pid)
    return stat is None or stat[0] in {"Z", "X"}


def peak_memory_kb(pid: int) -> int | None:
    """Return the peak resident memory of a running process, in kB, or None if the value is not known."""
    try:
        for line in read_text(f"/proc/{pid}/status").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return None


def private_memory_kb(pid: int) -> int:
    """Return the anonymous memory of a process (not backed by a file), in kB, or 0 when the process is gone."""
    try:
        resident, shared = read_text(f"/proc/{pid}/statm").split()[1:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * _PAGE_KB


class ProcessCounter:
    """Reads the id of the process or thread that the kernel created last."""

    def __init__(self) -> None:
        try:
            self._fd = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = -1

    def last(self) -> int:
        """Return the process id that this pid namespace assigned last, or 0 if the kernel does not report it."""
        if self._fd < 0:
            return 0
        try:
            return int(os.pread(self._fd, 128, 0).split()[-1])
        except (OSError, ValueError, IndexError):
            return 0
