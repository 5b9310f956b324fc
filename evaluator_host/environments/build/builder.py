"""Where packages are downloaded and installed: a sandbox that has network and no file of this host but the tools.

Where bubblewrap does not work the same commands run as plain child processes. They run no code of any package (wheels
only, no install scripts), and source builds are refused.
"""

import asyncio
import contextlib
import json
import logging
import os
import platform
import shutil
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from evaluator_host.config import settings as config
from evaluator_host.environments.build.build_user import builder_uid, give
from evaluator_host.environments.build.command import BuildLimits, BuildSandbox, run_sandboxed
from evaluator_host.environments.build.disk_watch import DiskWatch
from evaluator_host.environments.build.mounts import BuildMounts, build_mounts
from evaluator_host.environments.build.policy import BuildView, ProcessLimits, entry_command
from evaluator_host.environments.contents import open_up
from evaluator_host.model.errors import Misconfigured, SandboxUnavailable
from evaluator_host.packages.tools import installed_tools
from evaluator_host.sandbox.base import Finding
from evaluator_host.sandbox.bubblewrap.doctor import INSTALL, find_bubblewrap, remedy
from evaluator_host.sandbox.bubblewrap.identity import choose_identity
from evaluator_host.sandbox.bubblewrap.mounts import Bind, base_executable
from evaluator_host.sandbox.bubblewrap.policy import Identity
from evaluator_host.sandbox.bubblewrap.seccomp import UnknownPolicy, compile_policy
from evaluator_host.sandbox.linux.cgroup_discovery import mounts_of
from evaluator_host.sandbox.linux.cgroups import sweep as sweep_cgroups
from evaluator_host.sandbox.linux.instance import is_dead, this_instance
from evaluator_host.system.processes import Command, Finished, LimitReached, run

_log = logging.getLogger(__name__)

_TRY_S: Final = 20.0
_PROCESSES: Final = 1024  # uv and npm start one thread per processor, and up to 512 that wait for files
_WRITES: Final = 2  # times the ceiling of a set: once as downloaded, once unpacked


