"""One connection of an evaluator: reads one HTTP/1.1 request with h11, and writes one response.

The evaluator's code is untrusted. A connection carries one request and is closed after the response, so a request
cannot hide a second one. There are limits for the head, for the body, for all bodies of a row together, and for data
that waits in a tunnel or after a request. From a request to a model, only method, path and JSON body reach the
provider.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import h11

from evaluator_host.engine.sandbox.base import ConnectionWriter
from evaluator_host.platform.models.gateway.hosts import HTTPS, HostPort, host_port

HEAD_BYTES: Final = 32 << 10
BODY_BYTES: Final = 8 << 20
_SMALL_CHUNKS: Final = 2000  # number of a request's first chunks that may have any size; h11 takes 10 µs for each
_CHUNK_BYTES: Final = 256  # minimum average size, in bytes, of all further chunks
# maximum number of bytes to read and drop after a request, since a client may send a second one
UNREAD_BYTES: Final = 64 << 10
TUNNEL_BYTES: Final = 1 << 20  # maximum number of bytes that may wait in a tunnel: four reads from a sandbox
_PART_BYTES: Final = 64 << 10  # maximum number of bytes of a response to send to a sandbox at once
_HTTP: Final = 80
_OWN_HOST: Final = re.compile(rb"(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?")
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Rejected(Exception):
    """A request that the host refuses.

    `status`, `code` and the message say why the host refuses it; `again` says whether the evaluator may send it again.
    """

    def __init__(self, status: int, message: str, code: str = "bad_request", *, again: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.again = again


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request from an evaluator, parsed and checked."""

    method: str
    target: str  # path and query of the request
    headers: dict[str, str]  # headers, keyed by name in lower case
    body: bytes
    to: HostPort | None = None  # the other host that the request is for; None for a granted model

    @property
    def path(self) -> str:
        """Return the target without its query."""
        return self.target.partition("?")[0]


class RequestReader:
    """Parses one HTTP/1.1 request from bytes as they arrive, within size limits."""

    def __init__(
        self,
        room: Callable[[int], bool],  # returns whether the host has room for that many more bytes
        proceed: Callable[[], None],  # called when the evaluator waits for `100 Continue`
        *,
        # returns whether the evaluator may reach a host; None if it may reach none
        admits: Callable[[HostPort], bool] | None = None,
        # host at the end of the tunnel through which the request came; the request must name this host
        within: HostPort | None = None,
    ) -> None:
        self._room = room
        self._proceed = proceed
        self._admits = admits
        self._within = within
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._head: h11.Request | None = None
        self._to: HostPort | None = None
        self._body = bytearray()
        self._chunks = 0

    @property
    def rest(self) -> bytes:
        """Return the bytes after the end of the request."""
        return self._http.trailing_data[0]

    def feed(self, data: bytes) -> Request | None:
        """Add bytes that arrived; return the request once it is complete, or else None.

        Raises:
          Rejected: the bytes are not valid HTTP, over a size limit, or a request that evaluators may not make.
        """
        try:
            self._http.receive_data(data)
            return self._read()
        except h11.RemoteProtocolError as error:
            raise Rejected(error.error_status_hint, f"this is not a valid HTTP request: {error}") from error

    def _read(self) -> Request | None:
        while True:
            event = self._http.next_event()
            match event:
                case h11.Request():
                    self._head, self._to = event, self._destination(event)
                    if self._http.they_are_waiting_for_100_continue:
                        self._proceed()
                case h11.Data():
                    self._chunks += event.chunk_start
                    if self._chunks > _SMALL_CHUNKS + len(self._body) // _CHUNK_BYTES:
                        raise Rejected(
                            413,
                            f"the request has over {_SMALL_CHUNKS:,} tiny chunks; send its body whole with a "
                            f"Content-Length, or in chunks of at least {_CHUNK_BYTES} bytes",
                        )
                    if len(self._body) + len(event.data) > BODY_BYTES:
                        raise Rejected(413, f"the request is over {BODY_BYTES >> 20} MB; send a smaller one")
                    if not self._room(len(event.data)):
                        raise Rejected(
                            413,
                            "the requests of this row are too large in total; send fewer or smaller ones at once",
                        )
                    self._body += event.data
                case h11.EndOfMessage() if self._head is not None:
                    return _request(self._head, bytes(self._body), self._to)
                case _:  # h11 needs more data, or the evaluator has closed the connection
                    return None

    def _destination(self, head: h11.Request) -> HostPort | None:
        """Check a request, and return the host that it is for; None if it is for this host.

        Raises:
          Rejected: the evaluator may not call that host, or two readers could understand the request differently.
        """
        to = self._within if self._within is not None else _named(head) if self._admits is not None else None
        if to is None:
            _check_head(head)
            return None
        if self._within is not None and not head.target.startswith(b"/"):
            raise Rejected(400, "a request through this tunnel must name a path only, as in GET /")
        if self._admits is not None and not self._admits(to):
            raise Rejected(
                403, f"this evaluator was not granted {to}; add it to the evaluator's `network`", "not_granted"
            )
        _check_framing(head)
        port = HTTPS if head.method == b"CONNECT" else _HTTP
        hosts = [host_port(value.decode("latin-1"), port=port) for name, value in head.headers if name == b"host"]
        if (
            any(one is None or one.host != to.host or one.port not in (to.port, port) for one in hosts)
            or len(hosts) > 1
        ):
            raise Rejected(421, "the Host header names another host than the request; leave it out, or correct it")
        return to


