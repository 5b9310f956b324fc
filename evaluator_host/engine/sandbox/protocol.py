"""Encodes and decodes frames of the runner protocol (runtimes/PROTOCOL.md, version 1).

This module does not do I/O, and does not trust its input.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import orjson

from evaluator_host.types.json_texts import Octets
from evaluator_host.types.json_values import InvalidJson, decode_json, has_many_values

PROTOCOL_VERSION: Final = 1
HEADER_BYTES: Final = 2 * 1024 * 1024  # size limit of a header: two log streams of 256 KiB, escaped as JSON
BODY_BYTES: Final = 64 * 1024 * 1024  # size limit of a body: a request of 32 MiB, doubled by escapes
CALLS_AHEAD: Final = 64  # maximum number of calls that may be unanswered at the same time
BYTES_AHEAD: Final = 1024 * 1024  # maximum size of all unanswered calls together; a single call may be larger
_PREFIX: Final = 8

Body: TypeAlias = bytes | tuple[Octets, ...]
"""The body of a frame, whole or in parts."""


def parts_of(body: Body) -> tuple[Octets, ...]:
    """Return the parts of a body; a body in one piece is one part."""
    return body if isinstance(body, tuple) else (body,)


class ProtocolError(Exception):
    """The other process sent an invalid frame; the host treats this as a crash of the sandboxed program."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame. Its header is decoded, its body is not."""

    header: dict[str, Any]
    body: bytes = b""

    @property
    def type(self) -> str:
        """Return the header's `type`; it is a string, because decoding has checked that."""
        return str(self.header["type"])


def encode(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Encode one frame. `body` must be JSON already.

    Raises:
      ProtocolError: header or body is over its limit.
    """
    return encode_head(header, len(body)) + body


def encode_head(header: dict[str, Any], body_bytes: int) -> bytes:
    """Encode the lengths and the header of a frame.

    `body_bytes` is the length of the body. `ProtocolError` is raised if header or body is over its limit.
    """
    head = orjson.dumps(header)
    if len(head) > HEADER_BYTES or body_bytes > BODY_BYTES:
        raise ProtocolError(f"frame too large: header {len(head)} bytes, body {body_bytes} bytes")
    return b"".join((len(head).to_bytes(4, "big"), body_bytes.to_bytes(4, "big"), head))


class FrameDecoder:
    """Splits a byte stream into frames.

    An incomplete frame is kept for the next call of `feed`. Memory is limited: if a frame exceeds `header_bytes` or
    `body_bytes`, `feed` raises `ProtocolError` as soon as the eight bytes with the lengths have arrived.
    """

    def __init__(self, *, header_bytes: int = HEADER_BYTES, body_bytes: int = BODY_BYTES) -> None:
        self._buffer = bytearray()
        self._header_bytes = header_bytes
        self.body_bytes = body_bytes  # size limit of the bodies that arrive from now on

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Add bytes, and yield every frame that is now complete.

        Raises:
          ProtocolError: the bytes are not frames; the decoder cannot be used any more.
        """
        self._buffer += data
        start = 0
        try:
            while (end := self._end_of_frame(start)) is not None:
                frame, start = self._frame(start, end), end
                yield frame
        finally:
            del self._buffer[:start]

    @property
    def announced_bytes(self) -> int:
        """Return the body size of the frame that is arriving; 0 until its lengths have arrived."""
        return int.from_bytes(self._buffer[4:_PREFIX], "big") if len(self._buffer) >= _PREFIX else 0

    def _end_of_frame(self, start: int) -> int | None:
        if len(self._buffer) - start < _PREFIX:
            return None
        head = int.from_bytes(self._buffer[start : start + 4], "big")
        body = int.from_bytes(self._buffer[start + 4 : start + 8], "big")
        if head > self._header_bytes or body > self.body_bytes:
            raise ProtocolError(f"frame too large: header {head} bytes, body {body} bytes")
        if head == 0:
            raise ProtocolError("frame without a header")
        end = start + _PREFIX + head + body
        return end if len(self._buffer) >= end else None

    def _frame(self, start: int, end: int) -> Frame:
        head_end = start + _PREFIX + int.from_bytes(self._buffer[start : start + 4], "big")
        with memoryview(self._buffer) as buffer:  # a slice of the buffer itself would copy the bytes
            head, body = bytes(buffer[start + _PREFIX : head_end]), bytes(buffer[head_end:end])
        if has_many_values(head):
            raise ProtocolError(f"a header of {len(head)} bytes has more values than the host accepts")
        try:
            header = decode_json(head)
        except InvalidJson as error:
            raise ProtocolError(str(error)) from error
        if not isinstance(header, dict) or not isinstance(header.get("type"), str):
            raise ProtocolError("frame header is not an object with a type")
        return Frame(header, body)
