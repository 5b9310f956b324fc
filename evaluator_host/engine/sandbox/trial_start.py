"""Starts a sandbox with each runner for `doctor`, on any backend."""

from collections.abc import Awaitable, Callable
from typing import Final

from evaluator_host.engine.sandbox.base import Finding, Link
from evaluator_host.engine.sandbox.session import SEE_DOCTOR, Sandbox
from evaluator_host.types.errors import HostError, IndexUnavailable, MachineExhausted, SandboxLost, SandboxSlow
from evaluator_host.types.evaluator import Environment, Language, SandboxSpec

# one language for each runner; TypeScript has the same runner as JavaScript
RUNNERS: Final = (Language.PYTHON, Language.JAVASCRIPT)
TRIED: Final = " sandbox"  # suffix of the names of all findings from `try_sandbox`
_TRIES: Final = 2
_PASSES: Final = (
    "check what else uses the processor (`top`) or kills processes (`dmesg`), and try again; a running host tries "
    "again by itself"
)


async def try_sandbox(
    start: Callable[[SandboxSpec], Awaitable[Link]], language: Language, *, backend: str, fix: Callable[[str], str]
) -> Finding:
    """Start a sandbox (try again if the machine is busy); return the `doctor` finding on whether the runner answered.

    Args:
      start: The method `Backend.start`; its errors say what to do.
      language: Language of the runner to start.
      backend: Name of the backend.
      fix: Returns advice for a runner that did not answer; called with the end of the runner's standard error.
    """
    name, spec = f"{language}{TRIED}", SandboxSpec(language, Environment("", language, ""))
    said = ""
    for _ in range(_TRIES):
        try:
            with MachineExhausted.refused("start a sandbox"):
                sandbox = Sandbox(await start(spec), backend=backend, spec=spec, grace_s=0.0)
            await sandbox.greet()
            await sandbox.destroy()
            return Finding(name, ok=True, detail=f"starts: {sandbox.runtime}")
        except HostError as error:
            said = error.detail.removesuffix(f" {SEE_DOCTOR}")
            if isinstance(error, IndexUnavailable):  # without esbuild a host still starts, but serves only Python
                return Finding(f"{language} tools", ok=False, detail=said)
            if not isinstance(error, SandboxSlow | SandboxLost):
                return Finding(name, ok=False, detail=said, fix=fix(said) if said != error.detail else None)
    return Finding(name, ok=False, detail=said, fix=_PASSES)