class Builder:
    """Runs uv and npm for one host.

    Attributes:
      work: Folder for what a command has beside it (its configuration, credentials): removed when a host died.

    Args:
      home: The one folder that builds may write to, `downloads/` and `staging/` together: files are shared by hard
        links, which cannot cross a mount.
      file_mb: Greatest file that a build may write, and half of what it may write in all.
      memory_mb: Of one command with all it starts.
    """

    def __init__(self, home: Path, *, file_mb: int, memory_mb: int = 4096) -> None:
        self.home = home
        self.work = home.parent / "work" / this_instance()
        self.tools = replace(installed_tools(), python=base_executable())
        self._limits = BuildLimits(memory_mb, _PROCESSES, file_mb)
        self._sandbox: asyncio.Task[BuildSandbox | str] | None = None

    async def run(
        self, command: Command, timeout_s: float, *, also: Sequence[Path] = (), stage: Path | None = None
    ) -> Finished:
        """Run a command that runs no code of packages, to its end with nothing left of it.

        Args:
          command: Its working directory is writable, and so are the downloads.
          timeout_s: For the whole command.
          also: Further folders it may write to.
          stage: A folder below `staging` into which it links downloads.

        Raises:
          TimeoutError: it did not end within `timeout_s`.
          OutputFlood: it wrote more than `OUTPUT_BYTES` to one stream.
          LimitReached: it needed more memory, processes or disk than it is allowed.
        """
        sandbox = await self._find()
        disk_watch = DiskWatch(self.home, limit_mb=_WRITES * self._limits.file_mb)
        if isinstance(sandbox, str):
            return await self._run_plain(command, timeout_s, disk_watch)
        uid = builder_uid()
        identity = Identity() if uid is None else Identity(uid, drop=True)
        downloads = self.home / "downloads"
        own = [downloads, command.cwd, *also, *([stage] if stage else ())]
        await asyncio.to_thread(_prepare, own, identity)
        if stage is None:
            writable, empty = own, []
        else:
            writable = [self.home, command.cwd, *also]
            beside = [*self.home.iterdir(), *(self.home / "staging").iterdir()]
            folders = [path for path in beside if path.is_dir()]
            empty = [
                folder for folder in folders if not any(path.is_relative_to(folder) for path in (stage, downloads))
            ]
        view = _view(
            command, build_mounts(self.tools, compilers=False), [Bind(path, path) for path in writable], empty=empty
        )
        return await self._run_sandboxed(
            command, view, sandbox, identity=identity, disk_watch=disk_watch, timeout_s=timeout_s
        )

    async def run_sources(self, command: Command, timeout_s: float, *, also: Sequence[Path] = ()) -> Finished:
        """Run a command that may run code of packages: what `packages.resolve.resolve` takes as its builder.

        It sees the machine's compilers, but no download of others: sets share files with those. What it downloads is
        its own and is thrown away. Where the host is root it is a user that nobody else is.

        Raises:
          Misconfigured: there is no sandbox for that here.
          TimeoutError, OutputFlood, LimitReached: see `run`.
        """
        sandbox = await self._find()
        if isinstance(sandbox, str):
            raise Misconfigured("Source builds need bubblewrap: install it, or turn allow_source_builds off.")
        identity = choose_identity()
        self.work.mkdir(parents=True, exist_ok=True)
        private = Path(tempfile.mkdtemp(prefix="private-", dir=self.work))
        cache, scratch = private / "cache", private / "tmp"
        try:
            cache.mkdir()
            scratch.mkdir()
            await asyncio.to_thread(_prepare, [cache, scratch, command.cwd, *also], identity)
            binds = [Bind(path, path) for path in (command.cwd, scratch, *also)]
            binds.append(Bind(cache, self.home / "downloads" / "builder"))
            view = _view(command, build_mounts(self.tools, compilers=True), binds, scratch=scratch)
            disk_watch = DiskWatch(
                self.home, limit_mb=_WRITES * self._limits.file_mb, own=(private, command.cwd, *also)
            )
            return await self._run_sandboxed(
                command, view, sandbox, identity=identity, disk_watch=disk_watch, timeout_s=timeout_s
            )
        finally:
            await asyncio.shield(asyncio.to_thread(_clear, private, [command.cwd, *also]))

    async def findings(self) -> list[Finding]:
        """Say how builds are isolated here; really starts one command."""
        self.home.mkdir(parents=True, exist_ok=True)
        sandbox = await self._find()
        if isinstance(sandbox, str):
            detail = f"packages are installed by plain processes with this host's rights: {sandbox}"
            return [Finding("builder", ok=False, detail=detail, fix=INSTALL if INSTALL in sandbox else remedy(sandbox))]
        uid = builder_uid()
        who = "in a user namespace" if uid is None else f"as user {uid}"
        return [Finding("builder", ok=True, detail=f"packages are installed in a sandbox of their own, {who}")]

    async def _run_sandboxed(
        self,
        command: Command,
        view: BuildView,
        sandbox: BuildSandbox,
        *,
        identity: Identity,
        disk_watch: DiskWatch,
        timeout_s: float,
    ) -> Finished:
        return await run_sandboxed(
            command,
            view,
            sandbox=sandbox,
            identity=identity,
            limits=self._limits,
            disk_watch=disk_watch,
            timeout_s=timeout_s,
        )

    async def _run_plain(self, command: Command, timeout_s: float, disk_watch: DiskWatch) -> Finished:
        bounds = ProcessLimits(file_mb=self._limits.file_mb, data_mb=self._limits.memory_mb)
        argv = entry_command(command.argv, command.cwd, python=self.tools.python, bounds=bounds)
        tasks: list[asyncio.Task[None]] = []

        def watched(pid: int) -> None:
            def kill() -> None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)

            tasks.append(asyncio.create_task(disk_watch.watch(pid, kill)))

        try:
            finished = await run(replace(command, argv=argv), timeout_s, started=watched)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if finished.code != 0 and disk_watch.reached is not None:
            raise LimitReached(disk_watch.reached)
        return finished

    async def _find(self) -> BuildSandbox | str:
        """Return how builds are enclosed, or why they are not."""
        if self._sandbox is None:
            self._sandbox = asyncio.ensure_future(self._try())
        return await asyncio.shield(self._sandbox)

    async def _try(self) -> BuildSandbox | str:
        """Return bubblewrap when a builder sandbox really starts; what builds of dead hosts left is removed first."""
        await asyncio.to_thread(self._sweep)
        found = await self._tried()
        if isinstance(found, str):
            _log.warning(
                "packages are installed without a sandbox, by plain processes with this host's rights: %s", found
            )
        return found

    async def _tried(self) -> BuildSandbox | str:
        try:
            bubblewrap = await find_bubblewrap()
            policy = json.loads((config.SANDBOX_IMAGES_DIR / "seccomp.json").read_text(encoding="utf-8"))
            sandbox = BuildSandbox(bubblewrap, compile_policy(policy, platform.machine()), self.tools.python)
        except SandboxUnavailable as error:
            return error.detail
        except UnknownPolicy as error:
            return str(error)
        uid = builder_uid()
        identity = Identity() if uid is None else Identity(uid, drop=True)
        probe = Command((str(self.tools.uv), "--version"), Path("/"), {})
        view = _view(probe, build_mounts(self.tools, compilers=False), [])
        disk_watch = DiskWatch(self.home, limit_mb=self._limits.file_mb)
        try:
            await asyncio.to_thread(_prepare, [self.home / "downloads"], identity)
            finished = await self._run_sandboxed(
                probe, view, sandbox, identity=identity, disk_watch=disk_watch, timeout_s=_TRY_S
            )
        except (OSError, TimeoutError, LimitReached) as error:
            return f"a trial failed: {str(error) or type(error).__name__}"
        return sandbox if finished.code == 0 else finished.stderr.strip()[:500] or f"exit {finished.code}"

    def _sweep(self) -> None:
        sweep_cgroups(mounts_of())
        for folder in self.work.parent.glob("host-*"):
            if is_dead(folder.name):
                open_up(folder)
                shutil.rmtree(folder, ignore_errors=True)


def _view(
    command: Command,
    seen: BuildMounts,
    writable: Sequence[Bind],
    *,
    empty: Sequence[Path] = (),
    scratch: Path | None = None,
) -> BuildView:
    environment = dict(command.environment)
    if seen.library_path is not None:
        environment["LD_LIBRARY_PATH"] = str(seen.library_path)
    if scratch is not None:
        environment["TMPDIR"] = str(scratch)
    return BuildView(
        seen=seen.seen,
        writable=tuple(writable),
        links=seen.links,
        empty=(*seen.empty, *empty),
        environment=environment,
    )


def _prepare(folders: Sequence[Path], identity: Identity) -> None:
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        if identity.drop:
            give(folder, identity.uid)


def _clear(private: Path, used: Sequence[Path]) -> None:
    """Remove what a source build had of its own, and take back what it shared."""
    uid = builder_uid()
    for folder in (private, *used):
        open_up(folder)
        if uid is not None:
            give(folder, uid)
    shutil.rmtree(private, ignore_errors=True)
    with contextlib.suppress(OSError):
        private.parent.rmdir()
