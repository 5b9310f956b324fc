"""Holds sandboxes to their limits where no cgroup is granted: looks at their processes, and kills what is over.

It looks 20 times a second, so a guest may be over its limit for a moment; RLIMIT_DATA stops what allocates faster.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PERIOD_S: Final = 0.05
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_KB: Final = 1024
_INODE_BYTES: Final = 1024  # what the kernel keeps for an empty file on a tmpfs
_SOCKET_BYTES: Final = 212_992  # net.core.wmem_default: what waits in one until somebody reads it
_FREE_SOCKETS: Final = 64  # an event loop has two, the runner four
_TMPFS: Final = ("tmp", "dev/shm")  # of the sandbox, below /proc/<pid>/root


@dataclass(slots=True)
class Watch:
    """One sandbox under watch.

    Attributes:
      init_pid: The first process of its pid namespace: all others are below it.
      kill: Ends the sandbox.
      over_memory: It was killed at its memory limit.
      over_processes: It was killed at its process limit.
      name: Of the first process when the watch began: bubblewrap's.
    """

    init_pid: int
    memory_bytes: int
    processes: int
    kill: Callable[[], None]
    over_memory: bool = False
    over_processes: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        self.name = _name(self.init_pid)

    def look(self) -> None:
        """Measure once, and kill when over a limit."""
        pids = list(tree(self.init_pid))
        if len(pids) == 1 and _name(self.init_pid) == self.name:
            return  # bubblewrap still sets up: its root, and so its /tmp, may yet be the host's
        if sum(map(_threads, pids)) > self.processes:
            self.over_processes = True
            self.kill()
        elif self._memory(pids) > self.memory_bytes:
            self.over_memory = True
            self.kill()

    def _memory(self, pids: list[int]) -> int:
        held = _tmpfs_bytes(self.init_pid) + _socket_bytes(self.init_pid)
        most = sum(map(_resident_bytes, pids)) + held
        if most <= self.memory_bytes:  # the cheap figure counts pages that several processes share once for each
            return most
        return sum(map(_own_bytes, pids)) + held


class Watchdog:
    """Watches any number of sandboxes with one task, which exists only while there are any."""

    def __init__(self) -> None:
        self._watches: list[Watch] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, watch: Watch) -> None:
        """Start to watch a sandbox."""
        self._watches.append(watch)
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    def remove(self, watch: Watch) -> None:
        """Stop watching; its marks stay."""
        with contextlib.suppress(ValueError):
            self._watches.remove(watch)
        if not self._watches and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_PERIOD_S)
            for watch in list(self._watches):
                if not (watch.over_memory or watch.over_processes):
                    watch.look()


def tree(pid: int) -> Iterator[int]:
    """Yield a process and all below it; one that forks meanwhile may be missed until the next look."""
    pending = [pid]
    seen = set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        yield current
        pending += children(current)


def children(pid: int) -> list[int]:
    """Return the processes that a process started and that still run."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - many times a second
            found += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    return found


def _name(pid: int) -> str:
    return _read(f"/proc/{pid}/comm")


def _threads(pid: int) -> int:
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208
    return 0


def _resident_bytes(pid: int) -> int:
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def _own_bytes(pid: int) -> int:
    """Return anonymous and shared memory, each page divided by the number of processes that have it mapped."""
    kilobytes = {}
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        name, _, value = line.partition(":")
        if name in ("Pss_Anon", "Pss_Shmem"):
            kilobytes[name] = int(value.split()[0])
    return sum(kilobytes.values()) * _KB


def _tmpfs_bytes(pid: int) -> int:
    total = 0
    for name in _TMPFS:
        with contextlib.suppress(OSError):
            stat = os.statvfs(f"/proc/{pid}/root/{name}")
            total += (stat.f_blocks - stat.f_bfree) * stat.f_frsize + (stat.f_files - stat.f_ffree) * _INODE_BYTES
    return total


def _socket_bytes(pid: int) -> int:
    """Return what the sockets of a network namespace may hold, but for a few: the kernel does not say what they do."""
    for line in _read(f"/proc/{pid}/net/sockstat").splitlines():
        name, _, value = line.partition(": used ")
        if name == "sockets":
            return max(0, int(value) - _FREE_SOCKETS) * _SOCKET_BYTES
    return 0


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
