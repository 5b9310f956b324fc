"""Frames to and from a runner (runtimes/PROTOCOL.md, version 1). Sans-I/O: bytes in, frames out, nothing trusted."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

import orjson

PROTOCOL_VERSION: Final = 1
HEADER_BYTES: Final = 2 * 1024 * 1024  # two log streams of 256 KiB, escaped as JSON
BODY_BYTES: Final = 64 * 1024 * 1024  # the greatest request, 32 MiB, doubled by escapes
CALLS_AHEAD: Final = 64  # calls that may be unanswered at once
BYTES_AHEAD: Final = 1024 * 1024  # and their bytes, unless a single one is larger
_PREFIX: Final = 8
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")  # orjson makes a float of an integer beyond 64 bits


class ProtocolError(Exception):
    """The peer sent something that is no frame; inside the host this is always the guest's crash."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A decoded header and an undecoded body."""

    header: dict[str, Any]
    body: bytes = b""

    @property
    def type(self) -> str:
        """The header's `type`; checked to be a string when the frame was decoded."""
        return str(self.header["type"])


def encode(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Encode one frame. `body` is JSON already.

    Raises:
      ProtocolError: header or body is over its limit.
    """
    head = orjson.dumps(header)
    if len(head) > HEADER_BYTES or len(body) > BODY_BYTES:
        raise ProtocolError(f"frame too large: header {len(head)} bytes, body {len(body)} bytes")
    return b"".join((len(head).to_bytes(4, "big"), len(body).to_bytes(4, "big"), head, body))


def decode_json(data: bytes) -> Any:
    """Decode JSON that somebody untrusted wrote; integers beyond 64 bits stay exact, lone surrogates are replaced.

    Raises:
      ProtocolError: it is not JSON.
    """
    if _LONG_NUMBER.search(data) is None:
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(data)
    try:
        return _decode_exactly(data.decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {error}") from error


def _decode_exactly(text: str) -> Any:
    """Decode by the standard library, which keeps long integers; half an emoji becomes a question mark."""
    value = json.loads(text, parse_constant=_refuse_constant)
    if "\\ud" not in text and "\\uD" not in text:
        return value
    again = json.dumps(value, ensure_ascii=False)
    try:
        again.encode()
    except UnicodeEncodeError:
        return json.loads(again.encode("utf-8", "replace"))
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def encode_json(value: Any) -> bytes:
    """Encode JSON for a guest or a caller; dataclasses become objects, integers beyond 64 bits stay exact."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z)
    except TypeError:  # an integer beyond 64 bits
        plain = json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))
        return plain.encode("utf-8", "replace")


class FrameDecoder:
    """Cuts a byte stream into frames.

    `feed` keeps an incomplete frame for the next call. Memory is bounded: a length that cannot be is refused when its
    eight bytes have arrived, before anything is kept for it.
    """

    def __init__(self, *, header_bytes: int = HEADER_BYTES, body_bytes: int = BODY_BYTES) -> None:
        self._buffer = bytearray()
        self._header_bytes = header_bytes
        self._body_bytes = body_bytes

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield every frame that is complete now.

        Raises:
          ProtocolError: the stream is no sequence of frames; the decoder cannot go on.
        """
        self._buffer += data
        start = 0
        try:
            while (end := self._end_of_frame(start)) is not None:
                frame, start = self._frame(start, end), end
                yield frame
        finally:
            del self._buffer[:start]

    def _end_of_frame(self, start: int) -> int | None:
        if len(self._buffer) - start < _PREFIX:
            return None
        head = int.from_bytes(self._buffer[start : start + 4], "big")
        body = int.from_bytes(self._buffer[start + 4 : start + 8], "big")
        if head > self._header_bytes or body > self._body_bytes:
            raise ProtocolError(f"frame too large: header {head} bytes, body {body} bytes")
        if head == 0:
            raise ProtocolError("frame without a header")
        end = start + _PREFIX + head + body
        return end if len(self._buffer) >= end else None

    def _frame(self, start: int, end: int) -> Frame:
        head_end = start + _PREFIX + int.from_bytes(self._buffer[start : start + 4], "big")
        header = decode_json(bytes(self._buffer[start + _PREFIX : head_end]))
        if not isinstance(header, dict) or not isinstance(header.get("type"), str):
            raise ProtocolError("frame header is not an object with a type")
        return Frame(header, bytes(self._buffer[head_end:end]))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} has no JSON form")
