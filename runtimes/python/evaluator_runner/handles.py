"""The supervisor's handles for its child processes: one zygote, and at most one row process at a time."""

from __future__ import annotations

import _socket
import os
import select
import sys
import time
from _collections import deque  # type: ignore[import-not-found]

from evaluator_runner import row, zygote
from evaluator_runner.channel import Arriving, Outgoing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NUDGE_MS = 500  # time in ms without a reply after which to send SIGCONT, because a row may have stopped the zygote
# how many times to send SIGCONT before a fork fails; not a time limit, since the whole sandbox may have been stopped
_NUDGES = 20
_SIGKILL, _SIGCONT = 9, 18
_READ_BYTES = 64 * 1024  # bytes per read; for a larger buffer, malloc would map new memory at every read
_REPORT_BYTES = 8 * 1024 * 1024
_DESCRIPTION_BYTES = 64 * 1024
# errors at limits of a user or a machine: EAGAIN (processes), ENFILE (files), ENOBUFS, ETOOMANYREFS (sent descriptors)
_STARVED = frozenset((11, 23, 105, 109))
_WAITING_CONNECTIONS = 16
_CREDENTIALS_BYTES = 12  # size of struct ucred: process, user and group


class Lost(Exception):
    """The sandbox cannot continue: its zygote ended, or sent an unexpected message."""

    exit_code = 70


class Starved(Lost):
    """The machine refuses the runner a resource.

    Other sandboxes with the same kernel user may have used it up.
    """

    exit_code = 72


def refused(error: OSError, what: str) -> Lost:
    """Return the exception to raise when the kernel refuses a call of the supervisor."""
    return (Starved if error.errno in _STARVED else Lost)(f"{what}: {error}")


class Call:
    """One row to evaluate.

    A `cancelled` call is answered when it is its turn, but its row does not run.
    """

    __slots__ = ("body", "cancelled", "id", "share", "timeout_s")

    def __init__(self, header: dict[str, Any], body: bytes | memoryview | Arriving) -> None:
        self.id: str = header["id"]
        self.timeout_s = float(header["timeout_s"])
        self.share: str | None = header.get("share")
        self.body = body
        self.cancelled = False


class Answer:
    """A message from a row process; `kind` is `row.RESULT`, `FAILED` or `READY`."""

    __slots__ = ("body", "err_bytes", "kind", "out_bytes", "peak_kb", "run_ms")

    def __init__(self, head: bytes, body: bytes) -> None:
        self.kind = head[:1]
        self.body = body
        self.run_ms = int.from_bytes(head[5:12], "big") / 1000
        self.peak_kb = int.from_bytes(head[12:19], "big")
        self.out_bytes = int.from_bytes(head[19:26], "big")
        self.err_bytes = int.from_bytes(head[26:33], "big")


