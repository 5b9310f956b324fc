"""The byte channel to a container: the engine's attach stream, hijacked from an HTTP connection.

asyncio reads and writes the stream over a Unix socket, TCP or TLS, without a thread between a row and its runner.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, cast

from evaluator_host.engine.system.keep_alive import keep_alive
from evaluator_host.types.json_texts import Octets

STDERR_TAIL_BYTES: Final = 8 * 1024
READ_BYTES: Final = 256 * 1024  # maximum number of bytes that `Link.read` returns at once
PAUSE_BYTES: Final = 1024 * 1024  # from this many unread bytes on, the host stops reading, so that the guest blocks
RESUME_BYTES: Final = 256 * 1024
WRITE_HIGH_BYTES: Final = 1024 * 1024

_HEADER: Final = 8
# size limit of the response to an attach request: an engine sends 200 bytes, or an error in JSON
_HANDSHAKE_BYTES: Final = 64 * 1024
_STDERR: Final = 2


class AttachFailed(Exception):
    """The engine refused to attach, or did not send a valid response; `status` is the HTTP status, or 0."""

    def __init__(self, detail: str, *, status: int = 0) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """The address of an engine: a Unix socket's path, or host and port, with or without TLS."""

    path: str | None = None
    host: str = ""
    port: int = 0
    tls: ssl.SSLContext | None = None


class Demultiplexer:
    """Splits the attach stream into frames: an 8-byte header (stream number, three zeros, length), then a payload.

    Payloads are passed on in pieces as they arrive, so that a long frame does not take up memory here.
    """

    def __init__(self) -> None:
        self._header = bytearray()
        self._stream = 0
        self._left = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Add received bytes, and yield `(stream, bytes)`; stream 1 is standard output, stream 2 is standard error."""
        start = 0
        while start < len(data):
            if self._left == 0:
                start = self._take_header(data, start)
                continue
            piece = data[start : start + self._left]
            self._left -= len(piece)
            start += len(piece)
            yield self._stream, piece

    def _take_header(self, data: bytes, start: int) -> int:
        piece = data[start : start + _HEADER - len(self._header)]
        self._header += piece
        if len(self._header) == _HEADER:
            self._stream = self._header[0]
            self._left = int.from_bytes(self._header[4:], "big")
            self._header.clear()
        return start + len(piece)


class Inbox:
    """Buffers a container's output: all of standard output, and the end of standard error."""

    def __init__(self, *, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._demultiplexer = Demultiplexer()
        self._chunks: deque[bytes] = deque()
        self._unread = 0
        self._paused = False
        self._pause = pause
        self._resume = resume
        self._waiter: asyncio.Future[None] | None = None
        self._stderr = bytearray()
        self.closed = False

    @property
    def ended(self) -> bool:
        """Return whether the output stream has ended and all of it was read."""
        return self.closed and not self._chunks

    @property
    def stderr_tail(self) -> str:
        """Return the last 8 KiB of standard error."""
        return self._stderr.decode("utf-8", "replace")

    def feed(self, data: bytes) -> None:
        for stream, piece in self._demultiplexer.feed(data):
            if stream == _STDERR:
                self._stderr += piece
                del self._stderr[:-STDERR_TAIL_BYTES]
            else:
                self._chunks.append(piece)
                self._unread += len(piece)
        if self._unread > PAUSE_BYTES and not self._paused:
            self._paused = True
            self._pause()
        self._wake()

    def close(self) -> None:
        self.closed = True
        self._wake()

    async def read(self) -> bytes:
        """Return the next bytes of standard output; `b""` at the end of the stream."""
        while not self._chunks:
            if self.closed:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        chunk = self._chunks.popleft()
        if len(chunk) > READ_BYTES:
            self._chunks.appendleft(chunk[READ_BYTES:])
            chunk = chunk[:READ_BYTES]
        self._unread -= len(chunk)
        if self._paused and self._unread < RESUME_BYTES:
            self._paused = False
            self._resume()
        return chunk

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Attachment(asyncio.Protocol):
    """The connection to an attached container: first the HTTP upgrade, then the hijacked stream."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.upgraded: asyncio.Future[None] = loop.create_future()
        self.inbox = Inbox(pause=self._pause_reading, resume=self._resume_reading)
        self._answer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._closed: asyncio.Future[None] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport without checking its class.

        uvloop's transport has the methods of asyncio's transport, but is not a subclass of it.
        """
        self._transport = cast("asyncio.Transport", transport)
        keep_alive(transport.get_extra_info("socket"))
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES)

    def data_received(self, data: bytes) -> None:
        """Parse the response to the upgrade, then collect the container's output."""
        if self.upgraded.done():
            self.inbox.feed(data)
            return
        self._answer += data
        head, separator, rest = self._answer.partition(b"\r\n\r\n")
        if separator or len(self._answer) > _HANDSHAKE_BYTES:
            self._finish_upgrade(bytes(head), bytes(rest))

    def eof_received(self) -> bool:
        """Close this side of the connection too, because the container or the engine has ended."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake every task that waits to read, write or close."""
        if not self.upgraded.done():
            self.upgraded.set_exception(AttachFailed(f"the engine closed the connection: {exc or 'no answer'}"))
        self.inbox.close()
        self._writable.set()
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        """Make `drain` wait until the send buffer has room again."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let `drain` return, because the send buffer has room again."""
        self._writable.set()

    def write(self, data: Octets) -> None:
        """Queue bytes for the container's standard input; do nothing if the connection is closed."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the send queue has room, or the connection is closed."""
        await self._writable.wait()

    async def close(self) -> None:
        """Close the connection, and wait until its descriptor is closed."""
        if self._transport is not None:
            self._transport.abort()
            await asyncio.wait([self._closed])

    def _finish_upgrade(self, head: bytes, rest: bytes) -> None:
        status_line = head.split(b"\r\n", 1)[0].decode("latin-1")
        parts = status_line.split(" ", 2)
        status = int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0
        if status not in (101, 200):
            words = rest.decode("utf-8", "replace").strip() or status_line
            self.upgraded.set_exception(AttachFailed(words, status=status))
            return
        self.upgraded.set_result(None)
        if rest:
            self.inbox.feed(rest)

    def _pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()


