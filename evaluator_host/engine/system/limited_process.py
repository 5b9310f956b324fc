"""Runs functions on untrusted data in child processes, so that data cannot stop the host or fill its memory.

A child has none of the host's environment variables and descriptors, and each call has limits of processor time and
memory. A child serves one call after another. A child is replaced if it was killed, has served many calls or has grown.
Arguments are pickled, but answers are bytes or JSON, because malicious data may have taken over the child. Children end
when the host ends.
"""

import asyncio
import logging
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from signal import SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGXCPU
from typing import Any, Final, Self

from evaluator_host.engine.system.child_watch import until_it_moves
from evaluator_host.engine.system.limited_child import REPLY, REQUEST, AnswerKind
from evaluator_host.engine.system.processes import PLAIN_PATH, start_process
from evaluator_host.engine.system.supervisor import Supervisor
from evaluator_host.engine.system.turns import Turns
from evaluator_host.types.errors import (
    InvalidRequest,
    LimitExceeded,
    MachineExhausted,
    OutOfMemory,
    OutOfProcessorTime,
    Problem,
    TooLarge,
)
from evaluator_host.types.json_values import aside, decode_json

WAITING_CALLS: Final = 32  # maximum number of calls of one workspace that may wait
_IDLE_S: Final = 120.0
_WALL_PER_CPU: Final = 60  # wall-clock seconds for each second of processor time: children have a low priority
_LOOK_S: Final = 0.01
_LOOKS: Final = 500
_MESSAGE_BYTES: Final = 1 << 20
_PIECE_BYTES: Final = 1 << 20  # write at most this many bytes of a request at once
_PACKAGES: Final = str(Path(__file__).resolve().parents[3])  # folder that contains the package evaluator_host
_REFUSALS: Final = {one.code: one for one in (InvalidRequest, TooLarge, MachineExhausted)}
# these variables keep threads and allocators from reserving address space, which counts towards the memory limit
_ENVIRONMENT: Final = {
    "PATH": PLAIN_PATH,
    "LANG": "C.UTF-8",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 20),
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    # the interpreter may need this variable
    **{name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
}
_CRASHES: Final = (SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits of one call in a child process."""

    cpu_s: int = 10  # maximum processor time of all threads together, in whole seconds
    memory_mb: int = 512  # maximum MB of address space that the call may add to the child
    file_bytes: int = 0  # maximum size, in bytes, of a file that the function writes; 0 if it writes no files
    argument_bytes: int = 64 << 20  # maximum size in bytes of the pickled function and arguments
    result_bytes: int = 64 << 20  # maximum size in bytes of the result, or of its JSON
    # modules that the function imports, whose own memory does not count towards the limit
    modules: tuple[str, ...] = ()


_DEFAULT: Final = CallLimits()


class LimitedProcesses:
    """The limited child processes of one host. Workspaces take turns, and each workspace has one call at a time.

    Args:
      most: Maximum number of children at a time; by default one for each processor, and at least two.
      short: Number of further children only for short calls, so that these do not wait for long calls.
      supervisor: It gets the names of child processes that hang. None creates a new supervisor.
    """

    def __init__(self, *, most: int | None = None, short: int = 0, supervisor: Supervisor | None = None) -> None:
        self._supervisor = supervisor or Supervisor()
        self._turns = Turns(most or max(2, os.cpu_count() or 2), each=1, queue_limit=WAITING_CALLS)
        self._short_turns = Turns(short, each=1, queue_limit=WAITING_CALLS) if short else self._turns
        self._idle: list[_Child] = []
        self._started: set[_Child] = set()

    async def __aenter__(self) -> Self:
        """Return this object. The end of the `with` block ends the child processes."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all children."""
        await self.close()

    async def call(
        self,
        workspace: str,
        function: Callable[..., Any],
        *args: Any,
        limits: CallLimits = _DEFAULT,
        short: bool = False,
    ) -> Any:
        """Return the result of a function that runs in a child process.

        Args:
          workspace: The workspace whose data the function reads.
          function: A function at the top level of a module, which returns bytes or a JSON value. If it raises
            `InvalidRequest`, `TooLarge` or `MachineExhausted`, this method raises the same error; any other exception
            is a fault of the host.
          args: Values that can be pickled; pass large ones as bytes, because pickling keeps the event loop busy.
          limits: The limits of this call.
          short: Whether the call takes seconds at most, and so may use the children for short calls.

        Raises:
          OutOfProcessorTime: the function needs more processor time than `limits.cpu_s`.
          OutOfMemory: the function needs more memory than `limits.memory_mb`.
          LimitExceeded: the result is larger than `limits.result_bytes`, or the data crashed a native parser.
          TooLarge: the arguments are larger than `limits.argument_bytes`.
          Busy: 32 calls of this workspace are already waiting.
          MachineExhausted: no child can be started, or the machine killed two children in a row.
        """
        large = [arg for arg in args if isinstance(arg, bytes) and len(arg) > _PIECE_BYTES]
        kept = tuple(pickle.PickleBuffer(arg) if any(arg is one for one in large) else arg for arg in args)
        call = pickle.dumps((function, kept), pickle.HIGHEST_PROTOCOL, buffer_callback=lambda _: None)
        request = (" ".join(limits.modules).encode(), call, *large)
        if sum(map(len, request)) > limits.argument_bytes:
            raise TooLarge(f"the data is over the limit of {limits.argument_bytes >> 20} MB; send it in parts")
        async with (self._short_turns if short else self._turns).turn(workspace):
            try:
                return await self._exchange(request, limits)
            except _Lost as lost:
                _log.warning("a process that reads callers' data was lost (%s); the call is repeated once", lost)
            try:
                return await self._exchange(request, limits)
            except _Lost as lost:
                raise MachineExhausted(f"the process that reads the data was lost twice ({lost}); try again") from lost

    async def close(self) -> None:
        """End all children."""
        for child in list(self._started):
            await self._end(child)

    async def _exchange(self, request: tuple[bytes, ...], limits: CallLimits) -> Any:
        child = self._idle.pop() if self._idle else await self._start()
        reusable, pid = False, child.process.pid
        name = f"process {pid}, which reads callers' data"
        try:
            async with (
                self._supervisor.watching(name, lambda: pid, partial(until_it_moves, pid)),
                asyncio.timeout(_WALL_PER_CPU * limits.cpu_s),
            ):
                kind, reusable, body = await child.exchange(request, limits)
        except TimeoutError as error:
            raise MachineExhausted("this machine is too busy to read the data; try again later") from error
        finally:
            if reusable:
                self._idle.append(child)
                child.idle = asyncio.get_running_loop().call_later(_IDLE_S, self._retire, child)
            else:
                await asyncio.shield(self._end(child))
        return await aside(body, _result, kind, body, limits)

    async def _start(self) -> "_Child":
        try:
            process = await start_process(
                *(sys.executable, "-s", "-P", "-m", "evaluator_host.engine.system.limited_child", str(os.getpid())),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd="/",
                env={**_ENVIRONMENT, "PYTHONPATH": os.pathsep.join((_PACKAGES, *filter(None, sys.path)))},
                start_new_session=True,  # Ctrl-C in a terminal is meant for the host alone
            )
        except OSError as error:
            raise MachineExhausted.by(error, doing="start a process that reads the data") from error
        child = _Child(process)
        self._started.add(child)
        return child

    def _retire(self, child: "_Child") -> None:
        self._idle.remove(child)
        child.process.kill()  # `close` or the event loop reaps the child

    async def _end(self, child: "_Child") -> None:
        self._started.discard(child)
        if child in self._idle:
            self._idle.remove(child)
        await child.end()


class _Lost(Exception):
    """A child ended, but not because of its limits or its data."""


class _Child:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.idle: asyncio.TimerHandle | None = None

    async def exchange(self, request: tuple[bytes, ...], limits: CallLimits) -> tuple[bytes, bool, bytes]:
        """Send a pickled call and its large arguments; return the answer.

        The answer consists of its kind, whether the child can serve another call, and its bytes.
        """
        if self.idle is not None:
            self.idle.cancel()
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None  # noqa: S101 - both are pipes
        assert stdout is not None  # noqa: S101
        memory_bytes = limits.memory_mb << 20
        head = REQUEST.pack(len(request), limits.cpu_s, memory_bytes, limits.file_bytes, limits.result_bytes)
        try:
            stdin.write(head + b"".join(len(part).to_bytes(8) for part in request))
            for part in request:
                for start in range(0, len(part), _PIECE_BYTES):
                    stdin.write(memoryview(part)[start : start + _PIECE_BYTES])
                    await stdin.drain()
            kind, reusable, size = REPLY.unpack(await stdout.readexactly(REPLY.size))
            if size > max(limits.result_bytes, _MESSAGE_BYTES):
                return AnswerKind.LARGE, False, b""
            return kind, reusable, await stdout.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return await self._death(), False, b""

    async def end(self) -> None:
        if self.idle is not None:
            self.idle.cancel()
        # Close before `wait`, which only returns once the pipes are closed too; a pipe that is not read to its end
        # never closes.
        self.process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
        await self.process.wait()

    async def _death(self) -> bytes:
        for _ in range(_LOOKS):  # after the transport was closed, asyncio may not learn the exit status
            if self.process.returncode is not None:
                break
            await asyncio.sleep(_LOOK_S)
        await self.end()
        code = self.process.returncode or 0
        if code == -SIGXCPU:
            return AnswerKind.PROCESSOR_TIME
        if -code in _CRASHES:
            return AnswerKind.CRASH
        raise _Lost(f"exit code {code}")


def _result(kind: bytes, body: bytes, limits: CallLimits) -> Any:
    """Return the value in a child's answer, or raise the error that the answer reports."""
    match kind:
        case AnswerKind.BYTES:
            return body
        case AnswerKind.JSON:
            return decode_json(body)
        case AnswerKind.REFUSED:
            refused = decode_json(body)
            problems = tuple(Problem(**problem) for problem in refused["problems"])
            raise _REFUSALS.get(refused["code"], InvalidRequest)(refused["detail"], problems=problems)
        case AnswerKind.PROCESSOR_TIME:
            raise OutOfProcessorTime(
                f"reading the data takes more than {limits.cpu_s} s of processor time; send less at once"
            )
        case AnswerKind.MEMORY:
            raise OutOfMemory(f"reading the data takes more than {limits.memory_mb} MB of memory; send less at once")
        case AnswerKind.LARGE:
            raise LimitExceeded(
                f"the data would take more than {limits.result_bytes >> 20} MB once it is read; send less at once"
            )
        case AnswerKind.CRASH:
            raise LimitExceeded(
                f"the program that reads the data crashed ({limits.memory_mb} MB of memory); check that the data "
                "is complete, or send less at once"
            )
        case _:
            raise RuntimeError(f"a function failed in a limited process: {body.decode(errors='replace')}")
