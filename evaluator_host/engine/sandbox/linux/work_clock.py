"""Counts the time in which a sandbox could run, so that slow code is not blamed for a busy or frozen machine.

A time limit counts the seconds in which the sandbox computes, sleeps or waits, but not the seconds in which it needed
the processor and did not get it. At short intervals `look_at` reads the state and the processor time of each process of
the sandbox from /proc:

- All processes sleep: the guest itself is waiting for something. The time counts.
- A process can run, or waits for a page or a disk; or the sandbox is frozen, or its first process is stopped, which no
  guest can do. Only the processor time that the sandbox used counts.
- Every process but the first is stopped, by the machine or by the guest. This time does not count, up to ten times the
  limit in all.

An engine on another machine reports the states of its containers once a second. Without such a report, wall-clock time
counts.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, TypeVar

from evaluator_host.engine.sandbox.linux.watchdog import process_tree, read_text

# wall-clock limit as a multiple of the time limit: even a process with 1 % of a processor can use up its time limit
WALL_FACTOR: Final = 100
LEAST_WALL_S: Final = 60.0
STALLED_S: Final = 30.0  # how long, in seconds, a sandbox that is ready to run may get no processor time
STOPPED_FACTOR: Final = 10
_LOOKS: Final = 20  # how many times the sandbox's state is read within the time limit
_SHORTEST_LOOK_S, _LONGEST_LOOK_S = 0.02, 1.0
_FAR_LOOKS: Final = 2
_FIRST_LOOK_S: Final = 0.05  # seconds until the first look; most rows answer sooner
# seconds of processor time that may be carried over to a later look: /proc counts in steps of 10 ms per process
_CARRIED_S: Final = 0.03
_TICKS: Final = os.sysconf("SC_CLK_TCK")
# states of a process that is ready to run, waits for a disk, or is frozen by a version 1 cgroup
_WANTS: Final = frozenset("RD")
_STOPPED: Final = frozenset("Tt")
_GONE: Final = frozenset("ZXx")
_TIMES, _THREADS = slice(11, 15), 17  # fields of proc(5) stat, counted from the state: utime to cstime, num_threads

_T = TypeVar("_T")


class Starved(Exception):
    """The machine gives a sandbox no processor time, or almost none."""


class Doing(Enum):
    """The state of a sandbox at one moment."""

    SLEEPS = "sleeps"
    WANTS = "wants the processor, or is frozen"
    STOPPED = "stopped, perhaps by itself"


@dataclass(frozen=True, slots=True)
class Look:
    """The state of a sandbox, and the seconds of processor time that its processes have used since it started."""

    doing: Doing
    used_s: float


class WorkClock:
    """Counts the seconds in which a sandbox could run during a step, such as a load or a row.

    The step begins when this object is created.

    Args:
      limit_s: Maximum number of these seconds for the step.
      far: Whether the sandbox runs on another machine; its state is then checked less often.
      forgiving: Whether to leave out time in which all processes of the sandbox except the first are stopped.
    """

    def __init__(self, limit_s: float, *, far: bool = False, forgiving: bool = True) -> None:
        self._limit_s = limit_s
        self._far = far
        self._began = self._looked = time.monotonic()
        self._last: Look | None = None
        self._credit_s = 0.0
        self._forgiven_s = STOPPED_FACTOR * limit_s if forgiving else 0.0
        self._stalled_since: float | None = None
        self.worked_s = 0.0  # seconds in which the sandbox could run, up to the last look
        self.next_look_s = self._next_look_s()  # after this many seconds, call `look_at` and `count` again

    def _next_look_s(self) -> float:
        first = self._last is None and not self.worked_s and not self._far
        longest_s, looks = _FIRST_LOOK_S if first else _LONGEST_LOOK_S, _FAR_LOOKS if self._far else _LOOKS
        planned = max(_SHORTEST_LOOK_S, min(longest_s, self._limit_s / looks))
        return max(0.0, min(planned, self._limit_s - self.worked_s))

    @property
    def expired(self) -> bool:
        """Return whether the sandbox has used up `limit_s`."""
        return self.worked_s >= self._limit_s - 1e-6

    @property
    def starved(self) -> bool:
        """Return whether the sandbox gets so little processor time that the step will never reach `limit_s`."""
        stalled = self._stalled_since is not None and self._looked - self._stalled_since >= STALLED_S
        return stalled or self._looked - self._began >= max(LEAST_WALL_S, WALL_FACTOR * self._limit_s)

    def leave_out(self, seconds: float) -> None:
        """Do not count the last `seconds`, because the sandbox was waiting for the host."""
        self._looked += seconds

    def finish(self) -> float:
        """Return the seconds that the finished step took."""
        return self.worked_s + min(time.monotonic() - self._looked, self.next_look_s)

    def count(self, found: Look | None, *, waited_s: float = 0.0) -> None:
        """Count the time in which the sandbox could run since the last look.

        Args:
          found: The state of the sandbox now, from `look_at`; None if it is unknown.
          waited_s: Seconds since the last look in which the sandbox waited for a model's answer. In these seconds, only
            processor time counts.
        """
        # if more time has passed, the host itself slept or was stopped, so the rest does not count
        most_s = 2 * self.next_look_s
        now = time.monotonic()
        self._began += waited_s
        passed, self._looked = now - self._looked, now
        last, self._last = self._last or (Look(Doing.WANTS, 0.0) if self._far else None), found
        used = max(0.0, found.used_s - last.used_s) if found is not None and last is not None else 0.0
        self._credit_s = min(self._credit_s + used, passed + _CARRIED_S)
        worked = min(self._credit_s, passed)
        match found.doing if found is not None else Doing.SLEEPS:
            case Doing.SLEEPS:
                worked = max(worked, min(passed - waited_s, most_s))
                self._stalled_since = None
            case Doing.STOPPED:
                self._forgiven_s -= passed
                if self._forgiven_s < 0:
                    worked = passed
                self._stalled_since = None
            case Doing.WANTS:
                self._stalled_since = None if used else self._stalled_since or now
        self._credit_s = max(0.0, self._credit_s - worked)
        self.worked_s += worked
        self.next_look_s = self._next_look_s()


async def within(limit_s: float, first_pid: Callable[[], int | None], work: Awaitable[_T]) -> _T:
    """Return the result of `work`, which waits for a sandbox; cancel it when the sandbox has used `limit_s` seconds.

    Raises:
      TimeoutError: the sandbox has used up `limit_s` without a result.
      Starved: the machine gives the sandbox too little processor time.
    """
    task = asyncio.ensure_future(work)
    clock = WorkClock(limit_s)
    try:
        while not (await asyncio.wait([task], timeout=clock.next_look_s))[0]:
            # ask for the id each time, because the process may still be starting
            clock.count(look_at(first_pid()))
            if clock.starved:
                raise Starved
            if clock.expired:
                raise TimeoutError
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


def look_at(first_pid: int | None) -> Look | None:
    """Return a sandbox's state and CPU time from /proc, or None if its processes cannot be seen or have ended."""
    if first_pid is None:
        return None
    ticks, first, others = 0, set[str](), set[str]()
    for pid in process_tree(first_pid):
        fields = _stat(f"/proc/{pid}/stat")
        if len(fields) > _THREADS:
            ticks += sum(map(int, fields[_TIMES]))  # clock ticks that the process and its reaped children have used
            states = set(_states(pid)) if int(fields[_THREADS]) > 1 else {fields[0]}
            if pid == first_pid:
                first = states
            else:
                others |= states - _GONE
    if not first - _GONE:
        return None
    found = Doing.WANTS if first & _STOPPED else doing(first & _WANTS | others)
    return Look(Doing.WANTS if found is Doing.SLEEPS and _frozen(first_pid) else found, ticks / _TICKS)


