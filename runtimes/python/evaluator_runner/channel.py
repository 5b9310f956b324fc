"""Reads frames from the host and queues frames to the host, without ever blocking."""

from __future__ import annotations

import os
import select
from _collections import deque  # type: ignore[import-not-found]

from evaluator_runner import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HEADER_BYTES = 2 * 1024 * 1024
BODY_BYTES = 64 * 1024 * 1024
_READ_BYTES = 64 * 1024  # bytes per read; for a larger buffer, malloc would map new memory at every read
# maximum size of a piece of output that is joined with others, so that many small frames take only one system call
_JOIN_BYTES = 64 * 1024
_LARGE_BYTES = 256 * 1024  # a call of at least this size is passed to its row while it is still arriving
_SPLICE_F_NONBLOCK = 2
_splice = getattr(os, "splice", None)


class BrokenChannel(Exception):
    """The host sent bytes that are not a frame, or closed the channel."""


class Arriving:
    """The body of a large call, of which a part is still in the channel.

    The body can be taken only once.

    Attributes:
      left: Number of bytes still to be read from the channel.
      late: Whether the host or the row took too long; if so, the rest of the body is read as it arrives.
    """

    __slots__ = ("_chunks", "_fd", "_size", "late", "left")

    def __init__(self, fd: int, size: int, first: bytes) -> None:
        self._fd = fd
        self._size = size
        self._chunks: deque[bytes | memoryview] = deque([first] if first else [])
        self.left = size - len(first)
        self.late = False

    def __len__(self) -> int:
        return self._size

    @property
    def taken(self) -> bool:
        """Return whether the whole body has been read or moved."""
        return not self.left and not self._chunks

    def read(self) -> bool:
        """Read and keep the bytes that have arrived; return False at the end of the channel."""
        data = os.read(self._fd, min(self.left, _READ_BYTES))
        self._chunks.append(data)
        self.left -= len(data)
        return bool(data)

    def move(self, fd: int) -> int:
        """Move the next bytes to a socket, if possible without reading them; return the number of bytes.

        Raises:
          BlockingIOError: the socket is full.
          OSError: the other end of the socket is closed.
        """
        if self._chunks:
            chunk = self._chunks[0]
            count = os.write(fd, chunk)
            if count < len(chunk):
                self._chunks[0] = memoryview(chunk)[count:]
            else:
                self._chunks.popleft()
            return count
        if not self.left or not select.select([self._fd], [], [], 0)[0]:
            return 0
        try:
            count = _splice(self._fd, fd, self.left, flags=_SPLICE_F_NONBLOCK) if _splice is not None else 0
        except BlockingIOError:
            raise
        except OSError:  # the kernel cannot move data from the channel to this socket, or the socket is closed
            return self.move(fd) if self.read() else 0
        self.left -= count
        return count


class Outgoing:
    """Bytes that wait to be written to a non-blocking descriptor.

    Attributes:
      size: Number of queued bytes.
      full: Whether the descriptor accepted fewer bytes than were queued.
    """

    __slots__ = ("_fd", "_pieces", "full", "size")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pieces: deque[bytes | memoryview | Arriving] = deque()
        self.size = 0
        self.full = False

    def add(self, head: bytes, body: bytes | memoryview | Arriving = b"") -> None:
        """Queue a frame."""
        self.size += len(head) + len(body)
        if isinstance(body, Arriving) or len(body) > _JOIN_BYTES:
            self._pieces.append(head)
            self._pieces.append(body)
        else:
            self._pieces.append(head + body)

    def flush(self) -> None:
        """Write as many queued bytes as the descriptor accepts without blocking.

        Raises:
          OSError: the reading end is closed.
        """
        self.full = False
        try:
            while self._pieces and self._write_some():
                pass
        except BlockingIOError:
            self.full = True

    def _write_some(self) -> bool:
        """Write some of the queued pieces, from the first; return whether the descriptor may accept more."""
        pieces = self._pieces
        first = pieces[0]
        if isinstance(first, Arriving):
            written = first.move(self._fd)
            self.size -= written
            if first.taken:
                pieces.popleft()
            return written > 0
        batch = []
        length = 0
        for piece in pieces:
            if isinstance(piece, Arriving):
                break
            batch.append(piece)
            length += len(piece)
            if len(batch) == 64 or length > _READ_BYTES:
                break
        written = os.writev(self._fd, batch)
        self.size -= written
        self._drop(written)
        self.full = written < length
        return not self.full

    def _drop(self, count: int) -> None:
        pieces = self._pieces
        while count:
            size = len(pieces[0])
            if size > count:
                pieces[0] = memoryview(pieces[0])[count:]
                return
            pieces.popleft()
            count -= size


