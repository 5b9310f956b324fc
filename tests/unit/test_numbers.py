"""People see scores and shares in a form in which only 1 looks like 1 or 100 %, and only 0 looks like 0 %."""

import math
import sys
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_host.cli.report import ReportedRow, RowsReport
from evaluator_host.engine.service.summaries import summarise
from evaluator_host.integrations.mcp_server import _statistics
from evaluator_host.platform.terminal.summary import Summary
from evaluator_host.types.groups import Numbers
from evaluator_host.types.numbers import mean_of, per_second, percent, points, rounded, rounded_beside, size_text
from tests.unit.test_warnings import SCORED


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (0.99996, ".4g", "0.99996"),
        (-0.99996, "+.4g", "-0.99996"),
        (0.9999999, ".4g", "0.9999999"),
        (1.00004, ".4g", "1.00004"),
        (0.9996, ".3f", "0.9996"),
        (1.0, ".4g", "1"),
        (0.1 * 3 + 0.7, ".4g", "1"),
        (0.99994, ".4g", "0.9999"),
        (0.123456, "+.4g", "+0.1235"),
        (1, "d", "1"),
        (13 / 32, ".4g", "0.4063"),  # exactly between two numbers with four digits
        (-13 / 32, "+.4g", "-0.4063"),
        (1 / 16, ".3f", "0.063"),
        (1234.56, ".4g", "1234.6"),
        (-1234567, "+.4g", "-1234567"),
        (123456789.0, ".4g", "1.235e+08"),
        (0.0, ".4g", "0"),
    ],
)
def test_only_1_looks_like_1(value: float, form: str, shown: str) -> None:
    assert rounded(value, form) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (996 / 1000, "99.6%"),
        (1999 / 2000, "99.95%"),
        (999_999 / 1_000_000, "99.9999%"),
        (1 / 10_000, "0.01%"),
        (0.0, "0.0%"),
        (1.0, "100.0%"),
        (2 / 3, "66.7%"),
        (1 / 16, "6.3%"),
        (5 / 16, "31.3%"),
    ],
)
def test_only_all_looks_like_100_percent_and_only_none_like_0(share: float, shown: str) -> None:
    assert percent(share) == shown


@pytest.mark.parametrize(
    ("octets", "shown"),
    [
        *((0, "0 B"), (1023, "1023 B"), (1280, "1.3 KB"), (12_345, "12 KB"), (1_048_063, "1023 KB")),
        *((1_048_064, "1.0 MB"), (100 << 20, "100 MB"), (20 << 30, "20 GB"), (10_000 << 40, "10000 TB")),
    ],
)
def test_a_small_size_is_not_0(octets: int, shown: str) -> None:
    assert size_text(octets) == shown


@pytest.mark.parametrize(
    ("change", "shown"), [(0.0, "+0.0"), (-1 / 16, "-6.3"), (1e-4, "+0.01"), (-1e-4, "-0.01"), (-1 / 3, "-33.3")]
)
def test_a_small_difference_of_shares_is_not_0(change: float, shown: str) -> None:
    assert points(change) == f"{shown} points"


@pytest.mark.parametrize(
    ("rows", "seconds", "rate"), [(1, 30.0, 0.0333), (0, 5.0, 0.0), (98765, 10.0, 9880.0), (3, 0.0, None)]
)
def test_a_slow_rate_is_not_0(rows: int, seconds: float, rate: float | None) -> None:
    assert per_second(rows, seconds) == rate


@pytest.mark.parametrize(
    ("value", "bound", "shown"),
    [
        (0.79999, 0.8, "0.79999"),
        (0.7, 0.8, "0.7"),
        (0.8, 0.8, "0.8"),
        (0.1 + 0.2, 0.3, "0.3"),
        (0.81234, 0.8, "0.8123"),
    ],
)
def test_a_number_does_not_look_like_a_bound_that_it_misses(value: float, bound: float, shown: str) -> None:
    assert rounded_beside(value, bound) == shown


def test_a_mean_just_under_the_bound_does_not_look_like_it(capsys: pytest.CaptureFixture[str]) -> None:
    for score, bound in ((0.99996, 1), (0.799999, 0.8)):
        made = Summary()
        made.add(replace(SCORED, score=score), row=0, line=1)
        assert made.exit_code(bad_lines=0, fail_under=bound, strict=False) == 1
        assert capsys.readouterr().err == f"the mean score {score} is under --fail-under {bound}\n"


@pytest.mark.parametrize(
    ("scores", "mean"), [([0.1] * 10, 0.1), ([1.7e308] * 3, 1.7e308), ([1e16, 1.0, -1e16], 1 / 3), ([1, 0], 0.5)]
)
def test_every_mean_is_exact(scores: list[float], mean: float) -> None:
    results = [replace(SCORED, score=score) for score in scores]
    rows = RowsReport(
        "e", tuple(ReportedRow(n, n + 1, SCORED.status, one, None, None, 0.1) for n, one in enumerate(scores))
    )
    assert summarise(results, seconds=1.0).mean == mean_of(scores) == _statistics(results)["mean"] == rows.mean == mean


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_every_mean_is_the_nearest_float_in_every_order(scores: list[float]) -> None:
    numbers = Numbers()
    for score in scores:
        numbers.add(score)
    nearest = float(sum(map(Fraction, scores)) / len(scores))
    assert mean_of(scores) == mean_of(scores[::-1]) == numbers.mean() == nearest


def test_a_mean_takes_few_passes_however_far_apart_the_numbers_are(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    adds = math.fsum
    monkeypatch.setattr(math, "fsum", lambda numbers: passes.append(1) or adds(numbers))
    scores = [(-1) ** n * 10.0**n for n in range(-300, 300)]
    assert mean_of(scores) == float(sum(map(Fraction, scores)) / len(scores))
    assert len(passes) == 3


@pytest.mark.parametrize("count", [2, 3, 5, 7, 1000])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_mean_of_equal_numbers_is_that_number_however_large(sign: int, count: int) -> None:
    largest = sign * sys.float_info.max
    assert mean_of([largest] * count) == largest
    assert mean_of([largest, -largest] * count) == 0
