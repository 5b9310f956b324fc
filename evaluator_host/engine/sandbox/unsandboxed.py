"""The `none` backend: runs the runner as a plain process of this user, without isolation; only for your own code."""

import asyncio
import contextlib
import os
import signal
import tempfile
from pathlib import Path
from typing import Final

from evaluator_host.engine.sandbox.base import Finding, Weight
from evaluator_host.engine.sandbox.bubblewrap.policy import ENVIRONMENT
from evaluator_host.engine.sandbox.linux.child import Child
from evaluator_host.engine.sandbox.linux.instance import remove_abandoned, this_instance
from evaluator_host.engine.sandbox.linux.watchdog import used_bytes
from evaluator_host.engine.sandbox.local import LocalBackend
from evaluator_host.engine.sandbox.pipe_link import PipeLink
from evaluator_host.engine.sandbox.pythons import own_python
from evaluator_host.engine.system.tree import remove
from evaluator_host.types.errors import Misconfigured, SandboxUnavailable
from evaluator_host.types.evaluator import Language, SandboxSpec

_PREFIX: Final = "evaluator-host-"


class UnsandboxedBackend(LocalBackend):
    """A `base.Backend` that starts runners without a sandbox. Only the limits that the runner itself enforces apply."""

    name = "none"

    async def start(self, spec: SandboxSpec) -> PipeLink:
        """Start a runner as a plain process, and return its link."""
        await self._ensure_tools(spec.language)
        scratch = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{this_instance()}_"))
        environment = {**ENVIRONMENT, "HOME": str(scratch), "TMPDIR": str(scratch), "PATH": os.defpath}
        try:
            child = Child(self._command(spec), env=environment, cwd=str(scratch))
        except (OSError, Misconfigured) as error:
            remove(scratch)
            raise SandboxUnavailable(f"the process for user code could not be started: {error}") from error
        name = f"{spec.language.runner}-{next(self._numbers)}"
        return PipeLink(name, child, scope=_ProcessGroup(child, scratch), wrapped=False)

    async def findings(self) -> list[Finding]:
        """Return the findings of `doctor` for this backend."""
        detail = "user code runs as this user, and can use this user's files and network"
        return [
            Finding("none", ok=False, detail=detail, fix="use the sandbox bubblewrap or docker for other people's code")
        ]

    async def sweep(self) -> int:
        """Remove temporary folders of dead hosts; return how many."""
        return await asyncio.to_thread(remove_abandoned, _PREFIX)

    async def close(self) -> None:
        """Do nothing: this backend has nothing to release."""

    def _command(self, spec: SandboxSpec) -> list[str]:
        tools, runner = self._tools, self._tools.runtimes / spec.language.runner
        if spec.language is Language.PYTHON:
            minor = spec.environment.python
            facts = own_python() if minor is None else self._pythons.find_version(minor)
            if facts is None:
                raise Misconfigured(
                    f"Python {minor} is no longer on this machine; install it again, or ask for another version"
                )
            command = [str(facts.executable), "-I", "-S", "-B", "-X", "utf8", str(runner / "runner.py")]
            command += ["--restricted", str(tools.restricted)]
        else:
            command = [str(tools.node), *tools.node_flags, str(tools.javascript / "runner.cjs")]
            command += ["--esbuild", str(tools.esbuild)]
        if spec.environment.path is not None:
            command += ["--packages", str(spec.environment.path)]
        if spec.data is not None:
            command += ["--data", str(spec.data.path)]
        if spec.stand_in is not None:
            command += ["--sdk", str(runner / spec.stand_in.folder)]
        return command


class _ProcessGroup:
    """The runner's process group, as a `pipe_link.ProcessScope`.

    It does not include processes that have left the group.
    """

    def __init__(self, child: Child, scratch: Path) -> None:
        self._child = child
        self._scratch = scratch
        self.first_pid: int | None = child.pid

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)

    async def gone(self) -> None:
        await self._child.exited.wait()

    def memory_events(self) -> int:
        return 0

    def used_bytes(self) -> int | None:
        return used_bytes(self._child.pid)

    def weigh(self, weight: Weight) -> None:
        pass

    def pids_hit(self, *, killed: bool = False) -> bool:  # noqa: ARG002 - nothing is counted here
        return False

    async def remove(self) -> None:
        await asyncio.to_thread(remove, self._scratch)
