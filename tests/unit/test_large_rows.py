"""In large rows, values that the host does not decode arrive unchanged, and long numbers are found anywhere in a row."""

import json
import pickle

import pytest

from evaluator_host.engine.contracts.row_binding import (
    decoded_row,
    encoded_row,
    from_child,
    shape,
    shape_in_child,
    shape_unread,
)
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.evaluators.bodies import EvaluateIn
from evaluator_host.platform.evaluators.large_rows import RowsRoute, cut_rows, joined_rows, split_rows
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, EncodedRow, EvaluatorSettings, Json, Language, Row
from evaluator_host.types.json_texts import NotPlain
from evaluator_host.types.json_values import decode_json, encode_json, memory_bytes, takes_more_memory

TEXT = 'Paris "is" the \u20ac capital \\ of\nFrance 12345 ' * 10_000
ROWS: list[dict[str, Json]] = [
    {"inputs": {"correct_answer": TEXT, "n": 10**30}, "outputs": TEXT[:10]},
    {"outputs": [TEXT, {"deep": [1.5, None, True]}], "criteria": {"small": 1}},
    {"inputs": {}, "outputs": TEXT, "variables": {"a": 1}, "trace": None},
]
CODE = {"code": "def evaluate(inputs, outputs, trace):\n    return 1\n", "language": "python"}


@pytest.mark.parametrize("offset", range(6))
def test_a_number_beyond_64_bits_stays_exact_wherever_it_stands(offset: int) -> None:
    for number in (10**18, 2**64, 10**19, -(10**30)):
        text = " " * offset + json.dumps({"pad": "x" * 100, "n": number, "f": 0.12345678901234567})
        assert decode_json(text.encode())["n"] == number


@pytest.mark.parametrize("row", ROWS)
def test_a_row_that_stays_text_is_called_with_the_same_values(row: dict[str, Json]) -> None:
    body = encode_json({"evaluator": CODE, **row})
    (given,) = (joined_rows("EvaluateIn", split_rows("EvaluateIn", body, 10)).given(),)
    assert isinstance(given, EncodedRow)
    settings, of = EvaluatorSettings(), (Contract.EVALUATE, EvaluatorSettings(), Language.PYTHON)
    unread = shape_unread(given, *of)
    assert unread is not None
    call = b"".join(unread[0])
    expected, notes = shape(Row(**row), *of)
    assert isinstance(expected, bytes)
    assert json.loads(call) == json.loads(expected)
    assert unread[1] == notes
    more = encode_json({"index": None, "answers": {}})
    in_child = from_child(shape_in_child(given.body, more, Contract.EVALUATE, settings, Language.PYTHON))[0]
    assert isinstance(in_child, bytes)
    assert json.loads(in_child) == json.loads(call)


def test_a_batch_keeps_each_of_its_rows() -> None:
    rows = [*ROWS, {"messages": [{"role": "user", "content": TEXT}]}]
    answer = split_rows("BatchIn", encode_json({"evaluator": CODE, "rows": rows}), 10)
    given = joined_rows("BatchIn", answer).given()
    assert [decoded_row(row) for row in given if isinstance(row, EncodedRow)] == [Row(**row) for row in rows]


def test_a_row_whose_large_field_is_read_is_left_to_a_child() -> None:
    traced = encoded_row(Row(trace={"spans": [{"name": TEXT}]}))
    other = encoded_row(Row(inputs={"correct_answer": TEXT}))
    assert isinstance(traced, EncodedRow)
    assert isinstance(other, EncodedRow)
    assert shape_unread(traced, Contract.EVALUATE, EvaluatorSettings(), Language.PYTHON) is None
    assert shape_unread(other, Contract.EVALUATE_V1, EvaluatorSettings(), Language.PYTHON) is None


def read(model: str, body: bytes) -> list[Row | EncodedRow]:
    """Read a body in a thread, as the host does, and return its rows."""
    given = cut_rows(model, body, 10).given()
    return given if isinstance(given, list) else [given]


@pytest.mark.parametrize("indent", [None, 1])
def test_rows_that_stay_as_they_came_have_the_values_of_those_that_were_decoded(indent: int | None) -> None:
    more: list[dict[str, Json]] = [
        {},
        {"inputs": {"n": 10**30, "f": [1e30, -0.5], "t": "a1e400 [[["}, "messages": None},
    ]
    bodies = [("EvaluateIn", {"evaluator": CODE, **row}) for row in (*ROWS, *more)]
    for model, value in (*bodies, ("BatchIn", {"evaluator": CODE, "rows": [*ROWS, *more]})):
        body = json.dumps(value, indent=indent).encode()
        decoded = joined_rows(model, split_rows(model, body, 10)).given()
        expected = decoded if isinstance(decoded, list) else [decoded]
        assert [json.loads(row.body) for row in read(model, body) if isinstance(row, EncodedRow)] == [
            json.loads(row.body) for row in expected if isinstance(row, EncodedRow)
        ]


