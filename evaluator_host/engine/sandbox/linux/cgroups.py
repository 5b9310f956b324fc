"""Gives each sandbox a cgroup, in which the kernel limits memory, processes and CPU; cgroup version 1 or 2.

Sandboxes' groups are below the host's own group (`…/evaluator-host.<random>/<sandbox>`), so that a limit on the host
also limits its sandboxes. Each host has its own folder, and so its own CPU weight: in a common folder, busy hosts would
share one weight. `cgroup_discovery` finds the place. If a machine does not permit cgroups, the watchdog enforces the
limits instead.

Names are random, because a guest can read the path of its cgroup in `/proc/self/cgroup`. An empty group in the host's
folder has the name of the host's process, for `sweep`.
"""

import contextlib
import hashlib
import logging
import os
import re
import secrets
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_host.engine.sandbox.linux.instance import is_dead, is_instance
from evaluator_host.engine.system.tree import walk

PREFIX: Final = "evaluator-host."  # the name of a host's folder begins with this
MEMORY, PIDS, CPU = "memory", "pids", "cpu"
# processors that a sandbox may use: a row is one thread of user code, and the runner sleeps while a row runs
_CPUS: Final = 1.0
_PERIOD_US: Final = 100_000
_PROCESS: Final = {1: 1024, 2: 100}  # the kernel's number for a weight of 1.0, by cgroup version
_LEAST: Final = {1: 2, 2: 1}
_GREATEST: Final = {1: 262_144, 2: 10_000}
# CPU weight of all sandboxes of a host for each processor; an ordinary process has 1
_PER_PROCESSOR: Final = 0.5
GUEST: Final = 1.0  # weight of a sandbox, relative only to the other sandboxes of its host
_NICER: Final = 0.8  # the weight is multiplied by this for each step of the host's nice value, as in the kernel
_MB: Final = 1024 * 1024
_HOME: Final = re.compile(re.escape(PREFIX) + "[0-9a-f]{12}")
# a folder that does not have the name of its host after this many seconds counts as abandoned
_NAMELESS_S: Final = 60.0
_KEY: Final = secrets.token_bytes(16)  # key for the digests in the names of folders

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The folders in which this host creates cgroups."""

    version: int  # version of the kernel's interface, 1 or 2
    homes: Mapping[str, Path]  # folder for each controller; with version 2, all controllers have the same folder
    # name of an empty group in each folder, by which another host recognises the owner of the folder
    instance: str = ""

    @property
    def controllers(self) -> tuple[str, ...]:
        """Return the controllers that can be used: some of `memory`, `pids` and `cpu`."""
        return tuple(self.homes)

    def create(self, name: str, *, memory_mb: int, processes: int, cpus: float | None = _CPUS) -> "Cgroup":
        """Create a cgroup with these limits; this takes less than a millisecond.

        Args:
          name: Name of its folder.
          memory_mb: Memory limit in MB, swap included.
          processes: Maximum number of processes and threads together.
          cpus: Maximum number of processors; None for all.

        Raises:
          OSError: the kernel refuses; then no folder is left.
        """
        group = Cgroup(self.version, {controller: home / name for controller, home in self.homes.items()})
        try:
            for folder in group.folders:
                folder.mkdir()
            group.limit(memory_mb=memory_mb, processes=processes, cpus=cpus)
        except OSError:
            group.remove()
            raise
        return group

    def weigh(self, weight: float | None = None) -> "Cgroups":
        """Set the CPU weight that all sandboxes of this host have together; return self.

        1 is the weight of an ordinary process; None means `host_weight()`.
        """
        if CPU in self.homes:
            _write_weight(self.version, self.homes[CPU], host_weight() if weight is None else weight)
        return self

    def close(self) -> None:
        """Remove this host's cgroup folders. Destroy all sandboxes first.

        A folder that still has a sandbox keeps the name of this process, so that `sweep` finds the folder later.
        """
        for home in dict.fromkeys(self.homes.values()):
            with contextlib.suppress(OSError):
                if [folder.name for folder in _subfolders(home)] == [self.instance]:
                    (home / self.instance).rmdir()
                    home.rmdir()


class Cgroup:
    """The cgroup of one sandbox."""

    def __init__(self, version: int, by_controller: Mapping[str, Path]) -> None:
        self._version = version
        self._by_controller = by_controller
        self._usage_fd = -1
        # the counts last read from the kernel, by counter name
        self._counts: dict[str, int] = {}

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the folders of the cgroup, one for each hierarchy."""
        return tuple(dict.fromkeys(self._by_controller.values()))

    def limit(self, *, memory_mb: int, processes: int, cpus: float | None = _CPUS) -> None:
        """Set the limits of the cgroup.

        Raises:
          OSError: the kernel refuses a limit.
        """
        limit, folders = str(memory_mb * _MB), self._by_controller
        if MEMORY in folders:
            if self._version == 1:
                _write(folders[MEMORY] / "memory.limit_in_bytes", limit)
                _write_if_there(folders[MEMORY] / "memory.memsw.limit_in_bytes", limit)
            else:
                _write(folders[MEMORY] / "memory.max", limit)
                _write_if_there(folders[MEMORY] / "memory.swap.max", "0")
        if PIDS in folders:
            _write(folders[PIDS] / "pids.max", str(processes))
        if CPU in folders:
            self.weigh(GUEST)
        if CPU in folders and cpus is not None:
            quota = int(cpus * _PERIOD_US)
            if self._version == 1:
                _write_if_there(folders[CPU] / "cpu.cfs_quota_us", str(quota))
            else:
                _write_if_there(folders[CPU] / "cpu.max", f"{quota} {_PERIOD_US}")

    def weigh(self, weight: float) -> None:
        """Set the CPU weight of the sandbox; 1 is the weight of an ordinary process."""
        if CPU in self._by_controller:
            _write_weight(self._version, self._by_controller[CPU], weight)

    def add_process(self, pid: int) -> None:
        """Move a process into the cgroup.

        Children that the process starts later are in the cgroup from the beginning.

        Raises:
          OSError: the process is gone, or the kernel refuses.
        """
        for folder in self.folders:
            _write(folder / "cgroup.procs", str(pid))

    def enforces(self, controller: str) -> bool:
        """Return whether this cgroup can enforce limits for `controller` (`memory`, `pids` or `cpu`)."""
        return controller in self._by_controller

    def oom_kills(self) -> int:
        """Return how many processes the kernel killed at the memory limit, or the last count if the cgroup is gone."""
        name = "memory.oom_control" if self._version == 1 else "memory.events"
        return self._count(MEMORY, name, key="oom_kill")

    def used_bytes(self) -> int | None:
        """Return how many bytes of memory the sandbox's processes and files use; None without a memory controller."""
        folder = self._by_controller.get(MEMORY)
        if folder is None:
            return None
        try:
            if self._usage_fd < 0:  # keep the file open, because it is read often
                name = "memory.usage_in_bytes" if self._version == 1 else "memory.current"
                self._usage_fd = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC)
            return int(os.pread(self._usage_fd, 32, 0))
        except OSError:
            return None

    def forks_refused(self) -> int:
        """Return how many times the kernel refused a fork at the process limit."""
        return self._count(PIDS, "pids.events", key="max")

    def kill(self) -> None:
        """Kill every process in the cgroup."""
        for folder in self.folders:
            try:
                _write(folder / "cgroup.kill", "1")  # cgroup version 2 has this file since Linux 5.14
            except OSError:
                _kill_all(folder)

    def remove(self) -> bool:
        """Remove the cgroup's folders; return whether all are gone.

        The kernel may refuse for a while, until the cgroup's memory pages are free.
        """
        self.close()
        done = True
        for folder in self.folders:
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                done = False
        return done

    def close(self) -> None:
        """Close the file that `used_bytes` keeps open."""
        if self._usage_fd >= 0:
            os.close(self._usage_fd)
            self._usage_fd = -1

    def _count(self, controller: str, name: str, *, key: str) -> int:
        if (folder := self._by_controller.get(controller)) is not None:
            with contextlib.suppress(OSError):
                for line in (folder / name).read_text().splitlines():
                    field, _, value = line.partition(" ")
                    if field == key:
                        self._counts[key] = int(value)
        return self._counts.get(key, 0)


