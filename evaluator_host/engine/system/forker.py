"""Forks the worker processes of a host, and carries calls between them and the host.

The process that forks the workers is itself forked from the host. This happens before the host has an event loop or
threads, because a fork may leave locks of threads locked forever. A worker shares the memory of modules that the host
has imported, and starts in milliseconds. All workers end when the host ends in any way, but not when the process that
forked them ends. The processes trust each other.
"""

import asyncio
import fcntl
import importlib
import logging
import os
import pickle
import select
import signal
import socket
import sys
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NoReturn, Self, cast

from evaluator_host.engine.system.processes import start_process
from evaluator_host.types.errors import HostError, MachineExhausted

_REQUEST_BYTES: Final = 1 << 17
_PID_BYTES: Final = 32
_HEAD_BYTES: Final = 8
_PING: Final = b"?"
_CALL, _TELL, _ANSWER, _ERROR, _CANCEL, _ASK = range(6)

_log = logging.getLogger(__name__)


class ChannelClosed(Exception):
    """The process at the other end has ended."""


class ForkerEnded(Exception):
    """The process that forks workers has ended."""


class Forker:
    """Starts worker processes; they end when this object is closed, or the host ends.

    Create this object before the process has threads.

    If the process that forks workers ends, the workers go on, and a new interpreter takes its place.

    Attributes:
      pid: Id of the process that forks workers.
    """

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._turn = asyncio.Lock()
        self._closed = False
        self._reaped = 0
        self._again: asyncio.subprocess.Process | None = None
        self._host_lives, self._lifeline = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._socket.close()
            os.close(self._lifeline)
            try:
                _fork_workers(theirs, self._host_lives)
            finally:
                os._exit(1)  # this process must never continue as a second host
        theirs.close()
        self._socket.settimeout(0)

    def close(self) -> None:
        """End all workers."""
        if not self._closed:
            os.close(self._lifeline)
            os.close(self._host_lives)
        self._closed = True
        self._socket.close()

    async def fork(self, work: Callable[..., object], *args: Any) -> tuple[int, socket.socket]:
        """Start a process that calls `work(channel, *args)`; return its process id and our end of `channel`.

        Args:
          work: A function at the top level of a module.
          args: Values that can be pickled.

        Raises:
          MachineExhausted: this machine cannot start another process now.
          ForkerEnded: this object was closed.
        """
        forking = asyncio.ensure_future(self._fork(pickle.dumps((work, args)), work.__module__))
        try:
            return await asyncio.shield(forking)
        except asyncio.CancelledError:
            forking.add_done_callback(_drop)
            raise

    async def rest(self) -> None:
        """End the process that forks workers.

        Another one starts when it is needed, which takes about a second.
        """
        async with self._turn:
            self._end_lost()

    async def ping(self) -> None:
        """Wait until the process that forks workers has answered or ended."""
        with suppress(ForkerEnded):
            await asyncio.shield(self._in_turn(_PING))

    async def _fork(self, request: bytes, module: str) -> tuple[int, socket.socket]:
        with MachineExhausted.refused("open a connection to another process of the host"):
            own, theirs = socket.socketpair()
        try:
            with theirs:
                pid = await self._asked(request, theirs.fileno(), module)
            if pid < 0:
                raise MachineExhausted.by(OSError(-pid, os.strerror(-pid)), doing="start a worker")
        except BaseException:
            own.close()
            raise
        return pid, own

    async def _asked(self, request: bytes, channel: int, module: str) -> int:
        known = self.pid
        try:
            return await self._in_turn(request, channel)
        except ForkerEnded:
            if self._closed:
                raise
        await self._start_again(module, known)
        try:
            return await self._in_turn(request, channel)
        except ForkerEnded as error:
            raise MachineExhausted(
                "the process that starts the host's other processes was lost twice in a row; try again"
            ) from error

    async def _in_turn(self, request: bytes, *descriptors: int) -> int:
        async with self._turn:
            if self._closed:
                raise ForkerEnded
            try:
                socket.send_fds(self._socket, [request], descriptors)
                return int(await asyncio.get_running_loop().sock_recv(self._socket, _PID_BYTES))
            except (OSError, ValueError) as error:
                raise ForkerEnded from error

    async def _start_again(self, module: str, lost: int) -> None:
        """Start another process that forks workers, unless the ended process `lost` was replaced already.

        The new process imports `module`, which workers need.
        """
        async with self._turn:
            if self.pid != lost:
                return
            rested = self._reaped == self.pid
            self._end_lost()
            self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._socket.settimeout(0)
            program = (
                f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import fork_workers; "
                f"fork_workers({theirs.fileno()}, {self._host_lives}, {module!r})"
            )
            argv, null = (sys.executable, "-P", "-c", program), asyncio.subprocess.DEVNULL
            with theirs, MachineExhausted.refused("create the process that starts the host's other processes"):
                passed = (theirs.fileno(), self._host_lives)
                self._again = await start_process(*argv, stdin=null, pass_fds=passed)
            self.pid = self._again.pid
            if not rested:
                _log.warning(
                    "the process that starts the host's other processes was lost; process %d replaces it", self.pid
                )

    def _end_lost(self) -> None:
        self._socket.close()
        if self._reaped == self.pid:
            return
        self._reaped = self.pid
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if self._again is None:  # the event loop reaps only the processes that have replaced the first one
            os.waitpid(self.pid, 0)