async def attach(endpoint: EngineAddress, container: str, *, api_version: str, timeout_s: float) -> Attachment:
    """Attach to a container's streams, and return the connection.

    Call this before the container starts, so that no output is missed.

    `timeout_s` is the time limit for connecting and attaching together.

    Raises:
      AttachFailed: the engine refused.
      OSError: the engine does not listen at this address.
      TimeoutError: the engine did not answer in time.
    """
    query = "stream=1&stdin=1&stdout=1&stderr=1"
    request = (
        f"POST /v{api_version}/containers/{container}/attach?{query} HTTP/1.1\r\n"
        f"Host: {endpoint.host or 'localhost'}\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n"
    )
    async with asyncio.timeout(timeout_s):
        attachment = await _connect(endpoint)
        try:
            attachment.write(request.encode("ascii"))
            await asyncio.shield(attachment.upgraded)
        except BaseException:
            attachment.upgraded.cancel()
            await attachment.close()
            raise
    return attachment


async def _connect(endpoint: EngineAddress) -> Attachment:
    loop = asyncio.get_running_loop()
    if endpoint.path is not None:
        return (await loop.create_unix_connection(Attachment, endpoint.path))[1]
    connection = loop.create_connection(Attachment, endpoint.host, endpoint.port, ssl=endpoint.tls)
    return (await connection)[1]


async def open_streams(endpoint: EngineAddress) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the engine for one plain HTTP request; return reader and writer. Raise OSError if nothing listens."""
    if endpoint.path is not None:
        return await asyncio.open_unix_connection(endpoint.path)
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=endpoint.tls)
    keep_alive(writer.get_extra_info("socket"))
    return reader, writer