def home_name(instance: str) -> str:
    """Return the name of a host's cgroup folder, from which a guest learns nothing."""
    return f"{PREFIX}{hashlib.blake2b(instance.encode(), key=_KEY, digest_size=6).hexdigest()}"


def instance_of(home: Path) -> str | None:
    """Return the name of the host process that a cgroup folder belongs to, or None if that is not known."""
    return next((folder.name for folder in _subfolders(home) if is_instance(folder.name)), None)


def host_weight() -> float:
    """Return the CPU weight for a host's sandboxes together; 1 is the weight of an ordinary process.

    The weight is 0.5 for each processor, and at least 1, so that the host gets processor time before its sandboxes. The
    weight is lower if this process has a nice value, as processes that run jobs have. Other hosts do not change the
    weight.
    """
    return max(1.0, _PER_PROCESSOR * len(os.sched_getaffinity(0))) * _NICER ** max(0, os.nice(0))


def sweep(mounts: tuple[Path, ...]) -> int:
    """Remove the cgroups of dead hosts everywhere in the hierarchies; return how many sandboxes were removed.

    Args:
      mounts: Hierarchies to search, from `cgroup_discovery.cgroup_mounts`.
    """
    # version 1 has a folder for each controller, so the same sandbox may be found several times
    removed: set[tuple[str, str]] = set()
    for mount in mounts:
        for instance, home in _homes(mount):
            if is_dead(instance):
                sandboxes = [folder for folder in _subfolders(home) if folder.name != instance]
                removed |= {(instance, folder.name) for folder in sandboxes if _clear(folder)}
                if not any(folder.exists() for folder in sandboxes):
                    _clear(home / instance)
                    _clear(home)
        _remove_nameless(mount)
    return len(removed)