class RowHandle:
    """The supervisor's end of a row process, and the calls that the process was given.

    Attributes:
      sock: Descriptor of the socket to the process.
      own_child: Whether the supervisor itself forked the process, instead of the zygote; it then has to load the
        evaluator first.
      ready: Whether the process has loaded the evaluator.
      used: Whether the process has had a call; only calls with the same `share` may follow.
      ended: Whether the process has closed the socket, so that no more answers can arrive.
      heard: Whether the last read of the socket returned data. If so, more data may be waiting.
      started_at: Monotonic seconds at which the first call in `calls` started.
    """

    def __init__(self, sock: int, pid: int, *, answer_bytes: int, own_child: bool) -> None:
        self.sock = sock
        self.pid = pid
        self.own_child = own_child
        self.ready = not own_child
        self.used = False
        self.share: str | None = None
        self.ended = False
        self.heard = False
        self.calls: deque[Call] = deque()
        self.ahead_bytes = 0
        self.started_at = 0.0
        self.outgoing = Outgoing(self.sock)
        self._buffer = bytearray()
        self._answer_bytes = answer_bytes

    def hand_over(self, call: Call, *, more: bool) -> None:
        """Send a call to the process; `more` means that another call may follow."""
        if not self.calls:
            self.started_at = time.monotonic()
        self.used = True
        self.share = call.share
        self.calls.append(call)
        self.ahead_bytes += len(call.body)
        self.outgoing.add(row.order(len(call.body), more=more), call.body)

    def take_call(self) -> Call:
        """Remove and return the first call, which has been answered."""
        call: Call = self.calls.popleft()
        self.ahead_bytes -= len(call.body)
        self.started_at = time.monotonic()
        return call

    def flush(self) -> None:
        """Write as many queued bytes as the socket accepts now."""
        try:
            self.outgoing.flush()
        except OSError:
            self.ended = True

    def answers(self) -> list[Answer]:
        """Return the answers that arrived since the last call of this method.

        Raises:
          ValueError: the process sent bytes that are not an answer.
        """
        self._read()
        buffer = self._buffer
        found = []
        while len(buffer) >= row.ANSWER_BYTES:
            length = int.from_bytes(buffer[1:5], "big")
            if bytes(buffer[:1]) not in {row.RESULT, row.FAILED, row.READY} or length > self._answer_bytes:
                raise ValueError("the message is not an answer")
            end = row.ANSWER_BYTES + length
            if len(buffer) < end:
                break
            found.append(Answer(bytes(buffer[: row.ANSWER_BYTES]), bytes(buffer[row.ANSWER_BYTES : end])))
            del buffer[:end]
        return found

    def _read(self) -> None:
        self.heard = False
        try:
            data = os.read(self.sock, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.ended = True
        self.heard = bool(data)
        self._buffer += data

    def kill(self) -> None:
        """Kill the process and its process group."""
        try:
            os.killpg(self.pid, _SIGKILL)
        except OSError:  # the process has not called `setsid` yet
            kernel_kill(self.pid)


def kernel_kill(pid: int) -> None:
    """Kill one process; do nothing if it has already ended."""
    try:
        os.kill(pid, _SIGKILL)
    except OSError:
        pass


class Listener:
    """A listening socket to which the zygote connects before each fork. The row process inherits the connection.

    If descriptors were sent over a socket, they would count against a limit that all sandboxes of a user share. The
    address is an abstract name, chosen by the kernel after loading.

    Raises:
      OSError: the sandbox may not make such a socket.
    """

    def __init__(self) -> None:
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK)
        self._socket.bind(b"")
        self._socket.listen(_WAITING_CONNECTIONS)
        self.address: bytes = self._socket.getsockname()

    def accept(self, pid: int) -> int:
        """Return the descriptor of the connection that process `pid` made; close connections of other processes.

        Raises:
          Lost: the process has not connected to this socket.
        """
        while True:
            try:
                fd, _ = self._socket._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - `accept` is the method of `socket.socket`
            except BlockingIOError:
                raise Lost("the process that loaded the evaluator made no connection") from None
            except OSError as error:
                raise refused(error, "no connection can be accepted") from error
            connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd)
            peer = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS_BYTES)
            if peer[:4] == pid.to_bytes(4, sys.byteorder):
                connection.setblocking(False)  # noqa: FBT003 - positional in _socket
                return connection.detach()

    def drop_waiting(self) -> None:
        """Close the connections that nobody accepted."""
        try:
            while True:
                os.close(self._socket._accept()[0])  # type: ignore[attr-defined]  # noqa: SLF001 - as above
        except OSError:
            pass


