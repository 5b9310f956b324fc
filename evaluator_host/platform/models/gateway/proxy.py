"""Connects evaluators to the other hosts that they were granted, by CONNECT or with plain HTTP.

The host resolves a name once for each connection, refuses addresses that are not public, and connects to the address
that it checked. The host cannot read TLS, so the first bytes of a tunnel must name the granted host (SNI). If they are
not TLS, the host reads them as one HTTP/1.1 request, and writes a new request with the same content.
"""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Protocol

import h11

from evaluator_host.engine.system.lookups import LookupFailed, Lookups
from evaluator_host.platform.models.gateway.connection import Connection, Rejected, Request, Tunnel
from evaluator_host.platform.models.gateway.hosts import HostPort, reachable

_CONNECT_S: Final = 10.0
_HELLO_S: Final = 10.0  # time limit, in seconds, for the first bytes of a tunnel, which name its host
_HELLO_BYTES: Final = 16 << 10  # number of bytes of TLS records within which a ClientHello must end
_READ_BYTES: Final = 64 << 10
_UNSENT_BYTES: Final = 8 << 20  # maximum number of bytes from an evaluator that may wait for a slow host
_HANDSHAKE: Final = 0x16
_CLIENT_HELLO: Final = 1
_SERVER_NAME, _ENCRYPTED_HELLO = 0, 0xFE0D
# the TLS record of the fatal alert `unrecognized_name` (RFC 8446, 6.2)
_UNRECOGNIZED_NAME: Final = b"\x15\x03\x03\x00\x02\x02\x70"
_HOP_BY_HOP: Final = frozenset(
    {"connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host"}
    | {"proxy-authorization", "proxy-authenticate", "content-length"}
)
_BODYLESS: Final = frozenset({204, 304})


class Waits(Protocol):
    """Callback that reports whether the evaluator is waiting for an answer on a connection."""

    def __call__(self, *, waits: bool) -> None:
        """Report that the evaluator begins to wait (`waits`), or that it stops waiting."""
        ...