class Tunnel:
    """A connection after CONNECT. The bytes from and to the evaluator are not parsed.

    `count` is called with the number of bytes that arrive, and raises Rejected if there were too many.
    """

    def __init__(self, connection: "Connection", rest: bytes, count: Callable[[int], None]) -> None:
        self.is_open = True  # whether the tunnel accepts further bytes from the evaluator
        self._connection = connection
        self._count = count
        self._arrived = bytearray()
        self._event = asyncio.Event()
        self.feed(rest)

    def feed(self, data: bytes) -> None:
        """Add bytes that the evaluator sent.

        Raises:
          Rejected: the evaluator has sent too much, or faster than the host reads.
        """
        self._count(len(data))
        if len(self._arrived) + len(data) > TUNNEL_BYTES:
            raise Rejected(
                413,
                f"{TUNNEL_BYTES >> 20} MB sent through this tunnel have not reached the other host yet; "
                "send more slowly",
            )
        self._arrived += data
        if self._arrived:
            self._event.set()

    async def read(self) -> bytes:
        """Wait for further bytes from the evaluator, and return them."""
        await self._event.wait()
        data = bytes(self._arrived)
        self._arrived.clear()
        self._event.clear()
        return data

    async def write(self, data: bytes) -> None:
        """Send bytes to the evaluator."""
        await self._connection.send(data)

    async def request(self, first: bytes, to: HostPort) -> Request:
        """Read the bytes of the tunnel after `first` as one plain HTTP request. The tunnel then accepts no more bytes.

        Raises:
          Rejected: the bytes are not a valid request, or the request is for another host.
        """
        # from now on, a refusal is sent as the response to the request in the tunnel
        self._connection.began = False
        reader = self._connection.reader(within=to)
        while (request := reader.feed(first)) is None:
            first = await self.read()
        self.is_open = False
        self._arrived.clear()
        return request


