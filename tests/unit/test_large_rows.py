"""Large rows: what the host does not decode arrives unchanged, and long numbers are found wherever they stand."""

import json

import pytest

from evaluator_host.dialects.row_binding import (
    decoded_row,
    encoded_row,
    from_child,
    shape,
    shape_in_child,
    shape_unread,
)
from evaluator_host.model.evaluator import Contract, EncodedRow, EvaluatorSettings, Json, Language, Row
from evaluator_host.model.json_values import decode_json, encode_json, memory_bytes, takes_more_memory
from evaluator_host.system.limited_process import LimitedProcesses
from evaluator_host.web.api.large_rows import joined_rows, split_rows

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
    call = unread[0]
    assert isinstance(call, bytes)
    expected, notes = shape(Row(**row), *of)
    assert isinstance(expected, bytes)
    assert json.loads(call) == json.loads(expected)
    assert unread[1] == notes
    more = encode_json({"index": None, "answers": {}})
    in_child = from_child(shape_in_child(given.body, more, Contract.EVALUATE, settings, Language.PYTHON))[0]
    assert isinstance(in_child, bytes)
    assert json.loads(in_child) == json.loads(call)


def test_a_batch_keeps_each_of_its_rows() -> None:
    answer = split_rows("BatchIn", encode_json({"evaluator": CODE, "rows": ROWS}), 10)
    given = joined_rows("BatchIn", answer).given()
    assert [decoded_row(row) for row in given if isinstance(row, EncodedRow)] == [Row(**row) for row in ROWS]


def test_a_row_whose_large_field_is_read_is_left_to_a_child() -> None:
    traced = encoded_row(Row(trace={"spans": [{"name": TEXT}]}))
    other = encoded_row(Row(inputs={"correct_answer": TEXT}))
    assert isinstance(traced, EncodedRow)
    assert isinstance(other, EncodedRow)
    assert shape_unread(traced, Contract.EVALUATE, EvaluatorSettings(), Language.PYTHON) is None
    assert shape_unread(other, Contract.EVALUATE_V1, EvaluatorSettings(), Language.PYTHON) is None
    assert shape_unread(EncodedRow(other.body), Contract.EVALUATE, EvaluatorSettings(), Language.PYTHON) is None


async def test_large_arguments_of_a_limited_process_arrive_beside_the_pickle() -> None:
    first, second = b"a" * (3 << 20), b"b" * (2 << 20)
    async with LimitedProcesses(most=1) as processes:
        assert await processes.call("w", max, first, b"c", second) == b"c"
        assert await processes.call("w", min, second, first) == first


def test_memory_is_only_counted_where_it_may_be_too_much() -> None:
    for text in (b"{}" * 1000, b"x" * 1000, b'{"a":1}' * 1000):
        for most in (1, len(text), memory_bytes(text) - 1, memory_bytes(text), 1 << 30):
            assert takes_more_memory(text, most) == (memory_bytes(text) > most)
