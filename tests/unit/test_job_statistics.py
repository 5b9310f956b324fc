"""Statistics and paired differences equal values that were computed elsewhere."""

import math
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_host.platform.jobs.results import aggregate as aggregation
from evaluator_host.platform.jobs.results.aggregate import (
    ValuesByName,
    aggregate,
    by_name,
    paired_difference,
    student_t,
)
from evaluator_host.platform.jobs.results.table import ResultValues
from evaluator_host.platform.terminal.job_tables import significance
from evaluator_host.types.groups import Groups, Numbers
from evaluator_host.types.results import Bin


def test_statistics_are_those_of_the_population() -> None:
    found = aggregate("score", [1.0, 0.0, 1.0, 0.0])
    assert (found.count, found.nan_count, found.sum, found.mean) == (4, 0, 2.0, 0.5)
    assert (found.min, found.max, found.std_dev, found.variance) == (0.0, 1.0, 0.5, 0.25)
    assert found.std_error == pytest.approx(0.2886751)  # the standard deviation of a sample, 0.57735, divided by √4
    assert aggregate("score", [1.0]).std_error is None
    assert found.percentiles is not None
    assert found.percentiles["p50"] == 0.5
    assert (found.percentiles["p10"], found.percentiles["p100"]) == (0.0, 1.0)
    assert len(found.histogram) == 10
    assert (found.histogram[0], found.histogram[-1]) == (Bin(0.0, 0.1, 2), Bin(0.9, 1.0, 2))


def test_the_score_of_a_row_wins_over_a_metric_called_score() -> None:
    row = ResultValues(0, "scored", None, 0.6, None, 1.0, '{"score": 1.0, "words": 3}')
    assert row.metrics_with(zero=False) == {"score": 0.6, "words": 3.0}
    assert row.value_of("score", zero=False) == 0.6
    assert replace(row, score=None).metrics_with(zero=False) == {"score": 1.0, "words": 3.0}


def test_percentiles_are_interpolated_at_n_plus_one() -> None:
    found = aggregate("score", [4, 1, 3, 2])
    assert found.percentiles is not None
    assert found.percentiles["p50"] == 2.5
    assert found.percentiles["p30"] == pytest.approx(1.5)
    assert found.percentiles["p99"] == 4


def test_values_that_are_not_finite_are_counted_and_left_out() -> None:
    found = aggregate("score", [math.nan, 1.0, math.inf], nan_count=2)
    assert (found.count, found.nan_count, found.mean, found.histogram) == (1, 4, 1.0, (Bin(1.0, 1.0, 1),))
    none = aggregate("score", [math.nan])
    assert (none.count, none.nan_count, none.mean, none.percentiles, none.histogram) == (0, 1, None, None, ())


@pytest.mark.parametrize("step", [0.1, 0.05, 0.01, 0.7, 1e-9, 1e9])
def test_a_value_at_an_edge_is_in_the_bin_that_begins_there(step: float) -> None:
    edges = [float(f"{n * step:.12g}") for n in range(11)]
    found = aggregate("score", edges).histogram
    assert [one.lower_bound for one in found] == edges[:-1]
    assert [one.count for one in found] == [1] * 9 + [2]  # the last bin includes its upper bound


def test_values_that_differ_by_rounding_errors_are_in_rising_bins() -> None:
    found = aggregate("score", [0.3, 0.1 + 0.2, 0.1 + 0.2]).histogram
    assert sum(one.count for one in found) == 3


@given(st.lists(st.floats(-1e300, 1e300), min_size=1))
def test_every_value_is_in_one_bin_and_percentiles_rise(values: list[float]) -> None:
    found = aggregate("score", values)
    assert sum(one.count for one in found.histogram) == len(values)
    assert found.percentiles is not None
    shown = list(found.percentiles.values())
    assert shown == sorted(shown)
    assert min(values) <= shown[0]
    assert shown[-1] == max(values)


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [
        (1, 12.7062047),
        (2, 4.3026527),
        (5, 2.5705818),
        (10, 2.2281389),
        (30, 2.0422725),
        (1000, 1.9623391),
        (10**6, 1.9599664),
    ],
)
def test_quantiles_of_student_are_those_of_the_tables(degrees: int, quantile: float) -> None:
    assert student_t(0.975, degrees) == pytest.approx(quantile, rel=1e-7)