@pytest.mark.parametrize(
    "value",
    [
        b"1e400", b"[-1.5E+400]", b"1" * 400, b"NaN", b"[1,]", b"[01]", b'["\xff"]', b'"\\ud800"', b'["\x01"]', b"tru",
        b"[" * 250 + b"]" * 250, b"[" * 2000 + b"]" * 2000, b'"open', b"1} {",
    ],
)  # fmt: skip
def test_values_that_decoders_differ_in_are_decoded(value: bytes) -> None:
    code = encode_json(CODE)
    for text in (b'"outputs":%b' % value, b'"inputs":{"a":%b}' % value, b'"inputs":{"a":{"b":[%b]}}' % value):
        with pytest.raises(NotPlain):
            read("EvaluateIn", b'{"evaluator":%b,%b}' % (code, text))
        with pytest.raises(NotPlain):
            read("BatchIn", b'{"evaluator":%b,"rows":[{%b}]}' % (code, text))


@pytest.mark.parametrize(
    "text",
    [
        '{"inputs": {}}', '{"inputs": [], "evaluator": "a"}', '{"inputs": null, "evaluator": "a"}', "[]", "1",
        '{"trace": 1, "evaluator": "a"}', '{"messages": [{}], "evaluator": "a"}', '{"evaluator": "a", "other": 1}',
        '{"evaluator": "%s"}' % ("a" * 300_000),
    ],
)  # fmt: skip
def test_unusual_bodies_are_left_to_the_full_parser(text: str) -> None:
    with pytest.raises(NotPlain):
        read("EvaluateIn", text.encode())


def test_a_row_that_is_part_of_a_body_can_be_pickled() -> None:
    (row,) = read("EvaluateIn", encode_json({"evaluator": CODE, **ROWS[0]}))
    again = pickle.loads(pickle.dumps(row))
    assert isinstance(row, EncodedRow)
    assert isinstance(again, EncodedRow)
    assert again.body == row.body


async def test_large_arguments_of_a_limited_process_arrive_beside_the_pickle() -> None:
    first, second = b"a" * (3 << 20), b"b" * (2 << 20)
    async with LimitedProcesses(most=1) as processes:
        assert await processes.call("w", max, first, b"c", second) == b"c"
        assert await processes.call("w", min, second, first) == first


def test_memory_is_only_counted_where_it_may_be_too_much() -> None:
    for text in (b"{}" * 1000, b"x" * 1000, b'{"a":1}' * 1000):
        for most in (1, len(text), memory_bytes(text) - 1, memory_bytes(text), 1 << 30):
            assert takes_more_memory(text, most) == (memory_bytes(text) > most)


@pytest.mark.parametrize("length", [None, 3 << 20, 5 << 20])
async def test_a_large_body_arrives_whole_whatever_its_headers_say(length: int | None) -> None:
    row = {"evaluator": CODE, "inputs": {"text": TEXT * 7, "n": 1e5}, "outputs": "x"}
    body = encode_json(row)
    assert len(body) > 3 << 20
    chunks = [body[start : start + 70_000] for start in range(0, len(body), 70_000)]
    messages = [{"type": "http.request", "body": chunk, "more_body": chunk is not chunks[-1]} for chunk in chunks]
    coming = iter(messages)

    async def receive() -> dict[str, object]:
        return next(coming)

    headers = [] if length is None else [(b"content-length", str(max(length, len(body))).encode())]
    request = RowsRoute.request_class({"type": "http", "headers": headers}, receive)
    request.model = EvaluateIn
    arrived = await request.body()
    assert bytes(arrived) == body == bytes(await request.body())
    assert isinstance(arrived, bytes) == (length is None)
    (given,) = (cut_rows("EvaluateIn", arrived, 10).given(),)
    assert isinstance(given, EncodedRow)
    assert decode_json(bytes(given.fields["inputs"])) == row["inputs"]


async def test_a_compressed_large_body_is_refused() -> None:
    headers = [(b"content-length", b"4000000"), (b"content-encoding", b"gzip")]
    request = RowsRoute.request_class({"type": "http", "headers": headers})
    request.model = EvaluateIn
    with pytest.raises(InvalidRequest, match="gzip"):
        await request.body()
