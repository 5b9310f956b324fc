"""Enforces memory and process limits if no cgroup does: measures sandboxes, and kills sandboxes over a limit.

The watchdog measures 20 times a second, so a guest may exceed its limit for a moment; RLIMIT_DATA stops faster
allocation. The watchdog runs in a separate thread, so that measurements and the host's other work do not wait for each
other.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from evaluator_host.engine.system.supervisor import Supervisor

_PERIOD_S: Final = 0.05
_AT_ONCE: Final = 64  # maximum number of sandboxes to measure in a period: each takes almost a millisecond
# shortest time between two measurements of `used_bytes`, in seconds; a measurement takes longer than a check of limits
_MEASURE_EVERY_S: Final = 1.0
_USED_FOR_S: Final = 5.0  # how long a measurement of `used_bytes` stays valid, in seconds
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_KB: Final = 1024
_INODE_BYTES: Final = 1024  # kernel memory, in bytes, that an empty file on a tmpfs takes
_SOCKET_BYTES: Final = 212_992  # unread bytes that a socket may hold (net.core.wmem_default)
_FREE_SOCKETS: Final = 64  # number of sockets that do not count as memory: an event loop has two, the runner four
_TMPFS: Final = ("tmp", "dev/shm")  # tmpfs mounts of the sandbox, below /proc/<pid>/root


class Over(Enum):
    """A limit that a sandbox exceeds."""

    MEMORY = auto()
    PROCESSES = auto()


@dataclass(slots=True)
class Watch:
    """A sandbox that the watchdog measures, and its limits."""

    init_pid: int  # the first process of its pid namespace, an ancestor of all others
    memory_bytes: int  # limit on memory, including files in /tmp and /dev/shm and buffers of sockets
    processes: int  # limit on the number of processes and threads combined
    kill: Callable[[], None]
    over: Over | None = None  # the limit at which the watchdog killed the sandbox; None if it has not
    name: str = ""  # name that the first process had when the watch began and bubblewrap was still setting up
    _used: tuple[float, int] | None = None  # time and result of the last measurement of `used_bytes`

    def __post_init__(self) -> None:
        self.name = _name(self.init_pid)

    def measure(self) -> Over | None:
        """Measure the sandbox once; return the limit that it exceeds, or None. Blocking."""
        pids = list(process_tree(self.init_pid))
        if len(pids) == 1 and _name(self.init_pid) == self.name:
            return None  # bubblewrap is still setting up, and its root and /tmp may be those of the host
        if sum(map(_threads, pids)) > self.processes:
            return Over.PROCESSES
        if self._memory(pids) > self.memory_bytes:
            return Over.MEMORY
        now = time.monotonic()
        if self._used is None or now - self._used[0] > _MEASURE_EVERY_S:
            self._used = now, self._used_now()
        return None

    def end(self, over: Over) -> None:
        """Kill the sandbox because it exceeds this limit."""
        self.over = over
        self.kill()

    def used_bytes(self) -> int:
        """Return how many bytes of memory were used a moment ago: by processes, files in memory and sockets."""
        if self._used is None or time.monotonic() - self._used[0] > _USED_FOR_S:
            return self._used_now()
        return self._used[1]

    def _used_now(self) -> int:
        return used_bytes(self.init_pid) + _tmpfs_bytes(self.init_pid) + _socket_bytes(self.init_pid)

    def _memory(self, pids: list[int]) -> int:
        held = _tmpfs_bytes(self.init_pid) + _socket_bytes(self.init_pid)
        most = sum(map(_resident_bytes, pids)) + held
        if most <= self.memory_bytes:  # this sum is fast to compute, but counts a shared page once for each process
            return most
        return sum(map(_own_bytes, pids)) + held


class Watchdog:
    """Measures the memory and processes of all sandboxes in one task, and kills sandboxes over a limit.

    Args:
      supervisor: Starts the task again when it fails; None for a new supervisor. The task ends with the last sandbox.
    """

    def __init__(self, supervisor: Supervisor | None = None) -> None:
        self._supervisor = supervisor or Supervisor()
        self._watches: list[Watch] = []
        self._task: asyncio.Task[None] | None = None

    def start_watching(self, watch: Watch) -> None:
        """Start measuring a sandbox."""
        self._watches.append(watch)
        if self._task is None:
            self._task = asyncio.ensure_future(self._supervisor.repeat("the watchdog of sandboxes", self._run))

    def stop_watching(self, watch: Watch) -> None:
        """Stop measuring a sandbox; `Watch.over` keeps its value."""
        with contextlib.suppress(ValueError):
            self._watches.remove(watch)
        if not self._watches and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        thread, loop = ThreadPoolExecutor(1, "watchdog"), asyncio.get_running_loop()
        try:
            while True:
                await asyncio.sleep(_PERIOD_S)
                looked_at, self._watches[:_AT_ONCE] = self._watches[:_AT_ONCE], []
                # move the measured sandboxes to the end of the list, so that the others come next
                self._watches += looked_at
                left = [watch for watch in looked_at if watch.over is None]
                for watch, over in await loop.run_in_executor(thread, _measured, left):
                    if watch in self._watches:  # the sandbox may have ended
                        watch.end(over)
        finally:
            thread.shutdown(wait=False)


def _measured(watches: Iterable[Watch]) -> list[tuple[Watch, Over]]:
    return [(watch, over) for watch in watches if (over := watch.measure()) is not None]


def used_bytes(pid: int) -> int:
    """Return the bytes of anonymous and shared memory of a process and its descendants."""
    return sum(map(_own_bytes, process_tree(pid)))


def process_tree(pid: int) -> Iterator[int]:
    """Yield a process and its descendants; children of a process that is forking now may be missing."""
    pending = [pid]
    seen = set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        yield current
        pending += child_pids(current)


def child_pids(pid: int) -> list[int]:
    """Return the living children of a process."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - many times a second
            found += map(int, read_text(f"/proc/{pid}/task/{task}/children").split())
    return found


def _name(pid: int) -> str:
    return read_text(f"/proc/{pid}/comm")


def _threads(pid: int) -> int:
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208
    return 0


def _resident_bytes(pid: int) -> int:
    fields = read_text(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def _own_bytes(pid: int) -> int:
    """Return the bytes of anonymous and shared memory, each page divided by the number of processes that map it."""
    kilobytes = {}
    for line in read_text(f"/proc/{pid}/smaps_rollup").splitlines():
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
    """Return how many bytes the sockets in a process's network namespace can hold.

    The kernel does not report how many bytes they really hold.
    """
    for line in read_text(f"/proc/{pid}/net/sockstat").splitlines():
        name, _, value = line.partition(": used ")
        if name == "sockets":
            return max(0, int(value) - _FREE_SOCKETS) * _SOCKET_BYTES
    return 0


def read_text(path: str) -> str:
    """Return the content of a file in /proc; an empty string if it cannot be read."""
    try:
        # guests choose the names of their processes, and may choose bytes that are not UTF-8
        with open(path, errors="replace") as file:  # noqa: PTH123 - many times a second
            return file.read()
    except OSError:
        return ""
