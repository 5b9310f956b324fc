"""One connection of a row: reads one HTTP/1.1 request by h11, and writes one response.

The other end is an enemy. A connection carries one request and is closed after its response, so nothing can hide behind
a request. Head, body, and the bodies of all connections of a row together are bounded; nothing of the request but
its method, path and JSON body reaches a provider.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import h11

from evaluator_host.sandbox.base import Wire

HEAD_BYTES: Final = 32 << 10
BODY_BYTES: Final = 8 << 20
_OWN_HOST: Final = re.compile(rb"(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?")
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class BadRequest(Exception):
    """The bytes are no request that is taken; `status` and `str` say why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """A request, checked: `path` without the query, header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Connection:
    """The host's end of one connection.

    Args:
      number: Of the connection.
      wire: The way back.
      serve: Answers the request; started once, when the request is complete.
      refuse: Answers bytes that are no request.
      room: Tells whether so many more bytes may be kept.

    Attributes:
      began: Whether a part of a response was sent.
      ended: Whether the response is complete, or was cut off.
    """

    def __init__(
        self,
        number: int,
        wire: Wire,
        *,
        serve: Callable[["Connection", Request], None],
        refuse: Callable[["Connection", BadRequest], None],
        room: Callable[[int], bool],
    ) -> None:
        self.number = number
        self._wire = wire
        self._serve = serve
        self._refuse = refuse
        self._room = room
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._head: h11.Request | None = None
        self._body = bytearray()
        self._complete = False
        self.began = False
        self.ended = False

    def receive(self, data: bytes) -> None:
        """Take bytes; those that come after the request are dropped."""
        if self._complete:
            return
        try:
            self._http.receive_data(data)
            self._read()
        except h11.RemoteProtocolError as error:
            self._fail(BadRequest(error.error_status_hint, f"no valid HTTP request: {error}"))
        except BadRequest as error:
            self._fail(error)

    def _fail(self, error: BadRequest) -> None:
        self._complete = True
        self._refuse(self, error)

    def _read(self) -> None:
        while True:
            event = self._http.next_event()
            match event:
                case h11.Request():
                    self._head = event
                    _check_head(event)
                    if self._http.they_are_waiting_for_100_continue:
                        self._wire.reply(self.number, _CONTINUE)
                case h11.Data():
                    if len(self._body) + len(event.data) > BODY_BYTES:
                        raise BadRequest(413, f"a request may have {BODY_BYTES >> 20} MB")
                    if not self._room(len(event.data)):
                        raise BadRequest(413, "the row's requests together are too large")
                    self._body += event.data
                case h11.EndOfMessage():
                    self._complete = True
                    self._serve(self, _request(self._head, bytes(self._body)))
                    return
                case _:  # more is to come, or the other end is closed
                    return

    def respond(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Send a whole response, and close."""
        self._send(_head(status, [*headers, ("content-length", str(len(body)))]) + body, end=True)

    async def begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        """Send the head of a response whose body follows by `write`."""
        self._send(_head(status, [*headers, ("transfer-encoding", "chunked")]))
        await self._wire.drain()

    async def write(self, data: bytes) -> None:
        """Send a part of the body."""
        if data:
            self._send(b"%x\r\n%b\r\n" % (len(data), data))
            await self._wire.drain()

    def finish(self) -> None:
        """End the body, and close."""
        self._send(b"0\r\n\r\n", end=True)

    def close(self) -> None:
        """Close, in any state."""
        self._complete = True
        self._send(b"", end=True)

    def _send(self, data: bytes, *, end: bool = False) -> None:
        if not self.ended:
            self.began = True
            self.ended = end
            self._wire.reply(self.number, data, end=end)


def _head(status: int, headers: list[tuple[str, str]]) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in (*headers, ("connection", "close"))]
    return f"HTTP/1.1 {status} \r\n{''.join(lines)}\r\n".encode("latin-1", "replace")


def _check_head(head: h11.Request) -> None:
    """Refuse what only a request to somebody else, or two readers of one request, would need.

    Raises:
      BadRequest: it is such a request.
    """
    names = [name for name, _ in head.headers]
    hosts = [value for name, value in head.headers if name == b"host"]
    if head.method == b"CONNECT" or not head.target.startswith(b"/"):
        raise BadRequest(403, "this address leads to granted models only, and is no proxy")
    if len(hosts) != 1 or _OWN_HOST.fullmatch(hosts[0]) is None:
        raise BadRequest(421, "this address leads to granted models only; the Host header names another host")
    if b"transfer-encoding" in names and b"content-length" in names:
        raise BadRequest(400, "a request has Transfer-Encoding or Content-Length, not both")
    if b"upgrade" in names:
        raise BadRequest(400, "this address offers no other protocol")
    if b"content-encoding" in names:
        raise BadRequest(415, "send the body as it is, without Content-Encoding")


def _request(head: h11.Request | None, body: bytes) -> Request:
    assert head is not None  # noqa: S101 - h11 gives it first
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    target = head.target.decode("latin-1").partition("?")[0]
    return Request(head.method.decode("latin-1"), target, headers, body)