def test_metrics_over_as_many_rows_share_one_quantile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics over the same number of rows share one quantile, because a quantile takes milliseconds, and a comparison
    may have thousands of metrics.
    """
    asked, distribution = 0, aggregation._student_cdf

    def counted(t: float, degrees: int) -> float:
        nonlocal asked
        asked += 1
        return distribution(t, degrees)

    monkeypatch.setattr(aggregation, "_student_cdf", counted)
    pairs = [(0.0, n / 777) for n in range(777)]
    first = paired_difference("one", pairs)
    once = asked
    assert [paired_difference(name, pairs).interval for name in ("two", "three")] == [first.interval] * 2
    assert asked == once > 0


def test_a_difference_is_paired() -> None:
    found = paired_difference("score", [*[(0, 1), (0, 1), (1, 1), (1, 0)] * 3, (math.nan, 1)])
    assert (found.n, found.before, found.after, found.difference) == (12, 0.5, 0.75, 0.25)
    assert (found.better, found.worse, found.significant, found.note) == (6, 3, False, None)
    assert found.interval == pytest.approx((-0.3002463, 0.8002463), rel=1e-6)  # 0.25 ± 2.2009852 · 0.8660254 / √12


@pytest.mark.parametrize(
    ("pairs", "interval"),
    [
        ([(0, 1)] * 9 + [(1, 0)], (0.3475686, 1.0)),  # 0.8 ± 2.2621572 · 0.6324555 / √10, clipped to 0..1
        ([(1, 0)] * 9 + [(0, 1)], (-1.0, -0.3475686)),
        ([(0, 5)] * 9 + [(5, 0)], (1.7378431, 6.2621569)),  # values beyond 0..1, so the interval stays as computed
        ([(0, -1)] * 9 + [(-1, 0)], (-1.2524314, -0.3475686)),
    ],
)
def test_no_interval_goes_beyond_what_the_metric_can_reach(
    pairs: list[tuple[float, float]], interval: tuple[float, float]
) -> None:
    found = paired_difference("score", pairs)
    assert found.interval == pytest.approx(interval, rel=1e-6)
    assert found.significant


def test_rounding_errors_make_no_row_better_or_worse() -> None:
    found = paired_difference("score", [(0.1 + 0.2, 0.3), (0.3, 0.1 + 0.2), (0.3, 0.1 + 0.2)] * 5)
    assert (found.difference, found.interval, found.better, found.worse) == (0.0, (0.0, 0.0), 0, 0)


@pytest.mark.parametrize(
    ("before", "after", "significant"), [(4e-10, 8e-10, True), (3e8, 3e8 + 6e-8, False)], ids=["small", "large"]
)
def test_a_difference_counts_beside_the_size_of_the_metric(before: float, after: float, significant: bool) -> None:
    found = paired_difference("cost", [(before, after)] * 10)
    assert (found.significant, found.better) == (significant, 10 * significant)


def test_a_difference_that_is_the_same_everywhere_is_certain() -> None:
    found = paired_difference("score", [(0, 0.5), (0.25, 0.75)] * 5)
    assert (found.interval, found.significant) == ((0.5, 0.5), True)


@pytest.mark.parametrize(
    ("pairs", "word"),
    [
        ([(0, 0.5), (0.25, 0.75)] * 5, "significant"),
        ([(0, 1), (1, 0)] * 6, "no difference"),
        ([(0.1 + 0.2, 0.3)] * 10, "no difference"),
        ([(0, 1), (0, 1), (1, 1), (1, 0)] * 3, "may be chance"),
        ([(0, 1)], ""),
    ],
)
def test_a_difference_in_words(pairs: list[tuple[float, float]], word: str) -> None:
    assert significance(paired_difference("score", pairs)) == word


def test_too_few_rows_have_no_interval() -> None:
    for n in (1, 2, 9):
        one = paired_difference("score", [(0, 1)] * n)
        assert (one.n, one.difference, one.interval, one.significant) == (n, 1.0, None, False)
        assert one.note == "too few rows"
    assert paired_difference("score", [(0, 1)] * 10).interval == (1.0, 1.0)
    assert paired_difference("score", []).n == 0


def test_differences_of_values_near_the_end_of_what_a_float_holds() -> None:
    found = paired_difference("score", [(1e308, 1.1e308), (1.2e308, 1.1e308), (1.3e308, 1.5e308), (-1.7e308, 1.7e308)])
    assert (found.n, found.interval, found.significant) == (3, None, False)
    assert (found.better, found.worse) == (2, 1)
    assert found.before == pytest.approx(3.5 / 3 * 1e308)
    assert aggregate("score", [1.7e308] * 3).mean == 1.7e308
    wide = paired_difference("score", [(0.0, 1e200), (0.0, -1e200)])
    assert (wide.difference, wide.interval) == (0.0, None)


async def test_values_that_do_not_fit_are_gathered_in_further_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregation, "_VALUES", 1000)
    passes = []

    async def fill(values: ValuesByName) -> None:
        passes.append(values)
        for row in range(100):
            for name in range(70):
                values.add(f"m{name}", float(row), float(name))
        assert sum(len(one) for pair in values.arrays.values() for one in pair) <= 1000

    found = await by_name(fill, lambda name, rows, names: (name, sum(rows), sum(names)), most=60)
    assert found == {f"m{name}": (f"m{name}", 4950.0, 100.0 * name) for name in range(60)}
    assert 1 < len(passes) <= 16


@pytest.mark.parametrize("zero", [False, True])
def test_groups_have_the_standard_error_of_all_values_that_their_mean_covers(zero: bool) -> None:
    groups = Groups()
    for score in (1.0, 0.0, 1.0, None):
        groups.add("a", "failed" if score is None else "scored", score, passed=None)
    [found] = groups.statistics("exact", zero=zero).groups
    values = [1.0, 0.0, 1.0] + [0.0] * zero
    assert found.mean == pytest.approx(sum(values) / len(values))
    assert found.std_error == pytest.approx(statistics.stdev(values) / len(values) ** 0.5)
    assert Numbers().std_error() is None


def test_a_group_of_failed_rows_counts_as_zero_if_other_groups_have_scores() -> None:
    groups = Groups()
    for value, status, score in (("a", "scored", 1.0), ("b", "failed", None), ("b", "failed", None)):
        groups.add(value, status, score, passed=None if score is None else True)
    found = groups.statistics("exact", zero=True).groups
    assert [(one.mean, one.mean_rows, one.pass_rate, one.std_error) for one in found] == [(1, 1, 1, None), (0, 2, 0, 0)]


def test_a_standard_error_beyond_floats_is_none() -> None:
    found, values = Numbers(), (1e308, -1e308, 5e-324)
    for value in values:
        found.add(value)
    assert aggregate("score", values).std_error is None
    assert found.std_error() is None
    assert found.mean() is not None
