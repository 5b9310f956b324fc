"""Runs helper programs (uv, npm, node, bwrap) with limits on time and output, and leaves none of them running."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

OUTPUT_BYTES: Final = 16 * 1024 * 1024  # maximum number of bytes in the output; a lock of 2,000 packages is about 4 MB
PLAIN_PATH: Final = "/usr/bin:/bin"
# descriptors for the child's three streams and for the pipe that reports its start, with some to spare
_START_DESCRIPTORS: Final = 10


# Program that starts another one, which the kernel kills when this host ends (1 is PR_SET_PDEATHSIG).
_BOUND: Final = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.getppid() == int(sys.argv[1]) or os._exit(1); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run, and its arguments and environment.

    Attributes:
      environment: Environment variables besides PATH and LANG. Never show them, because they may contain
        credentials.
      stdin: Bytes for its standard input.
    """

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(repr=False)
    stdin: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Finished:
    """The exit code and the output of a program that has ended; undecodable bytes are replaced."""

    code: int
    stdout: str
    stderr: str


Run: TypeAlias = Callable[[Command, float], Awaitable[Finished]]
"""A function that runs a command within a number of seconds: `run`, or a function that uses a build sandbox."""


class OutputFlood(Exception):
    """A program wrote more than `OUTPUT_BYTES` and was killed."""


class LimitReached(Exception):
    """A program was killed at a limit of memory, processes or disk; the message says which limit."""


async def start_process(*argv: str, **options: Any) -> asyncio.subprocess.Process:
    """Start a process as `asyncio.create_subprocess_exec` does, after checking that enough descriptors are free.

    Without the check, uvloop would leak descriptors if too few were free, and report "Unknown error -1".

    Raises:
      OSError: the process cannot be started, or there are too few descriptors.
    """
    with contextlib.ExitStack() as held:
        for _ in range(_START_DESCRIPTORS):
            held.enter_context(socket.socket())
    return await asyncio.create_subprocess_exec(*argv, **options)


async def run(command: Command, timeout_s: float | None, *, started: Callable[[int], None] | None = None) -> Finished:
    """Run a command in its own process group and return its output; at the end, kill all processes of the group.

    Args:
      command: Program, arguments, folder and environment.
      timeout_s: Wall-clock seconds for the whole command; None for no limit.
      started: Called with the process id when the program has started.

    Raises:
      OSError: the command cannot be started.
      TimeoutError: the command did not end within `timeout_s`.
      OutputFlood: the command wrote more than `OUTPUT_BYTES` to one stream.
    """
    process = await start_process(
        *command.argv,
        cwd=command.cwd,
        env={"PATH": PLAIN_PATH, "LANG": "C.UTF-8", **command.environment},
        stdin=asyncio.subprocess.PIPE if command.stdin else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        if started is not None:
            started(process.pid)
        async with asyncio.timeout(timeout_s):
            stdout, stderr = await _communicate(process, command.stdin)
            code = await process.wait()
    finally:
        await _end(process)
    return Finished(code, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))


def bound(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command line that starts the program `argv`, whose first item is a path, and ends it with this host.

    Starting takes 20 ms longer.
    """
    return sys.executable, "-I", "-S", "-c", _BOUND, str(os.getpid()), *argv


async def _communicate(process: asyncio.subprocess.Process, stdin: bytes) -> tuple[bytes, bytes]:
    readers = [asyncio.create_task(_read(stream)) for stream in (process.stdout, process.stderr) if stream]
    try:
        if process.stdin is not None:
            # the program may end without reading all its input
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                process.stdin.write(stdin)
                await process.stdin.drain()
            process.stdin.close()
        stdout, stderr = await asyncio.gather(*readers)
    finally:
        for reader in readers:
            reader.cancel()
    return stdout, stderr


async def _read(stream: asyncio.StreamReader) -> bytes:
    kept = bytearray()
    while chunk := await stream.read(65_536):
        kept += chunk
        if len(kept) > OUTPUT_BYTES:
            raise OutputFlood
    return bytes(kept)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the whole process group, even if its leader has ended, because a child of the leader may still run."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    # Close before `wait`, which only returns once the pipes are closed too; a pipe that is not read to its end never
    # closes.
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
    await asyncio.shield(process.wait())
