"""Runs one build command in bubblewrap with limits, and leaves no process or cgroup behind.

`DiskWatch` ends a command before it fills the disk. Other builds use some of the same folders, so `DiskWatch` counts
the bytes that the command's processes wrote (`wchar` of proc(5)). This count does not include writes to mapped files.
Therefore `DiskWatch` also measures the folders that only this build uses, and the larger number counts.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_host.engine.environments.build.policy import (
    BuildView,
    ProcessLimits,
    builder_args,
    entry_command,
    etc_files,
)
from evaluator_host.engine.sandbox.bubblewrap.descriptors import InheritedFds
from evaluator_host.engine.sandbox.bubblewrap.doctor import Bubblewrap, advice
from evaluator_host.engine.sandbox.bubblewrap.policy import Identity
from evaluator_host.engine.sandbox.bubblewrap.processes import BubblewrapProcesses
from evaluator_host.engine.sandbox.linux.cgroup_discovery import find_cgroups
from evaluator_host.engine.sandbox.linux.cgroups import MEMORY, PIDS, Cgroup, Cgroups
from evaluator_host.engine.sandbox.linux.child import Child, readable
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.sandbox.linux.rlimits import lower_rlimit
from evaluator_host.engine.sandbox.linux.watchdog import Watch, Watchdog, process_tree
from evaluator_host.engine.sandbox.linux.work_clock import Starved, within
from evaluator_host.engine.system.processes import OUTPUT_BYTES, Command, Finished, LimitReached, OutputFlood
from evaluator_host.engine.system.tree import size_bytes
from evaluator_host.types.errors import HostBusy, MachineExhausted

_log = logging.getLogger(__name__)

_WEIGHT: Final = 0.33  # CPU weight of a build; an ordinary process has 1
_SETUP_S: Final = 30.0
_REMOVAL_S: Final = 60.0
_DATA_MARGIN_MB: Final = 1024  # added to RLIMIT_DATA, which counts reserved memory: V8 reserves 512 MB
_MB: Final = 1024 * 1024
# numbers in the names of builds' cgroups; those in the names of sandbox backends start at 1, and stay far lower
_NUMBERS: Final = itertools.count(1_000_000)
_LOOK_EVERY_S: Final = 0.25
_TRIES: Final = 3
# maximum number of files that a build may create: even empty files take inodes, and a large set has 100,000 files
_FILES: Final = 2_000_000
_RESERVE_MB: Final = 256  # number of MB to leave free on the disk for the rest of the machine


class DiskWatch:
    """Watches the disk use of one build command.

    Attributes:
      reached: Why the command was ended: it wrote more than its limit, or the disk is nearly full; None while it may
        continue.

    Args:
      home: A folder on the disk that the command writes to.
      limit_mb: Maximum number of MB that the command may write.
      own: Folders that only this command writes to.
    """

    def __init__(self, home: Path, *, limit_mb: int, own: Sequence[Path] = ()) -> None:
        self.reached: LimitReached | MachineExhausted | None = None
        self._home = home
        self._limit_mb = limit_mb
        self._own = own
        self._inodes = os.statvfs(home).f_favail

    async def watch(self, pid: int | None, kill: Callable[[], None]) -> None:
        """Until cancelled, measure what a process and its descendants write; call `kill` when they reach a limit."""
        spent_s = 0.0
        while pid is not None and self.reached is None:
            # pause for as long as the last check took, so that measuring many files takes at most half a thread's time
            await asyncio.sleep(max(_LOOK_EVERY_S, spent_s))
            started = time.monotonic()
            self.reached = await self._try_look(pid)
            spent_s = time.monotonic() - started
        if self.reached is not None:
            kill()

    async def _try_look(self, pid: int) -> LimitReached | MachineExhausted | None:
        """Return the limit that the command has reached, or None; return an error after three failed measurements."""
        for _ in range(_TRIES):
            try:
                return await asyncio.to_thread(self._look, pid)
            except Exception as error:  # noqa: BLE001 - a folder may have moved; without measurements there is no limit
                _log.warning("the disk use of a build cannot be measured: %s: %s", type(error).__name__, error)
        return MachineExhausted("this host cannot measure how much an installation writes to disk; try again later")

    def _look(self, pid: int) -> LimitReached | MachineExhausted | None:
        disk = os.statvfs(self._home)
        if (free_mb := disk.f_bavail * disk.f_frsize // _MB) < _RESERVE_MB:
            return MachineExhausted(
                f"the disk of this host's data directory has {free_mb} MB left, and an installation must leave "
                f"{_RESERVE_MB} MB for the rest of the machine; the operator must make room (`df -h` shows where)"
            )
        if disk.f_files and self._inodes - disk.f_favail > _FILES:
            return LimitReached(f"the package set has more than {_FILES:,} files; pin fewer packages")
        occupied = sum(size_bytes(folder, occupied=True) for folder in self._own)
        if max(written_bytes(pid), occupied) > self._limit_mb * _MB:
            return LimitReached(
                f"the installation writes more than this host allows ({self._limit_mb} MB); pin fewer or smaller "
                "packages"
            )
        return None


def written_bytes(pid: int) -> int:
    """Return the bytes that a process and its descendants have written; 0 if the kernel does not count them."""
    total = 0
    for process in process_tree(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = dict(line.split(": ") for line in Path(f"/proc/{process}/io").read_text().splitlines())
            total += int(fields.get("wchar", 0))
    return total


@dataclass(frozen=True, slots=True)
class BuildLimits:
    """Limits of one build command with all its processes.

    `file_mb` limits a single file; `DiskWatch` limits the total.
    """

    memory_mb: int
    processes: int
    file_mb: int


@dataclass(frozen=True, slots=True)
class BuildSandbox:
    """Runs build commands in bubblewrap."""

    bubblewrap: Bubblewrap
    seccomp: bytes  # the compiled system call filter
    python: Path  # the interpreter that starts each command in the sandbox
    limits: BuildLimits

    async def run(
        self, command: Command, view: BuildView, *, identity: Identity, disk_watch: DiskWatch, timeout_s: float
    ) -> Finished:
        """Run a command until it ends, and leave no process, cgroup or descriptor behind.

        Raises:
          TimeoutError: the command did not end within `timeout_s` seconds, as `linux.work_clock` counts them.
          HostBusy: the machine gave the command too little processor time.
          OutputFlood: the command wrote more than `OUTPUT_BYTES` to one stream.
          LimitReached: the command needed more memory, processes or disk than it may use.
          MachineExhausted: the disk is nearly full.
        """
        tries = itertools.count(1)
        while True:
            try:
                return await self._run(command, view, identity, disk_watch, timeout_s)
            except FileNotFoundError as error:  # something removed the cgroup of the command before it began
                if next(tries) == _TRIES:
                    raise MachineExhausted.by(error, doing="start a command that installs packages") from error

    async def _run(
        self, command: Command, view: BuildView, identity: Identity, disk_watch: DiskWatch, timeout_s: float
    ) -> Finished:
        cgroups = _cgroups()
        try:
            with InheritedFds(seccomp=self.seccomp, files=etc_files(identity)) as inherited:
                child = self._start(command, view, inherited, identity)
                group = BubblewrapProcesses(child, watchdog=Watchdog())
                try:
                    pid = await _limit(group, inherited, limits=self.limits, cgroups=cgroups)
                    work = _follow(child, group, pid=pid, limits=self.limits, disk_watch=disk_watch)
                    return await within(timeout_s, lambda: pid, work)
                except Starved:
                    raise starved() from None
                finally:
                    await asyncio.shield(_remove(child, group))
        finally:
            if cgroups is not None:
                cgroups.close()

    def _start(self, command: Command, view: BuildView, inherited: InheritedFds, identity: Identity) -> Child:
        userns = self.bubblewrap.can_disable_userns
        arguments = builder_args(view, identity=identity, descriptors=inherited.descriptors, disable_userns=userns)
        user = identity.uid if identity.drop else None
        inner = entry_command(command.argv, command.cwd, python=self.python, user=user)
        words = [str(self.bubblewrap.path), "--args", str(inherited.args(arguments)), "--", *inner]
        child = Child(words, env={}, cwd="/", pass_fds=inherited.child_fds)
        inherited.hand_over()
        return child


def starved() -> HostBusy:
    """Return the error for a command to which the machine gives too little processor time."""
    return HostBusy("this machine has too little processor time for a build; try again")


def _cgroups() -> Cgroups | None:
    found = find_cgroups(f"{this_instance()}.{next(_NUMBERS)}")
    return None if found is None else found.weigh(_WEIGHT)


def _process_limits(limits: BuildLimits, cgroups: Cgroups | None) -> ProcessLimits:
    counted = cgroups.controllers if cgroups is not None else ()
    return ProcessLimits(
        file_mb=limits.file_mb,
        data_mb=None if MEMORY in counted else limits.memory_mb + _DATA_MARGIN_MB,
        # Three times the limit, because three builds may run as the same user; the watchdog counts each build's
        # processes.
        processes=None if PIDS in counted else 3 * limits.processes,
    )


async def _limit(
    group: BubblewrapProcesses, inherited: InheritedFds, *, limits: BuildLimits, cgroups: Cgroups | None
) -> int | None:
    """Set all limits on the first process in the sandbox. Return its process id, or None if bubblewrap has failed."""
    try:
        async with asyncio.timeout(_SETUP_S):
            pid = await inherited.first_process()
        if pid is None:
            return None
        group.hold(pid)
    except TimeoutError:  # bubblewrap normally answers within milliseconds
        raise starved() from None
    except ProcessLookupError:
        return None
    counted = cgroups.controllers if cgroups is not None else ()
    made: Cgroup | None = None
    if cgroups is not None:
        made = cgroups.create("build", memory_mb=limits.memory_mb, processes=limits.processes, cpus=None)
    if not {MEMORY, PIDS} <= set(counted):
        group.watch(Watch(pid, limits.memory_mb * _MB, limits.processes, group.kill))
    if made is not None:
        await group.limit(pid, made)
    with contextlib.suppress(ProcessLookupError):  # the process has failed; its exit code says why
        # the limits are set now, because the system call filter will forbid setting them
        for name, value in _process_limits(limits, cgroups).limits.items():
            lower_rlimit(pid, getattr(resource, f"RLIMIT_{name}"), value)
    inherited.go()
    return pid


async def _follow(
    child: Child, group: BubblewrapProcesses, *, pid: int | None, limits: BuildLimits, disk_watch: DiskWatch
) -> Finished:
    watching = asyncio.ensure_future(disk_watch.watch(pid, group.kill))
    readers = [asyncio.ensure_future(_bounded(end)) for end in (child.stdout, child.stderr)]
    try:
        stdout, stderr = await asyncio.gather(*readers)
        await child.exited.wait()
    finally:
        for task in (watching, *readers):
            task.cancel()
        await asyncio.gather(watching, *readers, return_exceptions=True)
    said = stderr.decode("utf-8", "replace")
    code = child.returncode or 0
    if pid is None:
        return Finished(code or 1, "", advice(said))
    if code != 0:
        _raise_at_limit(group, limits, disk_watch)
    return Finished(code, stdout.decode("utf-8", "replace"), said)


def _raise_at_limit(group: BubblewrapProcesses, limits: BuildLimits, disk_watch: DiskWatch) -> None:
    if disk_watch.reached is not None:
        raise disk_watch.reached
    if group.memory_events():
        raise LimitReached(
            f"the installation needs more than {limits.memory_mb} MB of memory; pin smaller packages, or "
            "ask the operator to raise the limit"
        )
    if group.pids_hit():
        raise LimitReached(f"the installation starts more than {limits.processes} processes; pin other versions")


async def _bounded(descriptor: int) -> bytes:
    kept = bytearray()
    while True:
        await readable(descriptor)
        try:
            chunk = os.read(descriptor, 65_536)
        except BlockingIOError:
            continue
        if not chunk:
            return bytes(kept)
        kept += chunk
        if len(kept) > OUTPUT_BYTES:
            raise OutputFlood


async def _remove(child: Child, group: BubblewrapProcesses) -> None:
    group.kill()
    child.kill()
    try:
        async with asyncio.timeout(_REMOVAL_S):
            await child.exited.wait()
            await group.gone()
    except TimeoutError:
        _log.error("a process of a build was killed, but does not end")  # the process hangs in the kernel
    await group.remove()
    child.close()