def _drop(forking: "asyncio.Future[tuple[int, socket.socket]]") -> None:
    """End a worker whose caller no longer waits for it."""
    if not forking.cancelled() and forking.exception() is None:
        forking.result()[1].close()


def fork_workers(requests: int, host_lives: int, module: str) -> NoReturn:
    """In a new interpreter, import a module that workers need, then fork a worker for each request from a socket."""
    importlib.import_module(module)
    _fork_workers(socket.socket(fileno=requests), host_lives)


def _fork_workers(requests: socket.socket, host_lives: int) -> NoReturn:
    os.setsid()  # Ctrl-C in a terminal is meant for the host alone
    # A service manager may send these signals to all processes; only the host acts on them. Programs that workers start
    # do not ignore them.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ignore)
    _end_with_host(host_lives)
    while True:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps workers that have ended
        request, channel, _, _ = socket.recv_fds(requests, _REQUEST_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
        if not request:
            os._exit(0)
        if request == _PING:
            requests.send(b"0")
            continue
        try:
            pid = os.fork()
        except OSError as error:
            pid = -(error.errno or 1)
        if pid == 0:
            requests.close()
            _end_with_host(host_lives)
            _work(request, *channel)
        os.close(*channel)
        requests.send(str(pid).encode())


def _work(request: bytes, channel: int) -> NoReturn:
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        work, args = pickle.loads(request)  # noqa: S301 - from the host
        work(socket.socket(fileno=channel), *args)
        code = 0
    except BaseException:  # noqa: BLE001 - told as the interpreter does
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _end_with_host(host_lives: int) -> None:
    """Make the kernel kill this process when the host ends and the other end of the pipe `host_lives` is closed."""
    # open the pipe again, because only one process can get the signals of an open file
    own = os.open(f"/proc/self/fd/{host_lives}", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(own, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(own, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
    if select.select([own], [], [], 0)[0]:
        os._exit(0)  # the host ended before this process could receive the signal


def _ignore(*_: object) -> None:
    """Do nothing on a signal.

    This is used instead of SIG_IGN, which programs that this process starts would inherit.
    """


class Channel(asyncio.Protocol):
    """Carries calls between two processes of one host over a socket; both may call. Bound to one event loop.

    Args:
      answer: Called with the name and arguments of each call from the other process; the result or exception is sent
        back.

    Attributes:
      ended: Set when the other process has ended, or this channel was closed.
    """

    def __init__(self, answer: Callable[[str, tuple[Any, ...]], Awaitable[Any]]) -> None:
        self._answer = answer
        self._received = bytearray()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._answering: dict[int, asyncio.Task[None]] = {}
        self._last = 0
        self.ended = asyncio.Event()
        self._transport: asyncio.Transport | None = None

    async def over(self, end: socket.socket) -> Self:
        """Begin to communicate over a connected socket; return this channel."""
        await asyncio.get_running_loop().create_connection(lambda: self, sock=end)
        return self

    async def call(self, name: str, *args: Any) -> Any:
        """Call the other process and return its answer.

        If this call is cancelled, it is cancelled in the other process too.

        Raises:
          ChannelClosed: the other process has ended, perhaps before it answered.
          HostError: the exception of the other process's function.
          RecursionError: an argument is nested too deeply to be sent.
        """
        return await self._asked(_CALL, (name, args))

    async def ping(self) -> None:
        """Wait until the event loop of the other process has answered, or that process has ended."""
        with suppress(ChannelClosed):
            await self._asked(_ASK, None)

    def tell(self, name: str, *args: Any) -> None:
        """Call the other process without waiting for an answer; do nothing if that process has ended."""
        self._last += 1
        self._send(self._last, _TELL, (name, args))

    def close(self) -> None:
        """Close the channel; waiting calls raise `ChannelClosed`, and are cancelled in the other process."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, through which this object sends messages."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Collect bytes, and handle the messages that are complete."""
        self._received += data
        at, received = 0, self._received
        while len(received) >= at + _HEAD_BYTES:
            end = at + _HEAD_BYTES + int.from_bytes(received[at : at + _HEAD_BYTES])
            if len(received) < end:
                break
            self._take(*pickle.loads(received[at + _HEAD_BYTES : end]))  # noqa: S301 - from this host
            at = end
        del received[:at]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio names it
        """Raise `ChannelClosed` in the calls that wait for an answer, and cancel calls from the other process."""
        self.ended.set()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ChannelClosed())
        for task in self._answering.values():
            task.cancel()

    async def _asked(self, kind: int, content: Any) -> Any:
        if self.ended.is_set():
            raise ChannelClosed
        self._last = number = self._last + 1
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._send(number, kind, content)
            return await future
        except asyncio.CancelledError:
            self._send(number, _CANCEL, None)
            raise
        finally:
            self._waiting.pop(number, None)

    def _take(self, number: int, kind: int, content: Any) -> None:
        if kind in (_CALL, _TELL):
            task = asyncio.get_running_loop().create_task(self._give(number, kind, *content))
            self._answering[number] = task
            task.add_done_callback(lambda _: self._answering.pop(number))
        elif kind == _ASK:
            self._send(number, _ANSWER, None)
        elif kind == _CANCEL:
            if (running := self._answering.get(number)) is not None:
                running.cancel()
        elif (future := self._waiting.get(number)) is not None and not future.done():
            if kind == _ANSWER:
                future.set_result(content)
            else:
                future.set_exception(content)

    async def _give(self, number: int, kind: int, name: str, args: tuple[Any, ...]) -> None:
        try:
            answer = (number, _ANSWER, await self._answer(name, args))
        except HostError as error:
            answer = (number, _ERROR, error)
        except Exception as error:  # noqa: BLE001 - a caller that nobody answers would wait for ever
            _log.error("a call from another process of this host failed", exc_info=error)
            answer = (number, _ERROR, HostError("the host has an internal fault; its log has the details"))
        if kind == _CALL:
            self._send(*answer)

    def _send(self, number: int, kind: int, content: Any) -> None:
        if self._transport is not None and not self.ended.is_set():
            message = pickle.dumps((number, kind, content), pickle.HIGHEST_PROTOCOL)
            self._transport.writelines((len(message).to_bytes(_HEAD_BYTES), message))
