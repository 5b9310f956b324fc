"""Runs uv and npm for builds, in a sandbox that has network access and can read only the tools of this host.

Where bubblewrap does not work, the commands run as plain child processes. Such processes do not run code from packages:
they install only wheels, and do not run install scripts. Source builds are refused.
"""

import asyncio
import contextlib
import logging
import os
import platform
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Final

from evaluator_host.engine.environments.build.command import BuildLimits, BuildSandbox, DiskWatch, starved
from evaluator_host.engine.environments.build.policy import BuildView, ProcessLimits, entry_command
from evaluator_host.engine.packages.tools import Tools, installed_tools
from evaluator_host.engine.sandbox.base import Finding
from evaluator_host.engine.sandbox.bubblewrap.doctor import INSTALL, find_bubblewrap, remedy
from evaluator_host.engine.sandbox.bubblewrap.identity import choose_identity
from evaluator_host.engine.sandbox.bubblewrap.mounts import (
    PYTHON_HOME,
    Bind,
    base_executable,
    find_libraries,
    find_python,
)
from evaluator_host.engine.sandbox.bubblewrap.policy import NOBODY, Identity
from evaluator_host.engine.sandbox.bubblewrap.seccomp import (
    UnknownPolicy,
    compile_policy,
    read_policy,
    without_unix_sockets,
)
from evaluator_host.engine.sandbox.linux.cgroup_discovery import cgroup_mounts
from evaluator_host.engine.sandbox.linux.cgroups import sweep as sweep_cgroups
from evaluator_host.engine.sandbox.linux.instance import has_abandoned, this_instance
from evaluator_host.engine.sandbox.linux.work_clock import Starved, within
from evaluator_host.engine.system.processes import Command, Finished, LimitReached, run
from evaluator_host.engine.system.tree import remove, take_over, work_folder
from evaluator_host.types.errors import MachineExhausted, Misconfigured, SandboxUnavailable, refusal_of

_log = logging.getLogger(__name__)