def doing(states: set[str]) -> Doing:
    """Return the state of a sandbox, given the states of its processes: letters of proc(5), such as `R`, `S`, `T`."""
    if states & _WANTS:
        return Doing.WANTS
    return Doing.STOPPED if states & _STOPPED and states <= _STOPPED else Doing.SLEEPS


def _states(pid: int) -> Iterator[str]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - many times a second
    except OSError:
        return
    for thread in threads:
        if fields := _stat(f"/proc/{pid}/task/{thread}/stat"):
            yield fields[0]


def _stat(path: str) -> list[str]:
    """Return the fields of a process's stat file from the state onwards; an empty list if the process is gone."""
    return read_text(path).rpartition(") ")[2].split()


def _frozen(pid: int) -> bool:
    """Return whether a process is in a frozen cgroup of version 2; such processes seem to sleep."""
    mount = _unified_mount()
    for line in read_text(f"/proc/{pid}/cgroup").splitlines() if mount else ():
        if line.startswith("0::"):
            return "frozen 1" in read_text(f"{mount}{line[3:]}/cgroup.events")
    return False


@lru_cache(maxsize=1)
def _unified_mount() -> str:
    for line in read_text("/proc/self/mountinfo").splitlines():
        if " - cgroup2 " in line:
            _, _, _, root, mount, *_ = line.split(" ")
            return mount if root == "/" else ""
    return ""
