"""A Parquet download has a column for each kind of value, and the values can be read back."""

import io
import math
import subprocess
import sys
from importlib.util import find_spec

import pytest
from pyarrow import parquet

from evaluator_host.platform.jobs.results.exports import _writer
from evaluator_host.types.formats import Format

HEADER = ["index", "evaluator", "passed", "score", "metrics.big", "row.text"]
ROWS = [
    [0, "exact", True, 0.5, 10**400, "päris\n\x00"],
    [1, "exact", False, None, math.nan, None],
    [2**53, "exact", None, -0.0, 3, {"a": [1, "é"]}],
    *([number, "", number % 3 == 0, 1, True, str(number)] for number in range(3, 20)),
]
PROGRAM = """
import sys
from evaluator_host.types.formats import Format
from evaluator_host.platform.jobs.results.exports import _writer
writer = _writer(Format.PARQUET)(["index", "row.text", "score"])
print(len(writer.begin() + writer.add([[1, "a", 0.5]]) + writer.end()), "pyarrow" in sys.modules, "pandas" in sys.modules)
"""


def test_each_kind_of_value_and_its_absence_is_read_back() -> None:
    writer = _writer(Format.PARQUET)(HEADER)
    file = writer.begin() + writer.add(ROWS) + writer.add([]) + writer.add(ROWS[:1]) + writer.end()
    found = [list(row.values()) for row in parquet.read_table(io.BytesIO(file)).to_pylist()]
    assert math.isnan(found[1].pop(4))
    assert found[0] == found[-1] == [0, "exact", True, 0.5, math.inf, "päris\n\x00"]
    assert found[1:3] == [[1, "exact", False, None, None], [2**53, "exact", None, 0.0, 3.0, '{"a":[1,"é"]}']]
    assert found[3:-1] == [[*row[:4], 1.0, row[5]] for row in ROWS[3:]]


@pytest.mark.long
def test_pandas_is_not_imported_where_it_is_installed() -> None:
    assert find_spec("pandas") is not None
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split()[1:] == ["True", "False"]