_TRY_S: Final = 20.0
_TRIALS: Final = 3  # how many times to test the sandbox of builds if something kills each test
_SIGNALLED: Final = 128  # a higher exit code is 128 plus the number of the signal that ended the process
_TRIAL: Final = "a trial failed"
# maximum number of processes and threads; uv and npm start one thread per processor, and up to 512 that wait for files
_PROCESSES: Final = 1024
_WRITES: Final = 2  # a build may write twice the size limit of a set: the packages as downloaded, and unpacked
# User id of all builds if the host is root; builds share one user because they share downloads. Both numbers are below
# the user ids of sandboxes (`identity`). The second is used in containers that have only 65,536 user ids.
_UIDS: Final = (1_899_999_999, 19_999)
_COMPILERS: Final = tuple(Path(name) for name in ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives"))
_NAME_SERVICE: Final = tuple(Path("/etc", name) for name in ("resolv.conf", "hosts", "nsswitch.conf", "gai.conf"))


class Builder:
    """Runs uv and npm for one host.

    Attributes:
      work: Folder for files that one command needs, such as configuration and credentials. A host removes files that
        dead hosts left there.

    Args:
      home: The only folder that builds may write to. `downloads/` and `staging/` are both inside, because they share
        files by hard links, and hard links do not work across mounts.
      file_mb: Largest file that a build may write, in MB. All files of a build together may have twice this size.
      memory_mb: Memory limit of one command and all processes that it starts.
      using_downloads: Keeps the downloads from being deleted while a command uses them. Only commands that run no code
        of packages use this lock, so no package can delay a deletion.
    """

    def __init__(
        self,
        home: Path,
        *,
        file_mb: int,
        memory_mb: int = 4096,
        using_downloads: Callable[[], AbstractAsyncContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self.home = home
        self.work = home.parent / "work" / this_instance()
        self.tools = replace(installed_tools(), python=base_executable())
        self._using_downloads = using_downloads
        self._limits = BuildLimits(memory_mb, _PROCESSES, file_mb)
        self._sandbox: asyncio.Task[BuildSandbox | str] | None = None

    async def run(
        self, command: Command, timeout_s: float, *, also: Sequence[Path] = (), stage: Path | None = None
    ) -> Finished:
        """Run a command that does not execute package code; all its processes have ended when this method returns.

        Args:
          command: The command; it may write to its working directory and to the downloads.
          timeout_s: Seconds for the whole command, as `linux.work_clock` counts them.
          also: Further folders to which the command may write.
          stage: Folder below `staging` into which the command links downloads; None for a command that installs
            nothing.

        Raises:
          TimeoutError: the command did not end within `timeout_s`.
          HostBusy: the machine gave the command too little processor time.
          OutputFlood: the command wrote more than `OUTPUT_BYTES` to one stream.
          LimitReached: the command needed more memory, processes or disk than it may use.
        """
        async with self._using_downloads():
            return await self._run(command, timeout_s, also, stage)

    async def _run(self, command: Command, timeout_s: float, also: Sequence[Path], stage: Path | None) -> Finished:
        sandbox = await self._find()
        disk_watch = DiskWatch(self.home, limit_mb=_WRITES * self._limits.file_mb)
        if isinstance(sandbox, str):
            return await self._run_plain(command, timeout_s, disk_watch)
        identity = _builder_identity()
        downloads = self.home / "downloads"
        own = [downloads, command.cwd, *also, *([stage] if stage else ())]
        await asyncio.to_thread(_prepare, own, identity)
        if stage is None:
            writable, empty = own, []
        else:
            writable = [self.home, command.cwd, *also]
            folders = [*self.home.iterdir(), *(self.home / "staging").iterdir()]
            empty = [
                folder
                for folder in folders
                if folder.is_dir() and not any(path.is_relative_to(folder) for path in (stage, downloads))
            ]
        view = build_view(command, self.tools, [Bind(path, path) for path in writable], empty=empty)
        return await sandbox.run(command, view, identity=identity, disk_watch=disk_watch, timeout_s=timeout_s)

    async def run_sources(self, command: Command, timeout_s: float, *, also: Sequence[Path] = ()) -> Finished:
        """Run a command that may execute package code; `packages.resolve.resolve` gets this method as its `builder`.

        The command sees the machine's compilers. The command does not see downloads of other builds, because package
        sets share the downloaded files. The command's own download cache is deleted afterwards. If the host is root,
        the command runs as a user id that nothing else uses.

        Raises:
          Misconfigured: bubblewrap does not work on this machine.
          TimeoutError, OutputFlood, LimitReached: see `run`.
        """
        sandbox = await self._find()
        if isinstance(sandbox, str):
            raise Misconfigured(
                "Building packages from source needs bubblewrap: install it, or turn allow_source_builds off."
            )
        identity = choose_identity()
        async with work_folder(self.work, "private-") as private:
            cache, scratch = private / "cache", private / "tmp"
            await asyncio.to_thread(_prepare, [cache, scratch, command.cwd, *also], identity)
            binds = [Bind(path, path) for path in (command.cwd, scratch, *also)]
            binds.append(Bind(cache, self.home / "downloads" / "builder"))
            view = build_view(command, self.tools, binds, compilers=True, scratch=scratch)
            limit_mb = _WRITES * self._limits.file_mb
            disk_watch = DiskWatch(self.home, limit_mb=limit_mb, own=(private, command.cwd, *also))
            try:
                return await sandbox.run(command, view, identity=identity, disk_watch=disk_watch, timeout_s=timeout_s)
            finally:
                await asyncio.shield(asyncio.to_thread(_take_back, [command.cwd, *also]))

    async def findings(self) -> list[Finding]:
        """Return the `doctor` findings about the isolation of builds, after starting one command as a test."""
        self.home.mkdir(parents=True, exist_ok=True)
        sandbox = await self._find()
        if isinstance(sandbox, str):
            detail = f"packages are installed by plain processes with this host's rights: {sandbox}"
            known = INSTALL in sandbox or sandbox.startswith(_TRIAL)  # whether this reason already says what to do
            return [Finding("builder", ok=False, detail=detail, fix=None if known else remedy(sandbox))]
        uid = _builder_uid()
        user = "in a user namespace" if uid is None else f"as user {uid}"
        return [Finding("builder", ok=True, detail=f"packages are installed in a sandbox of their own, {user}")]

    async def _run_plain(self, command: Command, timeout_s: float, disk_watch: DiskWatch) -> Finished:
        bounds = ProcessLimits(file_mb=self._limits.file_mb, data_mb=self._limits.memory_mb)
        argv = entry_command(command.argv, command.cwd, python=self.tools.python, bounds=bounds)
        tasks: dict[int, asyncio.Task[None]] = {}

        def watch(pid: int) -> None:
            def kill() -> None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)

            tasks[pid] = asyncio.create_task(disk_watch.watch(pid, kill))

        try:
            work = run(replace(command, argv=argv), None, started=watch)
            finished = await within(timeout_s, lambda: next(iter(tasks), None), work)
        except Starved:
            raise starved() from None
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
        if finished.code != 0 and disk_watch.reached is not None:
            raise disk_watch.reached
        return finished

    async def _find(self) -> BuildSandbox | str:
        """Return the sandbox of builds, or the reason why there is none.

        If the search raises an error, the next call searches again.
        """
        found = self._sandbox
        if found is None or (found.done() and (found.cancelled() or found.exception() is not None)):
            found = self._sandbox = asyncio.ensure_future(self._try())
        return await asyncio.shield(found)

    async def _try(self) -> BuildSandbox | str:
        try:
            bubblewrap = await find_bubblewrap()
            seccomp = compile_policy(without_unix_sockets(read_policy()), platform.machine())
            found = await self._tried(BuildSandbox(bubblewrap, seccomp, self.tools.python, self._limits))
        except SandboxUnavailable as error:
            _require_lasting(error.__cause__)
            found = error.detail
        except UnknownPolicy as error:
            found = str(error)
        if isinstance(found, str):
            # the builds' user no longer needs the downloads; if a sandbox works later, `_prepare` makes that user their
            # owner again
            with contextlib.suppress(OSError):
                os.chown(self.home / "downloads", os.geteuid(), -1)
            _log.warning(
                "packages are installed without a sandbox, by plain processes with this host's rights: %s", found
            )
        return found

    async def _tried(self, sandbox: BuildSandbox) -> BuildSandbox | str:
        identity = _builder_identity()
        probe = Command((str(self.tools.uv), "--version"), Path("/"), {})
        view = build_view(probe, self.tools, [])
        disk_watch = DiskWatch(self.home, limit_mb=self._limits.file_mb)
        try:
            await asyncio.to_thread(_prepare, [self.home / "downloads"], identity)
            for _ in range(_TRIALS):
                finished = await sandbox.run(probe, view, identity=identity, disk_watch=disk_watch, timeout_s=_TRY_S)
                if 0 <= finished.code <= _SIGNALLED:
                    break
            else:
                raise MachineExhausted(
                    "the sandbox that installs packages was killed at every start, perhaps because this machine "
                    "had no memory left; try again"
                )
        except (OSError, LimitReached) as error:  # includes TimeoutError, which is an OSError
            _require_lasting(error)
            return f"{_TRIAL}: {refusal_of(error)}"
        return sandbox if finished.code == 0 else finished.stderr.strip()[:500] or f"exit {finished.code}"

    async def close(self) -> None:
        """Remove folders of commands that could not be removed earlier, for example from a read-only disk."""
        if self.work.exists():
            await asyncio.to_thread(remove, self.work)

    def sweep(self) -> None:
        """Remove the files and cgroups that builds of killed hosts have left; the files include credentials.

        Blocking.
        """
        try:
            sweep_cgroups(cgroup_mounts())
            for folder in self.work.parent.glob("host-*"):
                if has_abandoned(folder.name, folder):
                    remove(folder)
        except Exception as error:  # noqa: BLE001 - if old files cannot be removed, the host can still build
            _log.warning("files that builds of killed hosts left behind could not be removed: %s", refusal_of(error))


def build_view(
    command: Command,  # the command to run; its environment variables become part of the view
    tools: Tools,  # paths of uv, node and npm
    writable: Sequence[Bind],  # folders that the command may write to
    *,
    compilers: bool = False,  # whether the command can use all programs of the machine, such as compilers
    empty: Sequence[Path] = (),  # folders that look empty to the command
    scratch: Path | None = None,  # the command's folder for temporary files; None for `/tmp`
) -> BuildView:
    """Return the files that a build command sees: the tools, their libraries, and the DNS configuration."""
    python, libraries = find_python(), find_libraries()
    seen, links = list(libraries.binds), libraries.links
    if compilers:
        seen = [_same(path) for path in _COMPILERS if path.is_dir() and not path.is_symlink()]
        links = tuple((str(path.readlink()), path) for path in _COMPILERS if path.is_symlink())
    seen += [_same(_host_path(bind.target)) for bind in python.binds]
    seen += [_same(tool) for tool in (tools.uv, tools.node, tools.npm)]
    seen += [_same(path) for path in _NAME_SERVICE if path.is_file()]
    environment = dict(command.environment)
    if python.library_path is not None:
        environment["LD_LIBRARY_PATH"] = str(_host_path(python.library_path))
    if scratch is not None:
        environment["TMPDIR"] = str(scratch)
    return BuildView(
        seen=tuple(dict.fromkeys(seen)),
        writable=tuple(writable),
        links=links,
        empty=(*(_host_path(folder) for folder in python.masked), *empty),
        environment=environment,
    )


def _host_path(path: Path) -> Path:
    """Convert a path in an evaluator's sandbox to the path on this host."""
    if path.is_relative_to(PYTHON_HOME):
        return Path(sys.base_prefix).resolve() / path.relative_to(PYTHON_HOME)
    return path


def _same(path: Path) -> Bind:
    return Bind(Path(os.path.realpath(path)), path)


def _builder_identity() -> Identity:
    uid = _builder_uid()
    return Identity() if uid is None else Identity(uid, drop=True)


def _builder_uid() -> int | None:
    if os.geteuid() != 0:
        return None
    mapped = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    for uid in _UIDS:
        if any(first <= uid < first + count for first, _, count in mapped):
            return uid
    return NOBODY


def _prepare(folders: Sequence[Path], identity: Identity) -> None:
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        if identity.drop and folder.lstat().st_uid != identity.uid:
            take_over(folder, identity.uid)


def _take_back(used: Sequence[Path]) -> None:
    """Give the folders that a source build has used back to the user that runs all other builds."""
    for folder in used:
        take_over(folder, _builder_uid())


def _require_lasting(fault: BaseException | None) -> None:
    """Raise an error if a test of the sandbox failed for a temporary reason.

    Only a lasting reason permits builds without a sandbox.
    """
    if isinstance(fault, TimeoutError | InterruptedError):
        raise MachineExhausted("this machine is too busy to install packages; try again later") from fault
    if fault is not None and (exhausted := MachineExhausted.cause_of(fault)) is not None:
        raise exhausted from fault
