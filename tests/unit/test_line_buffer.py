"""Lines and events that arrive in small pieces take time in proportion to their length."""

import time
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_host.platform.models.gateway.protocols import EventStream
from evaluator_host.platform.models.routes import _lines
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.line_buffer import LineBuffer

LONG = b"x" * (4_000_000)
MOST_S = 5.0  # seconds of processor time; if the time grew with the square of the length, it would be a minute


def pieces(data: bytes, size: int = 100) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


async def arriving(data: bytes) -> AsyncIterator[bytes]:
    for piece in pieces(data):
        yield piece


@given(st.lists(st.binary(max_size=5).map(lambda piece: piece.replace(b"\x00", b"\n"))))
def test_lines_are_those_of_the_whole(sent: list[bytes]) -> None:
    buffer = LineBuffer()
    lines = [line for piece in sent for line in buffer.feed(piece)]
    assert [*lines, bytes(buffer.rest)] == b"".join(sent).split(b"\n")


async def test_a_long_line_in_small_pieces_is_read_in_linear_time() -> None:
    began = time.process_time()
    assert [line async for line in _lines(arriving(LONG + b"\n\nshort\nlast"))] == [LONG, b"short", b"last"]
    assert time.process_time() - began < MOST_S
    with pytest.raises(InvalidRequest, match="longer than 4 MB"):
        [line async for line in _lines(arriving(LONG + LONG))]


def test_a_long_event_in_small_pieces_is_read_in_linear_time() -> None:
    event = b"data: " + b"x\n" * 500_000 + b"x"
    stream, began = EventStream(hides_usage=False), time.process_time()
    passed = [stream.feed(piece) for piece in pieces(event + b"\r\n\r\ndata: last\r\n\r", 20)]
    assert b"".join(passed) == event + b"\n\n"
    assert stream.feed(b"\n") == b"data: last\n\n"
    assert time.process_time() - began < MOST_S