class Connection:
    """The host's end of one connection that an evaluator has opened.

    `serve` is called with the complete request. `refuse` is called with the error if the evaluator's bytes cannot be
    accepted. `room` returns whether the host has room for a number of further bytes. `admits` returns whether the
    evaluator may reach a host; None means that it may reach none.
    """

    def __init__(
        self,
        number: int,
        wire: ConnectionWriter,
        *,
        serve: Callable[["Connection", Request], None],
        refuse: Callable[["Connection", Rejected], None],
        room: Callable[[int], bool],
        admits: Callable[[HostPort], bool] | None = None,
    ) -> None:
        self.number = number
        self._wire = wire
        self._serve = serve
        self._refuse = refuse
        self._room = room
        self._reader: RequestReader | None = self.reader(admits=admits)
        self._rest = b""
        self._unread = 0  # number of bytes that arrived after the request, and are dropped
        self._tunnel: Tunnel | None = None
        self.began = False  # whether a part of a response was sent
        self.ended = False  # whether the response is complete, or was cut off

    def reader(
        self, *, admits: Callable[[HostPort], bool] | None = None, within: HostPort | None = None
    ) -> RequestReader:
        """Return a reader for a request on this connection, or for a request inside a tunnel to the host `within`."""
        return RequestReader(self._room, lambda: self._wire.reply(self.number, _CONTINUE), admits=admits, within=within)

    def receive(self, data: bytes) -> None:
        """Handle bytes that the evaluator sent. After a request without a tunnel, a few further bytes are dropped."""
        if self.ended:
            return
        try:
            if self._tunnel is not None and self._tunnel.is_open:
                self._tunnel.feed(data)
            elif self._reader is None:
                self._pass_over(data)
            elif (request := self._reader.feed(data)) is not None:
                rest, self._reader = self._reader.rest, None
                self._rest = rest if request.method == "CONNECT" else b""
                self._serve(self, request)
        except Rejected as error:
            self._reader = None
            self._refuse(self, error)

    def _pass_over(self, data: bytes) -> None:
        self._unread += len(data)
        if self._unread > UNREAD_BYTES:
            raise Rejected(413, "more data arrived after the request; send one request per connection")

    def establish(self, count: Callable[[int], None]) -> Tunnel:
        """Answer CONNECT with 200, and return the tunnel for the bytes that follow; see `Tunnel` for `count`."""
        self._tunnel = Tunnel(self, self._rest, count)
        self._rest = b""
        self._send(_ESTABLISHED)
        return self._tunnel

    def respond(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Send a whole response, and close the connection."""
        self._send(_head(status, [*headers, ("content-length", str(len(body)))]) + body, end=True)

    async def answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Send a whole response of any size, only as fast as the evaluator reads it, and close the connection."""
        head = _head(status, [*headers, ("content-length", str(len(body)))])
        for at in range(0, len(body) - _PART_BYTES, _PART_BYTES):
            await self.send(head + body[at : at + _PART_BYTES])
            head = b""
        rest = len(body) % _PART_BYTES or min(len(body), _PART_BYTES)
        self._send(head + body[len(body) - rest :], end=True)

    def respond_head(self, status: int, headers: list[tuple[str, str]]) -> None:
        """Send a response that has no body, and close the connection."""
        self._send(_head(status, headers), end=True)

    async def begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        """Send the head of a response; its body follows with `write`."""
        await self.send(_head(status, [*headers, ("transfer-encoding", "chunked")]))

    async def write(self, data: bytes) -> None:
        """Send a part of the body."""
        if data:
            await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    def finish(self) -> None:
        """End the body, and close the connection."""
        self._send(b"0\r\n\r\n", end=True)

    def close(self) -> None:
        """Close the connection, in any state."""
        self._reader = None
        self._send(b"", end=True)

    async def send(self, data: bytes) -> None:
        """Send bytes unchanged to the evaluator."""
        self._send(data)
        await self._wire.drain()

    def _send(self, data: bytes, *, end: bool = False) -> None:
        if not self.ended:
            self.began = True
            self.ended = end
            self._wire.reply(self.number, data, end=end)


class KeptAnswer(Connection):
    """Replaces an evaluator's connection when the host itself makes a request for the evaluator. Stores the response.

    Attributes:
      status: HTTP status of the response; 0 before there is a response.
      body: Body of the response.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.began = self.ended = False
        self.status, self.body = 0, b""

    def respond(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:  # noqa: ARG002 - as in its class
        """Store the status and the body of a response."""
        self.status, self.body = status, body

    async def answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Store the status and the body of a response."""
        self.respond(status, headers, body)

    def close(self) -> None:
        """Do nothing: there is no connection to close."""


def _head(status: int, headers: list[tuple[str, str]]) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in (*headers, ("connection", "close"))]
    return f"HTTP/1.1 {status} \r\n{''.join(lines)}\r\n".encode("latin-1", "replace")


def _named(head: h11.Request) -> HostPort | None:
    """Return the host in the target of a request. If the target is only a path, return None.

    Raises:
      Rejected: the target does not name a host.
    """
    target = head.target.decode("latin-1")
    if head.method == b"CONNECT":
        found = host_port(target, port=0)
    elif target.startswith("/"):
        return None
    else:
        scheme, _, rest = target.partition("://")
        found = host_port(re.split(r"[/?]", rest, maxsplit=1)[0], port=_HTTP) if scheme.lower() == "http" else None
    if found is None or not found.port or "*" in found.host:
        raise Rejected(400, "the request must name a host and a port; for https, use CONNECT")
    return found


def _check_head(head: h11.Request) -> None:
    """Refuse a request for another host, or a request that two readers could understand differently.

    Raises:
      Rejected: the request is for another host, or ambiguous.
    """
    hosts = [value for name, value in head.headers if name == b"host"]
    if head.method == b"CONNECT" or not head.target.startswith(b"/"):
        raise Rejected(
            403,
            (
                "this address is not a proxy: it serves granted models only; grant other hosts in the "
                "evaluator's `network`"
            ),
        )
    if len(hosts) != 1 or _OWN_HOST.fullmatch(hosts[0]) is None:
        raise Rejected(
            421,
            (
                "this address serves granted models only, but the Host header names another host; use the base "
                "URL as it is given"
            ),
        )
    _check_framing(head)
    if any(name == b"content-encoding" for name, _ in head.headers):
        raise Rejected(415, "send the body as it is, without Content-Encoding")


def _check_framing(head: h11.Request) -> None:
    names = [name for name, _ in head.headers]
    if b"transfer-encoding" in names and b"content-length" in names:
        raise Rejected(400, "the request has both Transfer-Encoding and Content-Length; send one of them")
    if b"upgrade" in names:
        raise Rejected(400, "this address speaks HTTP only; leave out the header Upgrade")


def _request(head: h11.Request, body: bytes, to: HostPort | None) -> Request:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    target = head.target.decode("latin-1")
    if to is not None and not target.startswith("/"):
        parts = urlsplit(target)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Request(head.method.decode("latin-1"), target, headers, body, to)
