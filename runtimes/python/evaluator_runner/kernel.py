"""Owns what the runner asks of the kernel that `os` does not offer: prctl, identity, process bookkeeping in /proc."""

from __future__ import annotations

import os

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
    """The runner must not go on: it holds rights that it was told to give up."""


def _find_prctl() -> Callable[[int, int], int]:
    """Return prctl. `_ctypes` alone costs 1 ms; the `ctypes` package on top of it would cost 10."""
    try:
        import _ctypes

        address = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        call = _ctypes.call_function
    except (ImportError, AttributeError, OSError):
        return lambda _option, _value: -1
    return lambda option, value: call(address, (option, value, 0, 0, 0))


_prctl = _find_prctl()


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent dies; process 1 is that already."""
    return os.getpid() == 1 or _prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0


def set_inspectable(*, inspectable: bool) -> None:
    """Let processes of the same user read this one's memory and descriptors, or not."""
    _prctl(_PR_SET_DUMPABLE, int(inspectable))


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def drop_to(uid: int, gid: int) -> None:
    """Become an ordinary user for good.

    Raises:
      Refused: something of the old identity is left.
    """
    try:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise Refused(f"cannot become {uid}:{gid}: {error}") from error
    if 0 in os.getresuid() or 0 in os.getresgid() or os.getgroups():
        raise Refused(f"still has identity {os.getresuid()}, {os.getresgid()}, groups {os.getgroups()}")
    for line in read_text("/proc/self/status").splitlines():
        name, _, value = line.partition(":")
        if name in {"CapPrm", "CapEff", "CapAmb"} and int(value, 16):
            raise Refused(f"still has capabilities: {name} {value.strip()}")


def read_text(path: str) -> str:
    """Return a small file's text."""
    fd = _open(path, _READ_ONLY)
    try:
        chunks = []
        while chunk := _read(fd, 65536):
            chunks.append(chunk)
        return b"".join(chunks).decode("utf-8", "replace")
    finally:
        _close(fd)


def children_of(pid: int) -> list[int]:
    """Return the children of a process, zombies included; none when it is gone."""
    try:
        return [int(child) for child in read_text(f"/proc/{pid}/task/{pid}/children").split()]
    except FileNotFoundError:
        return _children_by_scan(pid)
    except OSError:
        return []


def _children_by_scan(pid: int) -> list[int]:
    """The same for kernels that were built without the children file."""
    found = []
    for name in _listdir("/proc"):
        if not name.isdigit():
            continue
        stat = process_stat(int(name))
        if stat is not None and int(stat[1]) == pid:
            found.append(int(name))
    return found


def process_stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on: `["S", "<parent>", …]`; None when it is gone."""
    try:
        return read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except OSError:
        return None


def is_dead(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    stat = process_stat(pid)
    return stat is None or stat[0] in {"Z", "X"}


def peak_memory_kb(pid: int) -> int | None:
    """Return the greatest resident size that a running process had."""
    try:
        for line in read_text(f"/proc/{pid}/status").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return None


def private_memory_kb(pid: int) -> int:
    """Return the memory of a process that no file backs, 0 when it is gone."""
    try:
        resident, shared = read_text(f"/proc/{pid}/statm").split()[1:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * _PAGE_KB


class ProcessCounter:
    """Tells which process or thread the kernel made last, in one read."""

    def __init__(self) -> None:
        try:
            self._fd = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = -1

    def last(self) -> int:
        """Return the id that was given out last in this pid namespace, 0 when the kernel does not say."""
        if self._fd < 0:
            return 0
        try:
            return int(os.pread(self._fd, 128, 0).split()[-1])
        except (OSError, ValueError, IndexError):
            return 0