class ZygoteHandle:
    """The supervisor's end of the zygote.

    Args:
      life: Function that the forked process calls with its end of the control channel. The function never returns.
    """

    def __init__(self, life: Callable[[_socket.socket], None]) -> None:
        self._control, theirs = _socket.socketpair()
        self.fd = self._control.fileno()
        self.pid = os.fork()
        if self.pid == 0:
            self._control.close()
            life(theirs)
        theirs.close()
        # This uses `poll`, because `settimeout` would wait for room before each send. `recv` would be worse: while this
        # process waits in it, the kernel also wakes the process when the zygote takes the command.
        arrived = select.poll()
        arrived.register(self.fd, select.POLLIN)
        self._arrived = arrived.poll
        self._buffer = bytearray()
        self._told = False  # whether the zygote has been told the address of the listener

    def report(self) -> tuple[bytes, bytes, bytes] | None:
        """Return the outcome of loading or of preimports (kind, description, body), or None while the zygote works.

        Raises:
          Lost: the zygote ended first, or sent anything else.
        """
        if not self._arrived(0):
            return None
        try:
            data = self._control.recv(_READ_BYTES)
        except OSError:
            data = b""
        if not data:
            raise Lost("the process that loaded the evaluator ended")
        buffer = self._buffer
        buffer += data
        if len(buffer) < 9:
            return None
        head, body = int.from_bytes(buffer[1:5], "big"), int.from_bytes(buffer[5:9], "big")
        if (
            bytes(buffer[:1]) not in {zygote.LOADED, zygote.LOAD_FAILED, zygote.PREPARED}
            or head > _DESCRIPTION_BYTES
            or body > _REPORT_BYTES
        ):
            raise Lost("the process that loads the evaluator sent no report")
        if len(buffer) < 9 + head + body:
            return None
        end = 9 + head + body
        found = bytes(buffer[:1]), bytes(buffer[9 : 9 + head]), bytes(buffer[9 + head : end])
        del buffer[:end]
        return found

    def send(self, data: bytes) -> bool:
        """Send the data for which the zygote waits; return whether the zygote accepted the data."""
        self._control.settimeout(_NUDGE_MS / 1000)
        try:
            self._control.sendall(data)
        except OSError:
            return False
        finally:
            self._control.settimeout(None)
        return True

    def fork(self, listener: Listener | None, *, warm: bool) -> tuple[int, int]:
        """Let the zygote fork a row process, and reap the previous one, which must have been killed.

        With `warm`, no row is waiting, so the new process may take time to warm up. Without a listener, the row's
        socket is sent to the zygote.

        Returns:
          The descriptor of the socket to the row process, and its process id.

        Raises:
          Lost: the zygote does not answer.
          BlockingIOError: the process limit does not allow a fork now.
        """
        command = zygote.FORK_WARM if warm else zygote.FORK
        if listener is None:
            return self._fork_with_socket(command)
        if not self._told:
            self._told = True
            command = zygote.ADDRESS + bytes((len(listener.address),)) + listener.address + command
        try:
            self._control.send(command)
        except OSError as error:
            raise Lost("the process that loaded the evaluator is gone") from error
        try:
            pid = self._forked()
        except BlockingIOError:
            listener.drop_waiting()
            raise
        return listener.accept(self.pid), pid

    def _fork_with_socket(self, command: bytes) -> tuple[int, int]:
        ours, theirs = _socket.socketpair()
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, theirs.fileno().to_bytes(4, sys.byteorder))
        try:
            self._control.send(zygote.SOCKET)
            self._control.sendmsg([zygote.SOCKET], [rights])
            self._control.send(command)
        except OSError as error:
            raise refused(error, "the process that loaded the evaluator accepts no socket") from error
        pid = self._forked()
        ours.setblocking(False)  # noqa: FBT003 - positional in _socket
        return ours.detach(), pid

    def _forked(self) -> int:
        kind, value, _ = self._reply()
        if kind == zygote.REFUSED:
            raise BlockingIOError(value, "the row process could not be started")
        return value

    def ask(self, command: bytes) -> tuple[int, int]:
        """Ask the row process's parent, the zygote, to reap the process (`REAP`) or to report how it ended (`LOOK`).

        Return `(si_code, si_status)` for `LOOK`, and zeros for `REAP`.
        """
        try:
            self._control.send(command)
        except OSError as error:
            raise Lost("the process that loaded the evaluator is gone") from error
        return self._reply()[1:]

    def _reply(self) -> tuple[bytes, int, int]:
        data, nudges = b"", 0
        while len(data) < zygote.REPLY_BYTES:
            if not self._arrived(_NUDGE_MS):
                nudges += 1
                if nudges > _NUDGES:
                    raise Lost("the process that loaded the evaluator does not answer")
                os.kill(self.pid, _SIGCONT)  # a row may have stopped the zygote with SIGSTOP
                continue
            try:
                chunk = self._control.recv(zygote.REPLY_BYTES - len(data))
            except OSError:
                chunk = b""
            if not chunk:
                raise Lost("the process that loaded the evaluator ended")
            data += chunk
        return data[:1], int.from_bytes(data[1:9], "big"), int.from_bytes(data[9:17], "big")

    def end(self) -> int:
        """Kill the zygote and return its wait status."""
        kernel_kill(self.pid)
        try:
            return os.waitpid(self.pid, 0)[1]
        except OSError:
            return 0

    def close(self) -> None:
        """Close the control channel."""
        self._control.close()
