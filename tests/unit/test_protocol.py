"""Frames can be decoded from a stream in pieces of any size; bytes that are not a frame raise a ProtocolError."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_host.engine.sandbox.protocol import BODY_BYTES, HEADER_BYTES, Frame, FrameDecoder, ProtocolError, encode
from evaluator_host.types.json_values import InvalidJson, decode_given, decode_json, encode_json

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
HEADERS = st.builds(
    lambda type_, rest: {**rest, "type": type_},
    st.text(max_size=8),
    st.dictionaries(st.text(max_size=5), JSON, max_size=4),
)
FRAMES = st.lists(st.tuples(HEADERS, st.binary(max_size=40)), max_size=6)


def cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    start = 0
    for size in sizes:
        yield data[start : start + size]
        start += size
    yield data[start:]


@given(FRAMES, st.lists(st.integers(0, 30), max_size=40))
@pytest.mark.slow
def test_frames_come_out_as_they_went_in_however_the_stream_is_cut(
    frames: list[tuple[dict[str, Any], bytes]], sizes: list[int]
) -> None:
    stream = b"".join(encode(header, body) for header, body in frames)
    decoder = FrameDecoder()
    found = [frame for piece in cut(stream, sizes) for frame in decoder.feed(piece)]
    assert [(frame.header, frame.body) for frame in found] == frames


@given(st.binary(max_size=200), st.integers(1, 50))
def test_garbage_is_a_protocol_error_or_an_unfinished_frame(data: bytes, size: int) -> None:
    decoder = FrameDecoder(header_bytes=64, body_bytes=64)
    try:
        for start in range(0, len(data), size):
            for frame in decoder.feed(data[start : start + size]):
                assert isinstance(frame.type, str)
    except ProtocolError:
        return


@given(st.binary(max_size=60), st.binary(max_size=10))
def test_any_header_bytes(header: bytes, body: bytes) -> None:
    data = len(header).to_bytes(4, "big") + len(body).to_bytes(4, "big") + header + body
    try:
        (frame,) = FrameDecoder().feed(data)
    except ProtocolError:
        return
    assert frame.body == body
    assert frame.header == json.loads(header)


@pytest.mark.parametrize(
    "header", [b"", b"{}", b"[]", b'"type"', b'{"type": 1}', b'{"type": null}', b"{", b"\xff", b"null"]
)
def test_a_header_is_an_object_with_a_type(header: bytes) -> None:
    data = len(header).to_bytes(4, "big") + bytes(4) + header
    with pytest.raises(ProtocolError):
        list(FrameDecoder().feed(data))


@pytest.mark.parametrize("prefix", [(HEADER_BYTES + 1, 0), (0, BODY_BYTES + 1), (2**32 - 1, 2**32 - 1)])
def test_a_length_over_its_limit_is_refused_before_anything_arrives(prefix: tuple[int, int]) -> None:
    data = b"".join(length.to_bytes(4, "big") for length in prefix)
    decoder = FrameDecoder()
    assert list(decoder.feed(data[:7])) == []
    with pytest.raises(ProtocolError):
        list(decoder.feed(data[7:]))


def test_limits_themselves_are_allowed() -> None:
    header = {"type": "x", "pad": ""}
    header["pad"] = "a" * (HEADER_BYTES - len(orjson.dumps(header)))
    (frame,) = FrameDecoder().feed(encode(header))
    assert frame == Frame(header, b"")
    header["pad"] += "a"
    with pytest.raises(ProtocolError):
        encode(header)


def test_frames_before_a_bad_one_still_come_out() -> None:
    decoder = FrameDecoder()
    frames = decoder.feed(encode({"type": "a"}) + encode({"type": "b"}, b"1") + b"\xff" * 8)
    assert [next(frames).type, next(frames).type] == ["a", "b"]
    with pytest.raises(ProtocolError):
        next(frames)


def test_a_stream_that_was_left_in_the_middle_goes_on_where_it_was_left() -> None:
    decoder = FrameDecoder()
    first = decoder.feed(encode({"type": "a"}) + encode({"type": "b"}))
    assert next(first).type == "a"
    first.close()
    assert [frame.type for frame in decoder.feed(encode({"type": "c"}))] == ["b", "c"]


@given(st.integers(-(10**60), 10**60) | st.integers(2**62, 2**66), st.booleans())
def test_integers_of_any_width_are_exact(number: int, nested: bool) -> None:
    value: Any = {"a": [0.5, {"b": number}]} if nested else number
    assert decode_json(json.dumps(value).encode()) == value


@given(JSON)
def test_json_is_read_as_it_was_written(value: Any) -> None:
    assert decode_json(orjson.dumps(value)) == value


def test_an_integer_too_large_for_a_float_is_exact() -> None:
    assert decode_json(b'{"score": 1' + b"0" * 400 + b"}") == {"score": 10**400}


def test_a_lone_surrogate_is_replaced() -> None:
    """A lone surrogate is replaced. In JavaScript, `text.slice(0, 5)` can cut an emoji in two; this is a mistake in the
    evaluator, and must not be a crash.
    """
    (text,) = decode_json(b'["ab\\ud83d"]')
    assert text.startswith("ab")
    text.encode()


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"NaN", b"[Infinity]", b"{'a': 1}", b"1 2", b"\xff\xfe1\x00", b'"\xff"', b"[1" + b"0" * 5000 + b"]"],
)
def test_bytes_that_are_not_json_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidJson):
        decode_json(data)


@pytest.mark.parametrize("levels", [200, 990, 1020, 5000])
def test_nesting_never_raises_anything_else(levels: int) -> None:
    for opening, leaf in product(("[", '{"a":'), ("1", "1e300", "9" * 30, "9" * 400, "NaN")):
        data = opening * levels + leaf + ("]" if opening == "[" else "}") * levels
        with suppress(InvalidJson):
            decode_json(data.encode())


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (r'{"outputs": "\ud83d"}', "$.outputs"),
        (r'{"inputs": {"a": ["x", "cut \uDE00"]}}', "$.inputs.a[1]"),
        (r'["\ude00\ud83d"]', "$[0]"),
        (r'{"a": {"\ud83d": 1}}', "$.a (a key)"),
        (r'[12345678901234567890123, "\ud83dx"]', "$[1]"),
    ],
)
def test_a_caller_gives_no_half_of_a_surrogate_pair(text: str, path: str) -> None:
    with pytest.raises(InvalidJson, match=re.escape(f"the text at {path} ends or begins in the middle")):
        decode_given(text.encode())


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("1e400", "$"),
        ('{"inputs": {"a b": [1, -1E+999]}}', '$.inputs["a b"][1]'),
        ('{"a": 1, "b":\t1.5e0309}', "$.b"),
        (f'{{"a": 1{"0" * 400}.5}}', "$.a"),
        (f'{{"{"k" * 5000}": 1e400}}', f"$.{'k' * 100}"),
    ],
)
def test_a_caller_gives_no_number_that_would_be_infinite(text: str, path: str) -> None:
    with pytest.raises(InvalidJson, match=re.escape(f"the number at {path} is too large for a float")):
        decode_given(text.encode())


@pytest.mark.parametrize(
    "text",
    ["1e308", "1e-400", '["1e400", ": 1e400", "a:1e400"]', f"1{'0' * 400}", '{"1e400": 0e400}', "0.1e0000000001"],
)
def test_a_number_within_the_range_of_a_float_passes(text: str) -> None:
    assert decode_given(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text", [r'["\ud83d\ude00"]', r'["\\ud83d"]', '["😀", 1e3, 12345678901234567890123]', r'["\\\\ud83d\ud83d\ude00"]']
)
def test_whole_characters_pass_with_their_escapes(text: str) -> None:
    assert decode_given(text.encode()) == json.loads(text)


def test_half_of_a_surrogate_pair_is_sent_as_an_escape() -> None:
    assert encode_json({"a": "\ud83d", "b": 2**70}) == b'{"a":"\\ud83d","b":1180591620717411303424}'
