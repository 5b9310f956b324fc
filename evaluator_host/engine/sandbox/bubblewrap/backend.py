"""The bubblewrap backend: starts sandboxes with kernel namespaces in milliseconds, without a daemon or an image.

One policy (`bubblewrap_args`) covers two cases. If the host runs as an ordinary user, each sandbox has its own user
namespace. If the host runs as root, there are no user namespaces: each runner changes to an unprivileged user that no
other sandbox has.
"""

import asyncio
import contextlib
import itertools
import logging
import platform
import secrets
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from evaluator_host.engine.config.settings import SandboxStart
from evaluator_host.engine.sandbox.base import Finding
from evaluator_host.engine.sandbox.bubblewrap import doctor
from evaluator_host.engine.sandbox.bubblewrap.descriptors import InheritedFds
from evaluator_host.engine.sandbox.bubblewrap.identity import choose_identity
from evaluator_host.engine.sandbox.bubblewrap.mounts import (
    HostPython,
    compile_runner,
    find_libraries,
    find_python,
    network_files,
)
from evaluator_host.engine.sandbox.bubblewrap.policy import (
    HostFiles,
    Identity,
    bubblewrap_args,
    etc_files,
    own_folders,
    python_command,
    runner_command,
)
from evaluator_host.engine.sandbox.bubblewrap.processes import BubblewrapProcesses, kill_orphans
from evaluator_host.engine.sandbox.bubblewrap.seccomp import (
    UnknownPolicy,
    compile_policy,
    read_policy,
    without_unix_sockets,
)
from evaluator_host.engine.sandbox.bubblewrap.template import Template, TemplateLost, start_template
from evaluator_host.engine.sandbox.linux import cgroups
from evaluator_host.engine.sandbox.linux.cgroup_discovery import cgroup_mounts, find_cgroups
from evaluator_host.engine.sandbox.linux.cgroups import MEMORY, PIDS, Cgroups
from evaluator_host.engine.sandbox.linux.child import Child
from evaluator_host.engine.sandbox.linux.masked_paths import masked_paths_on
from evaluator_host.engine.sandbox.linux.rlimits import lower_rlimit, process_limit, sandbox_rlimits
from evaluator_host.engine.sandbox.linux.watchdog import Watch, Watchdog
from evaluator_host.engine.sandbox.local import LocalBackend, LocalTools
from evaluator_host.engine.sandbox.pipe_link import PipeLink
from evaluator_host.engine.sandbox.pythons import Pythons, own_python
from evaluator_host.engine.sandbox.trial_start import RUNNERS, try_sandbox
from evaluator_host.engine.system.supervisor import Supervisor
from evaluator_host.types.errors import Misconfigured, SandboxLost, SandboxSlow, SandboxUnavailable, refusal_of
from evaluator_host.types.evaluator import Language, SandboxSpec

_ZONES: Final = Path("/usr/share/zoneinfo")
_EXIT_S: Final = 1.0
_SETUP_S: Final = 10.0  # longest time to wait for bubblewrap, in seconds; it answers within 5 ms
_MB: Final = 1024 * 1024
_TEMPLATES: Final = 3  # after this many failed templates, sandboxes start without a template
# numbers of backends: a process may have several backends, each with cgroups of its own
_BACKENDS: Final = itertools.count(1)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Ready:
    """Facts about this machine, gathered at the first start."""

    bwrap: doctor.Bubblewrap
    host: HostFiles
    seccomp: dict[bool, bytes]  # the compiled filters: one for sandboxes with network, one for those without
    cgroups: Cgroups | None

    def limits(self, controller: str) -> bool:
        """Return whether cgroups can enforce limits for `controller` (`memory`, `pids` or `cpu`)."""
        return self.cgroups is not None and controller in self.cgroups.controllers


