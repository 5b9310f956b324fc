"""Carries connections of user code to the host.

User code connects to a loopback port of this sandbox; the runner and the host exchange the bytes in frames.

The sandbox's network has only a loopback address, and this process passes bytes on without reading them. Connections
are accepted only while a row runs or the code is loaded, and end with the row.
"""

from __future__ import annotations

import _socket
import os

from evaluator_runner.channel import Outgoing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from evaluator_runner.supervisor import Supervisor

_CONNECTIONS = 64  # maximum number of connections at the same time; further connections are closed at once
_READ_BYTES = 64 * 1024
# maximum number of bytes that the host has not read yet; above this, the relay stops reading from user code
_UNSENT_BYTES = 1024 * 1024
# maximum number of bytes that user code may leave unread; after that, the connection is closed
_UNREAD_BYTES = 32 * 1024 * 1024
_FLAGS = _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK | _socket.SOCK_CLOEXEC


class _Connection:
    """One connection of user code.

    If the connection is `closing`, the host has closed it, and bytes that user code still sends are dropped.
    """

    __slots__ = ("closing", "fd", "number", "outgoing", "sock")

    def __init__(self, number: int, fd: int) -> None:
        self.number = number
        self.fd = fd
        self.sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0, fd)
        self.outgoing = Outgoing(fd)
        self.closing = False


class Relay:
    """A port on 127.0.0.1, and the connections to it.

    Args:
      supervisor: Polls the descriptors, and sends the frames.
      is_open: Function that returns whether user code may connect now.

    Attributes:
      address: `127.0.0.1:port`.
    """

    def __init__(self, supervisor: Supervisor, *, is_open: Callable[[], bool]) -> None:
        self._supervisor = supervisor
        self._is_open = is_open
        self._listener = _socket.socket(_socket.AF_INET, _FLAGS)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(_CONNECTIONS)
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]  # noqa: UP031 - no formatting code to load
        self._connections: dict[int, _Connection] = {}
        self._last = 0
        self._paused = False
        supervisor.watch(self._listener.fileno(), self._accept)

    def balance(self) -> None:
        """Stop reading from user code while the host does not keep up, and continue when it has caught up."""
        full = self._supervisor.channel.outgoing.size > _UNSENT_BYTES
        if full == self._paused:
            return
        self._paused = full
        for connection in self._connections.values():
            if full:
                self._supervisor.forget(connection.fd)
            else:
                self._watch(connection)

    def take(self, header: dict[str, Any], data: bytes) -> None:
        """Pass bytes from the host on to user code; do nothing for a connection that is closed."""
        connection = self._connections.get(header["connection"])
        if connection is None or connection.closing:
            return
        if data:
            connection.outgoing.add(data)
        connection.closing = header.get("end") is True
        if connection.outgoing.size > _UNREAD_BYTES:
            self._close(connection)
        else:
            self._write(connection)

    def end_row(self) -> None:
        """Close all connections, even those not yet accepted, because the row that made them is over."""
        for connection in list(self._connections.values()):
            self._close(connection)
        while (fd := self._next()) is not None:
            os.close(fd)

    def _accept(self) -> None:
        while (fd := self._next()) is not None:
            if len(self._connections) >= _CONNECTIONS or not self._is_open():
                os.close(fd)
                continue
            os.set_blocking(fd, False)
            self._last += 1
            connection = self._connections[self._last] = _Connection(self._last, fd)
            if not self._paused:
                self._watch(connection)

    def _next(self) -> int | None:
        try:
            fd: int = self._listener._accept()[0]  # type: ignore[attr-defined]  # noqa: SLF001 - `accept` is the method of `socket.socket`
        except OSError:  # no connection is waiting, or this process cannot open another descriptor
            return None
        return fd

    def _watch(self, connection: _Connection) -> None:
        self._supervisor.watch(connection.fd, lambda: self._on_connection(connection))
        if connection.outgoing.size:
            self._supervisor.watch_writing(connection.fd, wanted=True)

    def _on_connection(self, connection: _Connection) -> None:
        if connection.outgoing.size:
            self._write(connection)
        if connection.number not in self._connections:
            return
        try:
            data = os.read(connection.fd, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close(connection)
        if not connection.closing:
            self._send(connection, data)

    def _write(self, connection: _Connection) -> None:
        try:
            connection.outgoing.flush()
        except OSError:  # user code has closed the connection
            self._close(connection)
            return
        waits = connection.outgoing.size > 0
        if not self._paused:
            self._supervisor.watch_writing(connection.fd, wanted=waits)
        if connection.closing and not waits:
            try:  # the socket is only shut down, because closing it would drop data that user code has not read
                connection.sock.shutdown(_socket.SHUT_WR)
            except OSError:
                self._close(connection)

    def _send(self, connection: _Connection, data: bytes) -> None:
        end = "false" if data else "true"
        self._supervisor.channel.send(f'{{"type":"bytes","connection":{connection.number},"end":{end}}}', data)

    def _close(self, connection: _Connection) -> None:
        if self._connections.pop(connection.number, None) is not None:
            self._supervisor.forget(connection.fd)
            connection.sock.close()
