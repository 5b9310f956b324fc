"""Limits the number of connections, and their memory and time while no request is handled.

A client has a limited time to send the headers of a request, and to read a response. If there are too many connections,
the host closes the connection that has been quiet longest, so that it can still accept new clients.

This builds on uvicorn's protocol class, which is not a public interface: tests/unit/test_connection_limits.py names
every attribute used here and fails when an upgrade of uvicorn changes an attribute.
"""

import asyncio
import json
import weakref
from http import HTTPStatus
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evaluator_host.platform.http.hang_up import HANG_UP, HangUp

HEAD_BYTES: Final = 64 * 1024
HEAD_TIMEOUT_S: Final = 20.0
READ_TIMEOUT_S: Final = 60.0  # seconds that a client has to read a response
# seconds that a client has to read why its body is refused, while the rest of the body is thrown away
LINGER_S: Final = 2.0
LINGER_BYTES: Final = 16 << 20
PIPELINED: Final = 32  # maximum number of a connection's requests that wait for earlier responses
_SMALL_CHUNKS: Final = 65_536  # number of a body's chunks that may have any size; each takes a few µs
# smallest average size of all further chunks; even a client that sends each row as a chunk is above it
_CHUNK_BYTES: Final = 4
# maximum number of connections; sandboxes need the rest of the 1,024 descriptors that a process usually has
CONNECTIONS: Final = 800
COMPLETE: Final = "evaluator_host.complete"
"""Entry of a request's scope: the whole body has been received, though perhaps not read."""
_CONTINUE: Final = b"HTTP/1.1 100 "
_LINE_END: Final = b"\r\n"
# pairs for the security headers of every response: bytes that a response with this header contains, and its line
_SECURITY_HEADERS: Final = tuple(
    (b"\r\n%b: " % name, b"%b: %b\r\n" % (name, value))
    for name, value in (
        (b"x-content-type-options", b"nosniff"),
        (b"x-frame-options", b"DENY"),
        (b"content-security-policy", b"frame-ancestors 'none'; base-uri 'none'; object-src 'none'; form-action 'self'"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"cache-control", b"no-store"),
    )
)


def _error_bytes(status: int, title: str, *, code: str, detail: str) -> bytes:
    """Return the bytes of an error response that closes the connection."""
    problem = {"type": "about:blank", "title": title, "status": status, "code": code, "detail": detail, "errors": []}
    body = json.dumps(problem).encode()
    headers = (
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    )
    status_line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
    head = status_line + b"".join(b"%b: %b\r\n" % pair for pair in headers) + b"\r\n"
    return _with_security_headers(head) + body


def _with_security_headers(head: bytes) -> bytes:
    """Return the head of a response, after adding the security headers that it lacks."""
    missing = [line for name, line in _SECURITY_HEADERS if name not in head]
    return b"".join((head[: -len(_LINE_END)], *missing, _LINE_END))


_HEAD_TOO_LARGE: Final = _error_bytes(
    431,
    "TooLarge",
    code="too_large",
    detail=f"the request's headers are over {HEAD_BYTES >> 10} KB; send data in the body",
)
_TINY_CHUNKS: Final = _error_bytes(
    413,
    "TooLarge",
    code="too_large",
    detail=f"the body has over {_SMALL_CHUNKS:,} tiny chunks; send a Content-Length, or larger chunks",
)
_NO_HTTP: Final = _error_bytes(400, "InvalidRequest", code="invalid_request", detail="this is not a valid HTTP request")
_FULL: Final = _error_bytes(
    429, "Busy", code="busy", detail="all connections of this host are in use; try again in a second"
)