class BubblewrapBackend(LocalBackend):
    """Starts sandboxes with bubblewrap, as a `base.Backend`."""

    name = "bubblewrap"

    def __init__(
        self,
        tools: LocalTools,
        pythons: Pythons | None = None,
        *,
        instance: str,  # name of this host process (`instance.this_instance`), part of the name of its cgroups
        supervisor: Supervisor | None = None,  # supervisor of the host, for the tasks of this backend
        start: SandboxStart = SandboxStart.FRESH,  # how sandboxes for Python start: fresh, or forked from a template
    ) -> None:
        super().__init__(tools, pythons)
        self._start = start
        self._others: dict[str, HostPython] = {}  # interpreters besides the host's own, by minor version
        self._lock = threading.Lock()  # lock for changes to `_others`
        self._templates: dict[str, Template] = {}  # templates, by interpreter
        self._failures = 0  # number of templates that failed
        self.instance = f"{instance}.{next(_BACKENDS)}"  # name of the folder that contains this backend's cgroups
        self._watchdog = Watchdog(supervisor)
        self._preparing: asyncio.Task[_Ready] | None = None

    async def start(self, spec: SandboxSpec) -> PipeLink:
        """Start a sandbox with all its limits, and return its link; the runner may still be starting.

        Raises:
          SandboxUnavailable: bubblewrap is missing, too old or refused; the detail says what to do.
          SandboxLost: something killed the sandbox while it started.
          IndexUnavailable: the first sandbox for JavaScript needs esbuild, and npm's registry does not answer.
        """
        await self._ensure_tools(spec.language)
        ready = await self._ready()
        if spec.environment.python not in (None, own_python().minor):
            ready = await asyncio.to_thread(self._with_python, ready, spec)
        identity = choose_identity()
        if self._forks(spec, identity):
            try:
                return await self._fork(spec, ready, identity=identity)
            except TemplateLost as error:
                _log.warning("%s; this sandbox starts without the template", error)
        try:
            if spec.language is not Language.PYTHON:
                doctor.require_program(self._tools.node)
            files = {**etc_files(identity), **(network_files() if spec.network else {})}
            with InheritedFds(seccomp=ready.seccomp[spec.network], files=files) as inherited:
                link, scope = self._spawn(spec, ready, identity=identity, inherited=inherited)
                try:
                    await self._confine(spec, ready, identity=identity, inherited=inherited, link=link, scope=scope)
                except BaseException:
                    await link.destroy()
                    raise
        except OSError as error:
            # another program has removed this backend's cgroup; the next start creates it again
            if isinstance(error, FileNotFoundError):
                self._preparing = None
            raise SandboxUnavailable(f"bubblewrap could not start a sandbox: {refusal_of(error)}") from error
        return link

    def _forks(self, spec: SandboxSpec, identity: Identity) -> bool:
        """Return whether to fork a sandbox from a template.

        A sandbox that needs folders of the host (packages, data files) is forked only if the host runs as root.
        """
        python = spec.language is Language.PYTHON and not spec.network
        possible = python and (identity.drop or not own_folders(spec))
        return possible and self._start is SandboxStart.TEMPLATE and self._failures < _TEMPLATES

    async def _fork(self, spec: SandboxSpec, ready: _Ready, *, identity: Identity) -> PipeLink:
        """Fork a sandbox from the template of its interpreter; start the template first if there is none.

        Raises:
          TemplateLost: the template does not work.
        """
        key = str(ready.host.python.executable)
        template = self._templates.get(key)
        if template is None or template.lost:
            dead, bwrap = template, ready.bwrap.path
            template = start_template(bwrap, ready.host, identity=identity, seccomp=ready.seccomp[False])
            self._templates[key] = template
            if dead is not None:
                await dead.close()
        order = {
            "disk_bytes": spec.disk_mb * _MB,
            "etc": {name: content.decode() for name, content in etc_files(identity).items()},
            "rlimits": list(_rlimits(spec, ready, identity).items()),
            "mounts": list(own_folders(spec)),
            "own_user": None if identity.drop else identity.uid,
            "arguments": runner_command(spec, ready.host, identity=identity)[len(python_command(ready.host)) :],
        }
        try:
            child = await template.fork(order, tuple(own_folders(spec).values()))
        except TemplateLost:
            self._failures += not template.works
            raise
        scope = BubblewrapProcesses(child, watchdog=self._watchdog)
        scope.hold(child.pid, child.pidfd)
        link = PipeLink(f"{spec.language.runner}-{next(self._numbers)}", child, scope=scope, wrapped=True)
        try:
            await self._enclose(child.pid, spec, ready, link=link, scope=scope)
        except BaseException:
            await link.destroy()
            raise
        return link

    async def findings(self) -> list[Finding]:
        """Check bubblewrap, limits and isolation, and start a sandbox as a test; return the findings for `doctor`."""
        try:
            ready = await self._ready()
        except SandboxUnavailable as error:
            return [Finding("bubblewrap", ok=False, detail=error.detail)]
        controllers = ready.cgroups.controllers if ready.cgroups is not None else ()
        version = ready.cgroups.version if ready.cgroups is not None else None
        tried = [await try_sandbox(self.start, one, backend=self.name, fix=doctor.remedy) for one in RUNNERS]
        held = doctor.confinement_findings() if tried[0].ok else []
        return [doctor.binary_finding(ready.bwrap), *tried, *held, doctor.limits_finding(version, controllers)]

    async def sweep(self) -> int:
        """Remove the cgroups of dead hosts, and kill orphaned sandboxes; return how many sandboxes were removed."""
        orphans = await asyncio.to_thread(kill_orphans)
        return orphans + await asyncio.to_thread(cgroups.sweep, cgroup_mounts())

    async def close(self) -> None:
        """End this host's templates, and remove its cgroup folders."""
        while self._templates:
            await self._templates.popitem()[1].close()
        if self._preparing is not None and self._preparing.done() and self._preparing.exception() is None:
            ready = self._preparing.result()
            if ready.cgroups is not None:
                ready.cgroups.close()
        self._preparing = None

    async def _ready(self) -> _Ready:
        made = self._preparing
        if made is None or (made.done() and (made.cancelled() or made.exception() is not None)):
            made = self._preparing = asyncio.ensure_future(self._prepare())
        return await asyncio.shield(made)

    async def _prepare(self) -> _Ready:
        bwrap = await doctor.find_bubblewrap()
        try:
            policy = read_policy()
            machine = platform.machine()
            seccomp = {
                False: compile_policy(policy, machine),
                True: compile_policy(without_unix_sockets(policy), machine),
            }
            host = self._find_host(bwrap)
            self._check_paths()
            await asyncio.to_thread(compile_runner, self._tools.runtimes / "python", own_python())
        except (OSError, ValueError, UnknownPolicy, Misconfigured) as error:
            raise SandboxUnavailable(f"bubblewrap sandboxes cannot be prepared: {error}") from error
        return _Ready(bwrap, host, seccomp, find_cgroups(self.instance))

    def _with_python(self, ready: _Ready, spec: SandboxSpec) -> _Ready:
        minor = spec.environment.python
        facts = self._pythons.find_version(minor) if minor is not None else None
        if facts is None:
            raise SandboxUnavailable(
                f"Python {minor} is no longer on this machine; install it again, or ask for another version"
            )
        with self._lock:
            if facts.minor not in self._others:
                compile_runner(self._tools.runtimes / "python", facts)
                self._others[facts.minor] = find_python(facts)
        return replace(ready, host=replace(ready.host, python=self._others[facts.minor]))

    def _check_paths(self) -> None:
        for path in (self._tools.node, self._tools.restricted, self._tools.runtimes):
            if not path.exists():
                raise FileNotFoundError(f"{path} does not exist; install the host again")

    def _find_host(self, bwrap: doctor.Bubblewrap) -> HostFiles:
        tools = self._tools
        return HostFiles(
            python=find_python(),
            libraries=find_libraries(),
            node=tools.node.resolve(),
            esbuild=tools.esbuild.resolve(),
            restricted=tools.restricted.resolve(),
            runtimes=tools.runtimes.resolve(),
            javascript=tools.javascript.resolve(),
            node_flags=tools.node_flags,
            zones=_ZONES if _ZONES.is_dir() else None,
            shell=tools.shell.resolve() if tools.shell is not None else None,
            python_with_node=tools.python_with_node,
            disable_userns=bwrap.can_disable_userns,
            masked_paths=masked_paths_on(),
        )

    def _spawn(
        self, spec: SandboxSpec, ready: _Ready, *, identity: Identity, inherited: InheritedFds
    ) -> tuple[PipeLink, BubblewrapProcesses]:
        arguments = bubblewrap_args(spec, ready.host, identity=identity, descriptors=inherited.descriptors)
        args = inherited.args(arguments)
        runner = runner_command(spec, ready.host, identity=identity)
        child = Child(
            [str(ready.bwrap.path), "--args", str(args), "--", *runner],
            env={},  # no variables of the host, because a sandbox can read them in /proc/1/environ
            pass_fds=inherited.child_fds,
        )
        inherited.hand_over()
        scope = BubblewrapProcesses(child, watchdog=self._watchdog)
        name = f"{spec.language.runner}-{next(self._numbers)}"
        return PipeLink(name, child, scope=scope, wrapped=True), scope

    async def _confine(
        self,
        spec: SandboxSpec,
        ready: _Ready,
        *,
        identity: Identity,
        inherited: InheritedFds,
        link: PipeLink,
        scope: BubblewrapProcesses,
    ) -> None:
        """Set the rlimits before the first process starts a child, and all other limits before guest code runs."""
        pid = await self._first_process(scope, inherited)
        if pid is None:
            raise await _refused(link)
        for kind, value in _rlimits(spec, ready, identity).items():
            # this fails if the process has ended, or if the host itself has a lower limit
            with contextlib.suppress(OSError, ValueError):
                lower_rlimit(pid, kind, value)
        inherited.go()
        await self._enclose(pid, spec, ready, link=link, scope=scope)

    async def _enclose(
        self, pid: int, spec: SandboxSpec, ready: _Ready, *, link: PipeLink, scope: BubblewrapProcesses
    ) -> None:
        """Put a sandbox into a cgroup, if possible; if cgroups cannot limit memory or processes, start the watchdog."""
        processes = process_limit(spec.language, spec.processes)
        if not (ready.limits(MEMORY) and ready.limits(PIDS)):
            scope.watch(Watch(pid, spec.memory_mb * _MB, processes, scope.kill))
        if ready.cgroups is not None:
            # random, because the guest sees the name, and a counter would show how many sandboxes the host starts
            name = secrets.token_hex(6)
            group = ready.cgroups.create(name, memory_mb=spec.memory_mb, processes=processes)
            await scope.limit(pid, group)
        if link.ended:
            raise await _refused(link)

    async def _first_process(self, scope: BubblewrapProcesses, inherited: InheritedFds) -> int | None:
        try:
            async with asyncio.timeout(_SETUP_S):
                pid = await inherited.first_process()
            if pid is not None:
                scope.hold(pid)
        except TimeoutError as error:
            raise SandboxSlow(
                f"bubblewrap did not set up a sandbox within {_SETUP_S:g} s: the machine is busy; try again"
            ) from error
        except ProcessLookupError:  # bubblewrap failed while it made the mounts
            return None
        return pid


def _rlimits(spec: SandboxSpec, ready: _Ready, identity: Identity) -> dict[int, int]:
    node = ready.host.python_with_node
    return sandbox_rlimits(spec, memory=not ready.limits(MEMORY), own_user=identity.drop, node=node)


async def _refused(link: PipeLink) -> SandboxUnavailable | SandboxLost:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_EXIT_S):
            # at the end of the output, bubblewrap has ended, so its exit code and its message are known
            while await link.read():
                pass
    exit_status = await link.destroy()
    if exit_status.signal is not None:
        return SandboxLost(f"something killed a sandbox while it started (signal {exit_status.signal}); try again")
    return SandboxUnavailable(doctor.advice(exit_status.stderr_tail))