class Proxy:
    """Connects the evaluators of one host to other hosts.

    Args:
      private: Networks such as `10.0.0.0/8`, in which granted hosts may have addresses.
      names: Looks up the hosts.
    """

    def __init__(self, private: Sequence[str], *, names: Lookups) -> None:
        self._private = [ipaddress.ip_network(one) for one in private]
        self._names = names

    @asynccontextmanager
    async def connect(
        self, to: HostPort, *, workspace: str
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Connect to a host for a workspace, at an address that was checked. Yield a reader and a writer.

        Raises:
          Rejected: the host has no address that evaluators may reach, or does not answer.
        """
        reader, writer = await self._open(to, workspace)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def _open(self, to: HostPort, workspace: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            async with asyncio.timeout(_CONNECT_S):
                addresses = await self._addresses(to, workspace)
                for position, address in enumerate(addresses, 1):
                    try:
                        return await asyncio.open_connection(address, to.port, limit=_READ_BYTES)
                    except OSError as error:
                        if position == len(addresses):
                            raise Rejected(
                                502, f"{to} cannot be reached: {error.strerror or error}", "unreachable"
                            ) from error
        except TimeoutError as error:
            raise Rejected(504, f"{to} did not answer within {_CONNECT_S:g} s", "unreachable") from error
        message = (
            f"{to} has no public address; the operator can allow private networks with EVALUATOR_HOST_NETWORK_PRIVATE"
        )
        raise Rejected(403, message, "address_not_allowed")

    async def _addresses(self, to: HostPort, workspace: str) -> list[str]:
        try:
            found = await self._names.look_up(to.host, to.port, workspace=workspace)
        except LookupFailed as error:
            raise Rejected(504 if error.slow else 502, str(error), "unreachable", again=error.slow) from error
        return reachable(found, self._private)


@dataclass(slots=True)
class RowTraffic:
    """The workspace of an evaluator, and callbacks that report its proxied traffic and its waits."""

    workspace: str
    count: Callable[[int], None]  # counts bytes sent and received; raises Rejected if there are too many
    waits: Waits  # reports whether the evaluator waits for an answer
    ready: Callable[[], Awaitable[None]]  # returns once the evaluator may have its answer
    remaining_s: Callable[[], float]  # returns the seconds that the evaluator may still wait


async def serve_proxied(proxy: Proxy, connection: Connection, request: Request, to: HostPort, row: RowTraffic) -> None:
    """Serve one request of an evaluator to another host that it was granted, by CONNECT or with plain HTTP.

    Raises:
      Rejected: the host does not answer in HTTP, or the bytes in the tunnel name another host.
      TimeoutError: the evaluator has waited for the maximum time.
    """
    async with proxy.connect(to, workspace=row.workspace) as (reader, writer):
        if request.method != "CONNECT":
            sent = _anew(request, to)
            row.count(len(sent.data))
            await _pass_request(connection, request, sent, row, (reader, writer))
            return
        await row.ready()
        tunnel = connection.establish(row.count)
        first, hello = await _first_bytes(tunnel)
        if hello is not None:
            if not _names(hello, to):
                await tunnel.write(_UNRECOGNIZED_NAME)
                raise Rejected(
                    421,
                    "the TLS connection names another host than the request; use the same name in both",
                    "not_granted",
                )
            await _pass_bytes(tunnel, first, row, (reader, writer))
            return
        inner = await tunnel.request(first, to)
        row.waits(waits=True)
        # the tunnel has already counted the bytes of the request
        await _pass_request(connection, inner, _anew(inner, to), row, (reader, writer))


async def _first_bytes(tunnel: Tunnel) -> tuple[bytes, bytes | None]:
    """Return the first bytes of a tunnel, and the ClientHello with which they begin; None if the bytes are not TLS."""
    hello = _Hello()
    async with asyncio.timeout(_HELLO_S):
        while not hello.is_whole:
            hello.feed(await tunnel.read())
            if hello.data[:1] not in (b"", bytes([_HANDSHAKE])):
                return bytes(hello.data), None
    return bytes(hello.data), bytes(hello.message[: hello.end])


def _names(hello: bytes, to: HostPort) -> bool:
    named = server_name(hello)
    return to.is_address if named is None else named.lower().rstrip(".") == to.host


class _Hello:
    """Collects a ClientHello from TLS records as they arrive, and reads each record once."""

    def __init__(self) -> None:
        self.data = bytearray()  # all bytes that have arrived
        self.message = bytearray()  # the part of the ClientHello whose records are complete
        self._at = 0  # position in `data` at which the next record begins

    @property
    def end(self) -> int:
        """Return the position in `message` at which the ClientHello ends."""
        return 4 + int.from_bytes(self.message[1:4])

    @property
    def is_whole(self) -> bool:
        """Return whether the ClientHello is complete."""
        return len(self.message) >= 4 and len(self.message) >= self.end

    def feed(self, data: bytes) -> None:
        """Add bytes, and parse as much of the ClientHello as has arrived. If they are not TLS, only store them.

        Raises:
          Rejected: the bytes begin a handshake, but not with a ClientHello of an ordinary size.
        """
        self.data += data
        while self.data[:1] == bytes([_HANDSHAKE]) and not self.is_whole and len(self.data) >= self._at + 5:
            kind, version, size = self.data[self._at], self.data[self._at + 1], self.data[self._at + 3 : self._at + 5]
            end = self._at + 5 + int.from_bytes(size)
            if kind != _HANDSHAKE or version != 3 or not self._at + 5 < end <= self._at + 5 + (1 << 14):
                raise Rejected(400, "the connection does not begin with a TLS record")
            if self._at > _HELLO_BYTES:
                raise Rejected(400, "the ClientHello is too long")
            if len(self.data) < end:
                return
            self.message += self.data[self._at + 5 : end]
            self._at = end
            if self.message[0] != _CLIENT_HELLO:
                raise Rejected(400, "the connection does not begin with a TLS ClientHello")


def server_name(hello: bytes) -> str | None:
    """Return the name in the server_name extension of a ClientHello (RFC 6066, 3), or None.

    Raises:
      Rejected: the ClientHello is malformed, names several hosts, or is encrypted.
    """
    try:
        rest = _Fields(hello[4:])
        rest.skip(2 + 32)  # the version and the random bytes
        rest.vector(1)  # the session id
        rest.vector(2)  # the cipher suites
        rest.vector(1)  # the compression methods
        extensions, found = _Fields(rest.vector(2)) if rest.data else _Fields(b""), dict[int, bytes]()
        while extensions.data:
            kind = int.from_bytes(extensions.skip(2))
            if kind in found:
                raise Rejected(400, "an extension appears twice")
            found[kind] = extensions.vector(2)
        if _ENCRYPTED_HELLO in found:
            raise Rejected(400, "the ClientHello is encrypted")
        if _SERVER_NAME not in found:
            return None
        names = _Fields(_Fields(found[_SERVER_NAME]).vector(2))
        if names.skip(1) != b"\0":
            raise Rejected(400, "the ClientHello does not name a host")
        name = names.vector(2)
        if names.data:
            raise Rejected(400, "the ClientHello names several hosts")
        return name.decode("ascii")
    except (IndexError, UnicodeDecodeError) as error:
        raise Rejected(400, "the ClientHello is malformed") from error


class _Fields:
    """Reads the fields of a TLS message from its beginning. Raises IndexError if the message ends early."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def skip(self, size: int) -> bytes:
        if len(self.data) < size:
            raise IndexError(size)
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def vector(self, length_bytes: int) -> bytes:
        return self.skip(int.from_bytes(self.skip(length_bytes)))


async def _pass_bytes(
    tunnel: Tunnel, first: bytes, row: RowTraffic, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    reader, writer = streams

    async def send() -> None:
        data = first
        while True:
            row.waits(waits=True)
            writer.write(data)
            if writer.transport.get_write_buffer_size() > _UNSENT_BYTES:
                raise Rejected(
                    502, "the other host does not accept more data; send less, or try again later", "unreachable"
                )
            data = await tunnel.read()

    sending = asyncio.create_task(send())
    # when sending ends, abort the connection, which also ends the other direction
    sending.add_done_callback(lambda _task: writer.transport.abort())
    try:
        while data := await _read(reader, row):
            row.count(len(data))
            await row.ready()
            await tunnel.write(data)
    finally:
        sending.cancel()
        await asyncio.wait([sending])
    if not sending.cancelled() and (error := sending.exception()) is not None:
        raise error


async def _read(reader: asyncio.StreamReader, row: RowTraffic) -> bytes:
    """Return the next bytes from the other host; `b""` at the end, or if the evaluator has waited too long."""
    while (left_s := row.remaining_s()) > 0:
        with suppress(TimeoutError):
            async with asyncio.timeout(left_s):
                try:
                    return await reader.read(_READ_BYTES)
                except OSError:
                    break
    return b""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request as this host writes it, and the reader of its response."""

    data: bytes
    http: h11.Connection


def _anew(request: Request, to: HostPort) -> _Sent:
    http = h11.Connection(h11.CLIENT)
    headers = [(name, value) for name, value in request.headers.items() if name not in _hop_by_hop(request.headers)]
    length = [("content-length", str(len(request.body)))] if request.body or request.method in ("POST", "PUT") else []
    head = h11.Request(
        method=request.method,
        target=request.target,
        headers=[("host", to.authority), *headers, *length, ("connection", "close")],
    )
    data = (http.send(head) or b"") + ((http.send(h11.Data(data=request.body)) or b"") if request.body else b"")
    return _Sent(data + (http.send(h11.EndOfMessage()) or b""), http)


async def _pass_request(
    connection: Connection,
    request: Request,
    sent: _Sent,
    row: RowTraffic,
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
) -> None:
    """Forward a request and its response.

    The request and the response are parsed and rewritten, not copied, so that their lengths are unambiguous.
    """
    reader, writer = streams
    writer.write(sent.data)
    while True:
        await asyncio.sleep(0)  # let other tasks run, because one read may return thousands of tiny chunks
        event = await _next_event(sent.http, reader, row)
        if isinstance(event, h11.Response):
            await _begin(connection, request, event)
        elif isinstance(event, h11.Data):
            await connection.write(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage):
            await row.ready()
            connection.finish()
            return
        elif not isinstance(event, h11.InformationalResponse):
            raise Rejected(502, "the other host ended its answer before it was complete; try again", "bad_answer")


async def _next_event(http: h11.Connection, reader: asyncio.StreamReader, row: RowTraffic) -> object:
    """Return the next part of a response, or `ConnectionClosed` or `PAUSED` if there is no further part.

    Raises:
      Rejected: the response is not valid HTTP.
      TimeoutError: the evaluator has waited for the maximum time.
    """
    try:
        while (event := http.next_event()) is h11.NEED_DATA:
            if not (data := await _read(reader, row)) and row.remaining_s() <= 0:
                raise TimeoutError
            row.count(len(data))
            http.receive_data(data)
    except h11.RemoteProtocolError as error:
        raise Rejected(502, f"the other host did not answer with valid HTTP/1.1: {error}", "bad_answer") from error
    return event


async def _begin(connection: Connection, request: Request, response: h11.Response) -> None:
    given = {name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers}
    dropped = _hop_by_hop(given)
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in response.headers
        if name.decode("latin-1") not in dropped
    ]
    if request.method == "HEAD" or response.status_code in _BODYLESS:
        connection.respond_head(response.status_code, headers)
    else:
        await connection.begin(response.status_code, headers)


def _hop_by_hop(headers: dict[str, str]) -> frozenset[str]:
    named = {one.strip().lower() for one in headers.get("connection", "").split(",")}
    return _HOP_BY_HOP | named