class ConnectionLimits(HttpToolsProtocol):
    """Uvicorn's HTTP protocol with limits against untrusted clients.

    The parser collects headers (and the trailers of a chunked body) without a limit. So this class counts the bytes of
    headers and trailers.
    """

    most_connections = CONNECTIONS

    _head_bytes = _body_bytes = _chunks = 0
    _expects_head = True
    _refused_bytes = 0
    _responding = False
    _quiet_since = 0.0
    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _linger_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit for the first request's headers."""
        super().connection_made(transport)
        self._hang_up = HangUp()
        if len(self.connections) > self.most_connections:
            self._make_room()
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers of the closed connection."""
        self._end_head()
        for timer in (self._read_timer, self._linger_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
        self._hang_up.happen()

    def data_received(self, data: bytes) -> None:
        """Parse received data; refuse headers that are too long."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            if not self._responding:
                self.transport.write(_HEAD_TOO_LARGE)
            self.transport.close()
        if self._expects_head:
            self._expect_head()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the response has this host's text, not uvicorn's
        """Send a 400 response to data that is not HTTP."""
        if not self._responding:
            self.transport.write(_NO_HTTP)
        self.transport.close()

    def on_message_begin(self) -> None:
        """Begin the next request, and set a time limit for its headers, unless they have already arrived.

        Raises:
          BufferError: too many requests wait for earlier requests; the error ends the parser and the connection.
        """
        if len(self.pipeline) >= PIPELINED:  # one read may contain thousands of requests, and each takes kilobytes
            raise BufferError(PIPELINED)
        super().on_message_begin()
        self._body_bytes = self._chunks = 0
        self._responding = False
        self._expects_head = True

    def on_headers_complete(self) -> None:
        """Pass the request to the application, with a transport that closes the connection gracefully."""
        self._end_head()
        self._responding = True
        scope: Any = self.scope
        scope[HANG_UP] = self._hang_up
        super().on_headers_complete()
        transport: Any = _ResponseTransport(self, self.cycle)
        self.cycle.transport = transport

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body to the application; discard it if the response has already been sent."""
        self._head_bytes = 0
        self._body_bytes += len(body)
        if self.cycle.response_complete:
            self._refused_bytes += len(body)
            if self._refused_bytes > LINGER_BYTES and not self.transport.is_closing():
                self.transport.pause_reading()
        super().on_body(body)

    def on_chunk_header(self) -> None:
        """Count a chunk of the body.

        Raises:
          BufferError: most chunks are tiny; the error ends the parser and the connection.
        """
        self._chunks += 1
        if self._chunks > _SMALL_CHUNKS + self._body_bytes // _CHUNK_BYTES:
            if not self.cycle.response_started:
                self.transport.write(_TINY_CHUNKS)
            raise BufferError(self._chunks)

    def on_message_complete(self) -> None:
        """End the request. If the connection stayed open only for the rest of the request, close it."""
        self._head_bytes = 0
        scope: Any = self.scope
        scope[COMPLETE] = True
        super().on_message_complete()
        if self._linger_timer is not None:
            self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing when a client asks for another protocol; the response is in HTTP/1.1."""

    def linger(self) -> None:
        """Close the connection after two seconds, so that a client that is still sending can read the response."""
        if self._linger_timer is None:
            self._linger_timer = asyncio.get_running_loop().call_later(LINGER_S, self.transport.close)

    def pause_writing(self) -> None:
        """Start the time limit for the client to read the response."""
        super().pause_writing()
        self._read_timer = asyncio.get_running_loop().call_later(READ_TIMEOUT_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the time limit for reading the response, because the client is reading again."""
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
        super().resume_writing()

    def stay_awake(self) -> None:
        """Record that the connection is in use now."""
        self._quiet_since = asyncio.get_running_loop().time()

    @property
    def quiet_since(self) -> float | None:
        """Time at which the host began waiting for the client's request; None while a request is being answered."""
        cycle: Any = self.cycle  # None before the first request
        waits = self._head_timer is not None or (cycle is not None and cycle.response_complete)
        return self._quiet_since if waits else None

    def _expect_head(self) -> None:
        if self._head_timer is None:
            self.stay_awake()
            self._head_timer = asyncio.get_running_loop().call_later(HEAD_TIMEOUT_S, self._give_up)

    def _end_head(self) -> None:
        self._head_bytes = 0
        self._expects_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        self.transport.close()

    def _make_room(self) -> None:
        """Close the connection that has been quiet longest. If all other connections are in use, refuse this one."""
        connections: Any = self.connections
        others = [other for other in connections if other is not self]
        quiet = [other for other in others if other.quiet_since is not None and not other.transport.is_closing()]
        oldest = min(quiet, key=lambda other: other.quiet_since, default=self)
        if oldest is self:
            self.transport.write(_FULL)
        oldest.transport.close()


class _ResponseTransport:
    """The transport of one response. Sends the headers, and data that follows them immediately, in a single packet.

    If a response is sent before its request has ended, the connection is closed a moment later. If the connection were
    closed at once, with unread data from the client, it would be reset, and the client would lose the response.
    """

    __slots__ = ("_begun", "_connection", "_cycle", "_head")

    def __init__(self, connection: ConnectionLimits, cycle: Any) -> None:
        self._connection = connection
        # a weak reference, because two objects that refer to each other would wait for the garbage collector
        self._cycle: Any = weakref.proxy(cycle)
        self._begun = False
        self._head = b""  # headers that wait for the first part of the body

    def write(self, data: bytes) -> None:
        """Write a part of the response; the first part contains the headers."""
        if self._begun or data.startswith(_CONTINUE):
            self._send(self._head + data)
            return
        self._begun = True
        data = _with_security_headers(data)
        if self._cycle.more_body and self._cycle.keep_alive:
            self._cycle.keep_alive = False
            data = data.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
        self._head = data
        # a response without a body is complete now, but its head still waits, so the connection must not count as quiet
        self._connection.stay_awake()
        # the head must not wait for the body, which may come much later
        asyncio.get_running_loop().call_soon(self._send_head)

    def _send_head(self) -> None:
        if self._head:
            self._send(self._head)

    def _send(self, data: bytes) -> None:
        self._head = b""
        self._connection.stay_awake()
        self._connection.transport.write(data)

    def close(self) -> None:
        """Close the connection: now, or soon if the client is still sending."""
        self._send_head()
        if self._cycle.more_body and not self.is_closing():
            self._connection.linger()
        else:
            self._connection.transport.close()

    def is_closing(self) -> bool:
        return self._connection.transport.is_closing()
