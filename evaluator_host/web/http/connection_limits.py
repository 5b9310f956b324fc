"""Bounds what a connection may cost, before a request exists and after it was answered: size, time, and how many.

A head, a refused body and an answer each have their time; whoever opens more connections than the host may have loses
those that say nothing, so that others still get in.
"""

import asyncio
import json
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from evaluator_host.web.http.error_responses import SECURITY_HEADERS

HEAD_BYTES: Final = 64 * 1024
HEAD_TIMEOUT_S: Final = 20.0
READ_TIMEOUT_S: Final = 60.0  # for a client to take what it was sent
LINGER_S: Final = 2.0  # for a client to read why its body is not wanted, while some of it is thrown away
LINGER_BYTES: Final = 16 << 20
CONNECTIONS: Final = 800  # leaves room for sandboxes among the 1,024 descriptors that a process usually has
_CONTINUE: Final = b"HTTP/1.1 100 "


def _refusal(status: int, title: str, *, code: str, detail: str) -> bytes:
    """Return a whole response of the one error shape that ends its connection."""
    problem = {"type": "about:blank", "title": title, "status": status, "code": code, "detail": detail, "errors": []}
    body = json.dumps(problem).encode()
    headers = (
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *SECURITY_HEADERS,
    )
    return STATUS_LINE[status] + b"".join(b"%b: %b\r\n" % pair for pair in headers) + b"\r\n" + body


_HEAD_TOO_LARGE: Final = _refusal(
    431,
    "TooLarge",
    code="too_large",
    detail=f"the request's headers are over {HEAD_BYTES >> 10} KB; data belongs in the body",
)
_NO_HTTP: Final = _refusal(400, "InvalidRequest", code="invalid_request", detail="this is not a valid HTTP request")

_FULL: Final = _refusal(
    429, "Busy", code="busy", detail="every connection that this host may have is at work; try again in a second"
)


class ConnectionLimits(HttpToolsProtocol):
    """Speaks HTTP as uvicorn does, to clients that it does not trust with its memory or its descriptors.

    The parser gathers a head (and the trailers of a chunked body) without a limit; bytes that bring no part of a body
    and complete no head are counted here.
    """

    most_connections = CONNECTIONS

    _idle_bytes = 0
    _unwanted_bytes = 0
    _answering = False
    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _linger_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            self._make_room()
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._progress()
        for timer in (self._read_timer, self._linger_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, and refuse a head without end."""
        self._idle_bytes += len(data)
        super().data_received(data)
        if self._idle_bytes > HEAD_BYTES and not self.transport.is_closing():
            if not self._answering:
                self.transport.write(_HEAD_TOO_LARGE)
            self.transport.close()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words; ours are in the one error shape
        """Refuse what is no HTTP."""
        if not self._answering:
            self.transport.write(_NO_HTTP)
        self.transport.close()

    def on_message_begin(self) -> None:
        """Begin to wait for the head of a later request too."""
        super().on_message_begin()
        self._answering = False
        self._expect_head()

    def on_headers_complete(self) -> None:
        """Take the request."""
        self._progress()
        self._answering = True
        super().on_headers_complete()
        self.cycle.transport = cast("asyncio.Transport", _Answer(self, self.cycle))

    def on_body(self, body: bytes) -> None:
        """Take a part of the body; its size is the guard's affair."""
        self._idle_bytes = 0
        if self.cycle.response_complete:
            self._unwanted_bytes += len(body)
            if self._unwanted_bytes > LINGER_BYTES:
                self.flow.pause_reading()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of a request."""
        self._idle_bytes = 0
        super().on_message_complete()
        if self._linger_timer is not None:
            self.transport.close()

    def linger(self) -> None:
        """Close soon: what was answered said so, and the client may still be sending."""
        if self._linger_timer is None:
            self._linger_timer = self.loop.call_later(LINGER_S, self.transport.close)

    def pause_writing(self) -> None:
        """Give the client a time to read in."""
        super().pause_writing()
        self._read_timer = self.loop.call_later(READ_TIMEOUT_S, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads."""
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
        super().resume_writing()

    def _expect_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._give_up)

    def _progress(self) -> None:
        self._idle_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        self.transport.close()

    def _make_room(self) -> None:
        """End the connection that has said nothing for longest; this one, when every other is at work."""
        others = [cast("Any", other) for other in self.connections if other is not self]
        quiet = [other for other in others if other.waits_since is not None and not other.transport.is_closing()]
        oldest = min(quiet, key=lambda other: other.waits_since, default=self)
        if oldest is self:
            self.transport.write(_FULL)
        oldest.transport.close()

    @property
    def waits_since(self) -> float | None:
        """When this connection will have waited too long for a request; None while one is at work."""
        if self._head_timer is not None:
            return self._head_timer.when()
        return self.timeout_keep_alive_task.when() if self.timeout_keep_alive_task is not None else None


class _Answer:
    """The transport as one answer sees it. An answer that comes before its request has ended ends the connection.

    At once, the client would lose the answer: closing throws away what it is still sending, and that resets it.
    """

    __slots__ = ("_begun", "_cycle", "_door")

    def __init__(self, door: ConnectionLimits, cycle: RequestResponseCycle) -> None:
        self._door = door
        self._cycle = cycle
        self._begun = False

    def write(self, data: bytes) -> None:
        """Write a part; the first one is the head."""
        if not self._begun and not data.startswith(_CONTINUE):
            self._begun = True
            if self._cycle.more_body and self._cycle.keep_alive:
                self._cycle.keep_alive = False
                data = data.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
        self._door.transport.write(data)

    def close(self) -> None:
        """Close the connection, in good time."""
        if self._cycle.more_body and not self._cycle.disconnected:
            self._door.linger()
        else:
            self._door.transport.close()

    def is_closing(self) -> bool:
        """Whether the connection is on its end."""
        return self._door.transport.is_closing()
