"""Rounding errors in floating-point values, means and differences never change whether a run passes."""

import math
from dataclasses import replace

import pytest

from evaluator_host.platform.terminal.summary import Summary
from evaluator_host.types.bounds import difference, exceeds, reaches
from tests.unit.test_warnings import SCORED


@pytest.mark.parametrize(
    ("value", "bound", "more"),
    [
        (0.8 - 0.7, 0.1, False),
        (0.1 + 0.2, 0.3, False),
        (0.1, 1 - 0.9, False),
        (0.7, 0.699999, True),
        (1, 1, False),
        (math.inf, math.inf, False),
        (1, math.nan, True),
        (math.nan, 1, True),
    ],
)
def test_only_more_than_rounding_exceeds_a_bound(value: float, bound: float, more: bool) -> None:
    assert exceeds(value, bound) is more


@pytest.mark.parametrize(
    ("value", "bound", "enough"),
    [(0.7 + 0.1, 0.8, True), (0.8, 0.8, True), (0.8 - 1e-8, 0.8, False), (math.nan, 0.8, False), (math.inf, 0.8, True)],
)
def test_only_more_than_rounding_keeps_a_value_from_its_bound(value: float, bound: float, enough: bool) -> None:
    assert reaches(value, bound) is enough


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (4e-10, 8e-10, False),
        (3e8, 3e8 + 6e-8, True),
        (0.3, 0.1 + 0.2, True),
        (0.0, 0.1 + 0.2 - 0.3, True),
        (0.5, 0.5 + 1e-8, False),
        (0.0, 0.0, True),
    ],
)
def test_a_difference_is_a_rounding_error_only_beside_its_numbers(before: float, after: float, same: bool) -> None:
    assert (difference(before, after) == 0, difference(after, before) == 0) == (same, same)


@pytest.mark.parametrize(("scores", "under"), [([1 - 0.9] * 3, False), ([0.1, 0.099], True)])
def test_a_mean_that_equals_the_bound_but_for_rounding_is_not_under_it(scores: list[float], under: bool) -> None:
    made = Summary()
    for row, score in enumerate(scores):
        made.add(replace(SCORED, score=score), row=row, line=row + 1)
    assert made.exit_code(bad_lines=0, fail_under=0.1, strict=False) == int(under)


@pytest.mark.parametrize(("score", "meant"), [(0.9, "; did you mean 0.8?"), (70, "")])
def test_a_percentage_as_bound_for_scores_up_to_one_gets_the_number_that_was_meant(
    score: float, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Summary()
    made.add(replace(SCORED, score=score), row=0, line=1)
    assert made.exit_code(bad_lines=0, fail_under=80, strict=False) == 1
    assert capsys.readouterr().err == f"the mean score {score:g} is under --fail-under 80{meant}\n"
