"""Collects the output of user code: reads the pipes all the time, and keeps a limited number of bytes.

All rows use the same pair of pipes in turn. When a row is over, no process is left that could still write to them.
"""

from __future__ import annotations

import os
import select

from evaluator_runner import jsontext
from evaluator_runner.channel import HEADER_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Taken: TypeAlias = "tuple[tuple[bytes, bool], tuple[bytes, bool]]"

_READ_BYTES = 64 * 1024
_DRAIN_BYTES = 1024 * 1024  # the largest pipe that an ordinary user can make
_scratch = bytearray(_READ_BYTES)


class LogStream:
    """Standard output or standard error: a pipe, and the bytes kept from it.

    Attributes:
      fd: The descriptor of the pipe's reading end.
      writer: The descriptor of the writing end; it is descriptor 1 or 2 in processes of user code.
    """

    __slots__ = ("_kept", "_limit", "_lost", "fd", "writer")

    def __init__(self) -> None:
        self.fd, self.writer = os.pipe()
        os.set_blocking(self.fd, False)
        self._limit = 0
        self._kept = bytearray()
        self._lost = 0

    def keep(self, limit: int) -> None:
        """From now on, keep up to `limit` bytes of each row's output."""
        self._limit = limit

    def read(self) -> int:
        """Read the pipe once, without waiting; return the number of bytes that were read."""
        try:
            size = os.readv(self.fd, [_scratch])
        except BlockingIOError:
            return 0
        # keep room for two rows, because the next row may already be running
        room = min(size, 2 * self._limit - len(self._kept))
        if room > 0 and not self._lost:
            self._kept += memoryview(_scratch)[:room]
            self._lost = size - room
        else:
            self._lost += size
        return size

    def drain(self) -> None:
        """Read the bytes in the pipe now, but at most the pipe's capacity, because a row may print endlessly."""
        total = 0
        while total < _DRAIN_BYTES and (size := self.read()):
            total += size
            if size < _READ_BYTES:
                break

    def take(self, count: int | None = None) -> tuple[bytes, bool]:
        """Remove and return the first `count` kept bytes (None for all), and whether any bytes were dropped."""
        if count is None:
            kept, lost = self._kept, self._lost
            self._kept, self._lost = bytearray(), 0
        else:
            kept = self._kept[:count]
            lost = max(0, count - len(kept))
            del self._kept[:count]
            self._lost = max(0, self._lost - lost)
        return bytes(kept[: self._limit]), lost > 0 or len(kept) > self._limit

    def discard(self) -> None:
        """Drop all bytes, including those still in the pipe."""
        while self.read():
            pass
        self.forget()

    def forget(self) -> None:
        """Drop the bytes that were kept."""
        if self._kept or self._lost:
            self.take()


class Logs:
    """Standard output and standard error."""

    __slots__ = ("_arrived", "err", "out")

    def __init__(self) -> None:
        self.out = LogStream()
        self.err = LogStream()
        pipes = select.poll()
        pipes.register(self.out.fd, select.POLLIN)
        pipes.register(self.err.fd, select.POLLIN)
        self._arrived = pipes.poll

    def keep(self, limit: int) -> None:
        """From now on, keep up to `limit` bytes of each stream for each row."""
        self.out.keep(limit)
        self.err.keep(limit)

    def drain(self) -> None:
        """Read the output so far."""
        if self._arrived(0):
            self.out.drain()
            self.err.drain()

    def take(self, out_bytes: int | None = None, err_bytes: int | None = None) -> Taken:
        """Remove and return the first kept bytes of each stream (None for all), and whether any bytes were dropped."""
        return self.out.take(out_bytes), self.err.take(err_bytes)

    def discard(self) -> None:
        """Drop all bytes; no process may still be writing."""
        if self._arrived(0):
            self.out.discard()
            self.err.discard()
        else:
            self.out.forget()
            self.err.forget()


def logs_json(stdout: tuple[bytes, bool], stderr: tuple[bytes, bool]) -> str:
    """Return a header's `logs` field as JSON text; `null` if nothing was printed."""
    if not stdout[0] and not stderr[0]:
        return "null"
    out, err = (stream[0].decode("utf-8", "replace") for stream in (stdout, stderr))
    truncated = stdout[1] or stderr[1]
    while True:
        flag = "true" if truncated else "false"
        text = f'{{"stdout":{jsontext.quote(out)},"stderr":{jsontext.quote(err)},"truncated":{flag}}}'
        if len(text) * 4 < HEADER_BYTES or len(text.encode()) < HEADER_BYTES - 65536:
            return text
        # A control character takes six bytes in JSON, so the logs may be over the header's own limit.
        out, err, truncated = out[: len(out) // 2], err[: len(err) // 2], True
