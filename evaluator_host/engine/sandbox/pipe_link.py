"""The link to a sandbox over pipes to a child process, and the steps to end this sandbox.

The link uses pipes, because a runner can reopen pipes through /proc, but cannot reopen sockets. The link reads and
writes the descriptors directly: a warm call is one small write and one small read, and a layer in between would make it
measurably slower.
"""

import asyncio
import fcntl
import logging
import os
import signal
import termios
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol

from evaluator_host.engine.sandbox.base import Weight
from evaluator_host.engine.sandbox.exit_status import ExitStatus
from evaluator_host.engine.sandbox.linux.child import Child, ForkedChild
from evaluator_host.engine.sandbox.linux.work_clock import Look, Starved, look_at, within
from evaluator_host.types.errors import refusal_of
from evaluator_host.types.json_texts import Octets

# maximum number of bytes per read: as many as a pipe holds; with a larger buffer, malloc would map new pages each time
_READ_BYTES: Final = 64 * 1024
_QUEUE_BYTES: Final = 1024 * 1024  # how many bytes may be queued before `drain` waits
_STDERR_BYTES: Final = 8 * 1024
# how long a runner that closed its channel gets to exit by itself, in seconds, so that its exit code is known
_EXIT_CODE_S: Final = 0.5
# how long to wait for a killed process to end, in seconds; one that takes longer hangs in the kernel
_KILL_S: Final = 60.0

_log = logging.getLogger(__name__)


class ProcessScope(Protocol):
    """All processes of a sandbox, found by its namespaces and cgroup, or by its process group."""

    first_pid: int | None

    def kill(self) -> None:
        """Send SIGKILL to every process of the sandbox."""
        ...

    async def gone(self) -> None:
        """Wait until no process of the sandbox is left."""
        ...

    def memory_events(self) -> int:
        """Return how many processes were killed at the memory limit."""
        ...

    def used_bytes(self) -> int | None:
        """Return the bytes of memory that the processes use now, or None if the number is unknown."""
        ...

    def weigh(self, weight: Weight) -> None:
        """Set the processes' CPU weight; do nothing without a cgroup."""
        ...

    def pids_hit(self, *, killed: bool = False) -> bool:
        """Return whether the process limit made the sandbox end.

        Return False if SIGKILL ended the sandbox (`killed`), even if forks were refused.
        """
        ...

    async def remove(self) -> None:
        """Remove the sandbox's cgroup, directory and descriptors; call it once no process is left."""
        ...


