"""`run --out` writes results in the order of the rows.

The command waits for a slow row as long as the results of later rows fit into its memory limit.
"""

from io import BytesIO
from random import Random

import pytest

from evaluator_host.cli import run
from evaluator_host.cli.run import OrderedLines


def test_lines_are_in_order_however_they_come() -> None:
    written = BytesIO()
    lines = OrderedLines(written)
    numbers = list(range(500))
    Random(7).shuffle(numbers)
    for number in numbers:
        lines.write(number, b"%d\n" % number)
    assert written.getvalue() == b"".join(b"%d\n" % number for number in range(500)), (
        "no line may still wait at the end"
    )


def test_lines_that_wait_too_long_are_written_before_the_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_WAITING_BYTES", 5)
    written = BytesIO()
    lines = OrderedLines(written)
    for number in (0, 3, 2, 4, 1, 6, 5):
        lines.write(number, b"%d\n" % number)
    assert written.getvalue().split() == [b"0", b"2", b"3", b"4", b"1", b"5", b"6"]


def test_lines_after_a_missing_one_are_not_lost() -> None:
    written = BytesIO()
    lines = OrderedLines(written)
    lines.write(2, b"2\n")
    lines.write(1, b"1\n")
    assert written.getvalue() == b""
    lines.flush()
    assert written.getvalue() == b"1\n2\n"
