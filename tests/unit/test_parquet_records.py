"""In Parquet files that pandas, Spark and databases write, a value that Python's types cannot hold becomes a string, or
its row is reported as bad.
"""

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from evaluator_host.platform.datasets.mapping import BadRow
from evaluator_host.platform.datasets.readers import read_records
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.formats import Format
from evaluator_host.types.json_values import encode_json

NS = 1_704_067_200_123_456_789
FAR = pa.timestamp("us", tz="UTC")


def written(**columns: Any) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def read(content: bytes) -> list[Any]:
    found = read_records(io.BytesIO(content), Format.PARQUET, max_row_bytes=1 << 20)
    return [str(one) if isinstance(one, BadRow) else one for _, one in found]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([NS], pa.timestamp("ns")), "2024-01-01T00:00:00.123456789"),
        (pa.array([NS], pa.timestamp("ns", tz="Europe/Paris")), "2024-01-01T01:00:00.123456789+01:00"),
        (pa.array([-1], pa.timestamp("ns")), "1969-12-31T23:59:59.999999999"),
        (pa.array([NS // 1000 * 1000], pa.timestamp("ns")), "2024-01-01T00:00:00.123456"),
        (pa.array([253_402_300_800_000], pa.timestamp("ms")), "+10000-01-01T00:00:00"),
        (pa.array([253_402_300_800_000_001], FAR), "+10000-01-01T00:00:00.000001+00:00"),
        (pa.array([-62_167_219_200_000], pa.timestamp("ms")), "0000-01-01T00:00:00"),
        (pa.array([-62_198_755_200_000], pa.timestamp("ms")), "-0001-01-01T00:00:00"),
        (pa.array([2_932_897], pa.date32()), "+10000-01-01"),
        (pa.array([86_399_000_001_000], pa.time64("ns")), "23:59:59.000001"),
        (pa.array([3_600_000_000_001], pa.time64("ns")), "01:00:00.000000001"),
        (pa.array([[1]], pa.list_(pa.time64("ns"))), ["00:00:00.000000001"]),
        (pa.array([1_500_000_001], pa.duration("ns")), 1.500000001),
        (pa.array([2**62], pa.duration("ms")), 2**62 / 1000),
        (pa.array([90], pa.duration("s")), 90),
        (pa.array([Decimal("0.10")], pa.decimal128(38, 2)), 0.1),
        (pa.array([Decimal("12345678901234567890.12")], pa.decimal128(38, 2)), "12345678901234567890.12"),
        (pa.array([Decimal(12345678901234567890)], pa.decimal256(40, 0)), 12345678901234567890),
        (pa.array([[{"at": NS}]], pa.list_(pa.struct({"at": pa.timestamp("ns")}))), [{"at": "2024-01-01T00:00:00.123456789"}]),
        (pa.array([[("k", NS)]], pa.map_(pa.string(), pa.timestamp("ns"))), [["k", "2024-01-01T00:00:00.123456789"]]),
        (pa.array([NS], pa.timestamp("ns")).dictionary_encode(), "2024-01-01T00:00:00.123456789"),
    ],
)  # fmt: skip
def test_a_value_that_python_cannot_hold_is_written_all_the_same(array: Any, expected: Any) -> None:
    assert read(written(text=["a"], value=array)) == [{"text": "a", "value": expected}]


def test_a_value_without_a_json_form_leaves_out_its_row_alone() -> None:
    damaged = pa.StringArray.from_buffers(2, pa.array([0, 1, 2], pa.int32()).buffers()[1], pa.py_buffer(b"a\xff"))
    first, second = read(written(text=damaged, at=pa.array([NS, NS], pa.timestamp("ns"))))
    assert first == {"text": "a", "at": "2024-01-01T00:00:00.123456789"}
    assert second.startswith("text has a value that cannot be written as JSON: ")


def test_a_column_twice_is_refused() -> None:
    file = io.BytesIO()
    parquet.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), file)
    with pytest.raises(InvalidRequest, match="columns have the same name: a"):
        read(file.getvalue())


@given(place=st.integers(0, 10_000), put=st.binary(min_size=1, max_size=8))
def test_no_damage_is_a_fault_of_the_host(place: int, put: bytes) -> None:
    content = written(text=["a", "b"], at=pa.array([NS, None], pa.timestamp("ns")), list=[[1], [2, 3]])
    place %= len(content)
    try:
        assert encode_json(read(content[:place] + put + content[place + len(put) :]))
    except InvalidRequest as error:
        assert "not Parquet, or is damaged" in error.detail or "Parquet" in error.detail  # noqa: PT017