class PipeLink:
    """A `base.Link` over a child's pipes. Only one task may read; any may write.

    Args:
      link_id: Name of the sandbox.
      child: The process at the other end.
      scope: The child, and all processes that it starts.
      wrapped: Whether the child is a wrapper around the runner. If a signal ends the runner, the wrapper exits with
        code 128 plus the number of the signal. No guest can kill the wrapper. So if a signal ends the wrapper itself,
        the sandbox was lost.
    """

    far = False

    def __init__(self, link_id: str, child: Child | ForkedChild, *, scope: ProcessScope, wrapped: bool) -> None:
        self._id = link_id
        self._child = child
        self._scope = scope
        self._wrapped = wrapped
        self._kills_known = 0  # number of kills at the memory limit that were counted while the sandbox still ran
        self._loop = asyncio.get_running_loop()
        self._queue: deque[memoryview] = deque()
        self._queued = 0
        self._room = asyncio.Event()
        self._room.set()
        self._unwritable = False
        self._eof = False
        self._spoke = False  # whether the runner has sent a byte yet
        self._watching = False
        self._reader: asyncio.Future[None] | None = None
        self._stderr = bytearray()
        self._ending: asyncio.Task[ExitStatus] | None = None
        self._loop.add_reader(child.stderr, self._on_stderr)
        self._exit_watch = asyncio.ensure_future(self._watch_exit())

    @property
    def id(self) -> str:
        """Return the name of the sandbox in logs and cgroups."""
        return self._id

    @property
    def ended(self) -> bool:
        """Return whether the runner has ended and all its output was read."""
        return self._eof or (self._child.exited.is_set() and self._unread() == 0)

    @property
    def first_pid(self) -> int | None:
        """Return the process id, on this machine, of the sandbox's first process, or None if the id is not known."""
        return None if self._child.exited.is_set() else self._scope.first_pid

    def write(self, data: Octets) -> None:
        """Queue bytes for the runner. Never block; do nothing if the sandbox is dead."""
        if self._unwritable or not data:
            return
        rest = memoryview(data)
        if not self._queue:
            rest = rest[self._send(rest) :]
            if not rest:
                return
            self._loop.add_writer(self._child.stdin, self._on_writable)
        self._queue.append(rest)
        self._queued += len(rest)
        if self._queued > _QUEUE_BYTES:
            self._room.clear()

    async def drain(self) -> None:
        """Wait until less than 1 MiB is queued; return at once if the sandbox is dead."""
        await self._room.wait()

    async def read(self, *, patience_s: float = 0.0) -> bytes:
        """Return the next bytes from the runner, at most 256 KiB; `b""` when it has ended."""
        # if the event loop still watches the pipe, nothing has arrived since the last read
        waits = self._watching and not patience_s and not self._child.exited.is_set()
        while not self._eof:
            data = None if waits else self._receive()
            if data is not None:
                return data
            waits = False
            if self._child.exited.is_set():  # another process may still hold the pipe, but the runner is gone
                self._eof = True
                break
            if patience_s:
                self._unwatch()
                await asyncio.sleep(patience_s)
                patience_s = 0.0
            else:
                await self._readable()
        return b""

    def memory_events(self) -> int:
        """Return how many processes were killed at the memory limit."""
        kills = self._scope.memory_events()
        if not self.ended:  # the sandbox still runs, so the kills so far have ended only rows
            self._kills_known = kills
        return kills

    def used_bytes(self) -> int | None:
        """Return the bytes of memory that the sandbox uses now, or None if the number is unknown."""
        return None if self._ending is not None else self._scope.used_bytes()

    async def look(self) -> Look | None:
        """Return what the sandbox's processes are doing, and their CPU time, or None if that is unknown."""
        return look_at(self.first_pid)

    def weigh(self, weight: Weight) -> None:
        """Set the sandbox's CPU weight; do nothing without a cgroup."""
        self._scope.weigh(weight)

    async def destroy(self) -> ExitStatus:
        """Kill every process of the sandbox, remove its resources, and return how it ended. Never raises."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        return await asyncio.shield(self._ending)

    def _receive(self) -> bytes | None:
        try:
            data = os.read(self._child.stdout, _READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        self._eof = not data
        self._spoke = self._spoke or bool(data)
        return data

    async def _readable(self) -> None:
        self._reader = self._loop.create_future()
        if not self._watching:
            self._loop.add_reader(self._child.stdout, self._on_readable)
            self._watching = True
        try:
            await self._reader
        finally:
            self._reader = None

    def _on_readable(self) -> None:
        # leave the output in the pipe while nobody reads: once the pipe is full, the guest has to wait
        if self._reader is None:
            self._unwatch()
        elif not self._reader.done():
            self._reader.set_result(None)

    def _unwatch(self) -> None:
        if self._watching:
            self._loop.remove_reader(self._child.stdout)
            self._watching = False

    def _unread(self) -> int:
        if self._ending is not None:
            return 0
        return int.from_bytes(fcntl.ioctl(self._child.stdout, termios.FIONREAD, b"\0" * 4), "little")

    def _send(self, data: memoryview) -> int:
        """Write as many bytes as fit, and return how many; if the other end is closed, count all bytes as written."""
        try:
            return os.write(self._child.stdin, data)
        except BlockingIOError:
            return 0
        except OSError:  # the other end has been closed
            self._stop_writing()
            return len(data)

    def _on_writable(self) -> None:
        sent = self._send(self._queue[0])
        if self._unwritable:
            return
        self._queued -= sent
        if sent == len(self._queue[0]):
            self._queue.popleft()
        else:
            self._queue[0] = self._queue[0][sent:]
        if not self._queue:
            self._loop.remove_writer(self._child.stdin)
        if self._queued <= _QUEUE_BYTES:
            self._room.set()

    def _stop_writing(self) -> None:
        if not self._unwritable:
            self._unwritable = True
            self._loop.remove_writer(self._child.stdin)
            self._queue.clear()
            self._queued = 0
            self._room.set()

    def _on_stderr(self) -> None:
        if not self._take_stderr():
            self._loop.remove_reader(self._child.stderr)

    def _take_stderr(self) -> bool:
        try:
            data = os.read(self._child.stderr, _READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._stderr += data
        del self._stderr[:-_STDERR_BYTES]
        return bool(data)

    async def _watch_exit(self) -> None:
        await self._child.exited.wait()
        self._stop_writing()
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def _end(self) -> ExitStatus:
        """Kill the sandbox, wait until no process is left, and return how it ended; then remove its resources.

        Only when no process is left is it certain why the sandbox ended.
        """
        child = self._child
        try:
            if self._eof:
                with suppress(TimeoutError, Starved):
                    await within(_EXIT_CODE_S, lambda: self.first_pid, child.exited.wait())
            by_itself = child.exited.is_set()
            self._scope.kill()
            child.kill()
            dead = await _within(_KILL_S, child.exited.wait()) and await _within(_KILL_S, self._scope.gone())
            if not dead:
                _log.error("sandbox %s: a process was killed, but does not end", self._id)
            exit_status = self._exit_status(by_itself=by_itself)
            await self._scope.remove()
        except OSError as error:
            _log.warning("sandbox %s could not be removed: %s", self._id, refusal_of(error))
            exit_status = ExitStatus(lost=True, stderr_tail=str(error))
        finally:
            self._close()
        return exit_status

    def _exit_status(self, *, by_itself: bool) -> ExitStatus:
        self._take_stderr()
        code, number, lost = self._runner_exit() if by_itself else (None, None, False)
        oom_killed = self._scope.memory_events() > self._kills_known
        return ExitStatus(
            exit_code=code,
            signal=number,
            oom_killed=oom_killed,
            pids_hit=self._scope.pids_hit(killed=number == signal.SIGKILL),
            lost=lost and not oom_killed,
            stderr_tail=bytes(self._stderr).decode("utf-8", "replace"),
        )

    def _runner_exit(self) -> tuple[int | None, int | None, bool]:
        """Return the runner's exit code, or the signal that ended it, and whether the sandbox was lost.

        The sandbox was lost if the guest cannot have ended the runner.
        """
        returncode = self._child.returncode or 0
        # the runner sends `hello` before it reads any code, so a guest cannot have ended it
        too_early = not self._spoke
        if returncode < 0:
            return None, -returncode, self._wrapped or too_early
        if self._wrapped and returncode > 128:
            return None, returncode - 128, too_early
        return returncode, None, too_early

    def _close(self) -> None:
        self._stop_writing()
        self._unwatch()
        self._loop.remove_reader(self._child.stderr)
        self._exit_watch.cancel()
        self._child.close()
        self._eof = True
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


async def _within(seconds: float, awaitable: Coroutine[Any, Any, Any]) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await awaitable
    except TimeoutError:
        return False
    return True