def _remove_nameless(mount: Path) -> None:
    """Remove old folders without a host's name, except folders with processes.

    A host leaves such a folder if it is killed before it has written its name, or after it has removed its name.
    """
    for entry in walk(mount, only_folders=True, strict=False):
        entry.enter = not entry.name.startswith(PREFIX)
        home = mount / entry.path
        old = time.time() - entry.stat.st_mtime > _NAMELESS_S
        if _HOME.fullmatch(entry.name) and old and instance_of(home) is None:
            for folder in (*_subfolders(home), home):
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _clear(folder: Path, *, patience_s: float = 1.0) -> bool:
    """Kill every process in a group, and remove the group; return whether this call removed the group."""
    until = time.monotonic() + patience_s
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return False
        except OSError as error:
            if time.monotonic() > until:
                _log.warning("cannot remove %s: %s", folder, error)
                return False
            _kill_all(folder)
            time.sleep(0.01)
        else:
            return True


def _kill_all(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)


def _homes(mount: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name of each host process that has a cgroup folder below a mount point, and that folder."""
    for entry in walk(mount, only_folders=True, strict=False):
        if entry.name.startswith(PREFIX):
            entry.enter = False
            if (instance := instance_of(mount / entry.path)) is not None:
                yield instance, mount / entry.path


def _subfolders(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.is_dir()]
    except OSError:
        return []


def _write_weight(version: int, folder: Path, processes: float) -> None:
    weight = min(max(_LEAST[version], int(processes * _PROCESS[version])), _GREATEST[version])
    _write_if_there(folder / ("cpu.shares" if version == 1 else "cpu.weight"), str(weight))


def _write(path: Path, text: str) -> None:
    # Unbuffered, because a buffered write would report the kernel's error only at close.
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _write_if_there(path: Path, text: str) -> None:
    with contextlib.suppress(OSError):
        _write(path, text)
