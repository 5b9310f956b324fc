"""The processes of a bubblewrap sandbox.

They are all killed together with their pid namespace. A cgroup or the watchdog limits them.
"""

import asyncio
import contextlib
import logging
import os
import signal
from pathlib import Path
from typing import Final

from evaluator_host.engine.sandbox.base import Weight
from evaluator_host.engine.sandbox.bubblewrap.descriptors import MEMORY_FILE
from evaluator_host.engine.sandbox.linux.cgroups import GUEST, Cgroup
from evaluator_host.engine.sandbox.linux.child import Child, ForkedChild, readable
from evaluator_host.engine.sandbox.linux.watchdog import Over, Watch, Watchdog, child_pids, process_tree

# number of attempts to remove a cgroup, 10 ms apart; the cgroup stays busy until the kernel frees its last page
_REMOVE_TRIES: Final = 100

_PROC: Final = Path("/proc")
_WRAPPER: Final = "bwrap"
_OURS: Final = f"/memfd:{MEMORY_FILE}"

_log = logging.getLogger(__name__)


class BubblewrapProcesses:
    """All processes of one sandbox.

    When the first process of its pid namespace ends, the kernel kills the others.

    `wrapper` is bubblewrap's outer process, the parent of the first process. For a sandbox forked from a template,
    `wrapper` is the first process itself.
    """

    def __init__(self, wrapper: Child | ForkedChild, *, watchdog: Watchdog) -> None:
        self._wrapper = wrapper
        self._watchdog = watchdog
        self.first_pid: int | None = None
        self._init: int | None = None  # pidfd of the first process
        self._cgroup: Cgroup | None = None
        self._watch: Watch | None = None

    def hold(self, init_pid: int, pidfd: int | None = None) -> None:
        """Store the first process of the namespace for `kill`; `pidfd` is its pidfd, if one is open already.

        Raises:
          OSError: the process has already ended.
        """
        self._init = os.pidfd_open(init_pid) if pidfd is None else pidfd
        self.first_pid = init_pid

    async def limit(self, init_pid: int, cgroup: Cgroup) -> None:
        """Move every process of the sandbox into a cgroup, which `remove` will remove.

        Call this while the runner starts, before any code of the guest runs. The kernel takes 10 to 20 ms for the move
        (an RCU grace period), about as long as an interpreter takes to start. Memory allocated before the move (less
        than 1 MB) still counts as memory of the host.

        Raises:
          OSError: the kernel refuses.
        """
        self._cgroup = cgroup
        await asyncio.to_thread(_move_all, init_pid, cgroup)

    def watch(self, watch: Watch) -> None:
        """Make the watchdog enforce the limits that no cgroup enforces."""
        self._watch = watch
        self._watchdog.start_watching(watch)

    def kill(self) -> None:
        """Send SIGKILL to every process of the sandbox."""
        if self._init is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init, signal.SIGKILL)
        elif self._wrapper.returncode is None:
            # Bubblewrap may be about to start the first process, which would then wait forever: stop it, then look.
            with contextlib.suppress(OSError):
                os.kill(self._wrapper.pid, signal.SIGSTOP)
            for pid in child_pids(self._wrapper.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    async def gone(self) -> None:
        """Wait until no process of the sandbox is left."""
        if self._init is not None:
            await readable(self._init)
        else:  # another program may have killed the wrapper, but not its children
            await asyncio.to_thread(kill_orphans)

    def memory_events(self) -> int:
        """Return how many processes were killed at the memory limit."""
        by_watch = int(self._watch is not None and self._watch.over is Over.MEMORY)
        return by_watch + (self._cgroup.oom_kills() if self._cgroup is not None else 0)

    def used_bytes(self) -> int | None:
        """Return the bytes of memory that the processes use now, or None if the number is unknown."""
        used = self._cgroup.used_bytes() if self._cgroup is not None else None
        return self._watch.used_bytes() if used is None and self._watch is not None else used

    def weigh(self, weight: Weight) -> None:
        """Set the processes' CPU weight; do nothing without a cgroup."""
        if self._cgroup is not None:
            self._cgroup.weigh(GUEST * weight)

    def pids_hit(self, *, killed: bool = False) -> bool:
        """Return whether the process limit made the sandbox end.

        The result is False if SIGKILL ended the sandbox (`killed`), even if the limit prevented some forks.
        """
        if self._watch is not None and self._watch.over is Over.PROCESSES:
            return True
        return not killed and self._cgroup is not None and self._cgroup.forks_refused() > 0

    async def remove(self) -> None:
        """Stop watching the sandbox, close its pidfd, and remove its cgroup."""
        if self._watch is not None:
            self._watchdog.stop_watching(self._watch)
        if self._init is not None:
            os.close(self._init)
            self._init = None
        if self._cgroup is None:
            return
        for _ in range(_REMOVE_TRIES):
            if self._cgroup.remove():
                return
            await asyncio.sleep(0.01)
        _log.error("a cgroup could not be removed: %s", ", ".join(map(str, self._cgroup.folders)))


def _move_all(init_pid: int, cgroup: Cgroup) -> None:
    moved: set[int] = set()  # until all are moved, new processes may start outside the cgroup
    while new := set(process_tree(init_pid)) - moved:
        for pid in new:
            with contextlib.suppress(ProcessLookupError):
                cgroup.add_process(pid)
        moved |= new


def kill_orphans() -> int:
    """Kill sandboxes that wait forever because bubblewrap died before it started the runner; return how many.

    The first process of a sandbox waits until bubblewrap lets it continue; only then does it end together with
    bubblewrap (`--die-with-parent`). If bubblewrap is killed before that, the process waits forever, in no cgroup, and
    no host can find it. Sandboxes of other programs that use bubblewrap are left alone.
    """
    killed = 0
    for process in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):  # the process has ended, or belongs to another user
            if _is_orphan(process):
                os.kill(int(process.name), signal.SIGKILL)
                killed += 1
    return killed


def _is_orphan(process: Path) -> bool:
    if _name(process) != _WRAPPER:
        return False
    facts = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
    # whether the process is the first process of a pid namespace inside this process's pid namespace
    is_first = facts["NSpid"].split()[1:][-1:] == ["1"]
    if not is_first or _name(_PROC / facts["PPid"]) == _WRAPPER:
        return False
    return any(str(link.readlink()).startswith(_OURS) for link in (process / "fd").iterdir())


def _name(process: Path) -> str:
    return (process / "comm").read_text().strip()