class Channel:
    """Reads frames from the host and sends frames to it."""

    def __init__(self, fd_in: int, fd_out: int) -> None:
        self.fd_in = fd_in
        self.fd_out = fd_out
        os.set_blocking(fd_in, False)
        os.set_blocking(fd_out, False)
        self._buffer = bytearray()
        self._wanted = 8  # bytes that are needed before the next attempt to read a frame
        self._arriving: Arriving | None = None
        self.outgoing = Outgoing(fd_out)

    @property
    def arriving(self) -> Arriving | None:
        """Return the body of the last call from `read`, if a part of it is still in the channel; else None."""
        return self._arriving if self._arriving is not None and self._arriving.left else None

    def read(self) -> list[tuple[dict[str, Any], bytes | memoryview | Arriving]] | None:
        """Return the frames that have arrived, and a large call that has begun. Return None at the end of the channel.

        Raises:
          BrokenChannel: the bytes are not frames.
        """
        try:
            if (arriving := self.arriving) is not None:
                return [] if arriving.read() else None
            data = os.read(self.fd_in, _READ_BYTES)
        except BlockingIOError:
            return []
        if not data:
            return None
        self._buffer += data
        return self._cut()

    def _cut(self) -> list[tuple[dict[str, Any], bytes | memoryview | Arriving]]:
        buffer = self._buffer
        frames: list[tuple[dict[str, Any], bytes | memoryview | Arriving]] = []
        start = 0
        while len(buffer) - start >= self._wanted:
            head = int.from_bytes(buffer[start : start + 4], "big")
            body = int.from_bytes(buffer[start + 4 : start + 8], "big")
            if head > HEADER_BYTES or body > BODY_BYTES:
                raise BrokenChannel(f"a frame is too large: its header has {head} bytes, its body {body} bytes")
            if head == 0:
                raise BrokenChannel("a frame has no header")
            self._wanted = 8 + head + body
            middle = start + 8 + head
            if len(buffer) - start < self._wanted:
                if body > _LARGE_BYTES and len(buffer) >= middle:
                    frames += self._begin(start + 8, middle, body)
                break
            frames.append((_decode_header(buffer[start + 8 : middle]), self._body(middle, middle + body)))
            start = middle + body
            self._wanted = 8
        if self._buffer is buffer:
            del buffer[:start]
        return frames

    def _begin(self, start: int, middle: int, size: int) -> list[tuple[dict[str, Any], Arriving]]:
        """Return a list with the frame whose body has just begun, if it is a call to a new row process."""
        try:
            header = _decode_header(self._buffer[start:middle])
        except BrokenChannel:  # an invalid frame is refused once it has arrived
            return []
        if header.get("type") != "call" or header.get("share") is not None:
            return []
        self._arriving = Arriving(self.fd_in, size, bytes(self._buffer[middle:]))
        self._buffer, self._wanted = bytearray(), 8
        return [(header, self._arriving)]

    def _body(self, start: int, end: int) -> bytes | memoryview:
        """Return a part of the buffer.

        A large part at the end is not copied, but keeps the buffer alive.
        """
        if end == len(self._buffer) and end - start > _JOIN_BYTES:
            whole, self._buffer = self._buffer, bytearray()
            return memoryview(whole)[start:end]
        with memoryview(self._buffer) as view:  # a slice of the buffer itself would copy the bytes
            return bytes(view[start:end])

    def send(self, header: str, body: bytes = b"") -> None:
        """Queue a frame, which `outgoing.flush` sends; `header` is JSON text."""
        raw = header.encode()
        self.outgoing.add(len(raw).to_bytes(4, "big") + len(body).to_bytes(4, "big") + raw, body)


def _decode_header(raw: bytearray) -> dict[str, Any]:
    try:
        header = jsontext.decode(raw.decode())
    except (ValueError, RecursionError) as error:
        raise BrokenChannel(f"the header of a frame is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise BrokenChannel("the header of a frame is not an object")
    return header
