"""Statistics of one metric, and the comparison of two jobs by a metric.

The statistics are count, mean, deviation, standard error of the mean, percentiles, histogram, and the levels of a
rubric. The variance is the population variance; the standard error takes the values as a sample. The histogram has ten
equal bins; only the last one includes its upper bound. A comparison is a paired difference with Student's interval,
mean ± t · s / √n over the rows that both jobs scored (s with n - 1), and the points of a scatter plot.
"""

import asyncio
import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, TypeAlias, TypeVar

from evaluator_host.engine.contracts.metric_leaves import NAME_CHARS
from evaluator_host.platform.jobs.queue import StoredResult
from evaluator_host.types.bounds import difference
from evaluator_host.types.json_values import decode_large
from evaluator_host.types.numbers import mean_of, percentile
from evaluator_host.types.results import Aggregate, Bin, Difference, LevelCount, Point

Rubrics: TypeAlias = dict[str, list[str]]
"""The labels of a rubric's levels, keyed by the name of the score that is a rubric."""

Finished = TypeVar("Finished")

NAMES: Final = 10_000  # maximum number of metrics that get statistics in a job
_VALUES: Final = 8 << 20
_PASSES: Final = 16  # maximum number of times to read all results, each time for as many metrics as fit into memory
_BINS: Final = 10
_PERCENTILES: Final = tuple(range(10, 101, 10))
CONFIDENCE: Final = 0.95
FEWEST_ROWS: Final = 10  # minimum number of rows for an interval: people can read fewer rows themselves
POINTS: Final = 2000
_STEPS: Final = 200  # maximum number of steps of Newton's method, and of terms of a continued fraction
_EXACT: Final = 1e-13  # size of a step, relative to the result, after which Newton's method stops
_CELLS: Final = 40  # cells along each axis of a plot's grid, so that it has at most 1,600 points


class ValuesByName:
    """Collects the values of metrics, 8 bytes each, within a memory limit.

    When there are too many values, half of the metrics lose all their values. `postponed` lists these metrics, so that
    their values can be collected when all results are read again. `wanted` are the names of the metrics to collect
    (None for all); at most `most` metrics are collected.
    """

    def __init__(self, wanted: Collection[str] | None = None, *, most: int = NAMES) -> None:
        self._wanted = wanted
        self._most = most
        self._count = 0
        self.arrays: dict[str, tuple[array[float], ...]] = {}
        self.postponed: dict[str, None] = {}

    def add(self, name: str, *values: float) -> None:
        """Add one row's values of a metric. A metric has the same number of values in every row."""
        found = self.arrays.get(name)
        if found is None:
            unknown = name not in self._wanted if self._wanted is not None else len(name) > NAME_CHARS
            if unknown or name in self.postponed or len(self.arrays) + len(self.postponed) >= self._most:
                return
            found = self.arrays[name] = tuple(array("d") for _ in values)
        for one, value in zip(found, values, strict=True):
            one.append(value)
        self._count += len(values)
        if self._count > _VALUES and len(self.arrays) > 1:
            for last in list(self.arrays)[len(self.arrays) // 2 :]:
                self._count -= sum(map(len, self.arrays.pop(last)))
                self.postponed[last] = None


async def by_name(
    fill: Callable[[ValuesByName], Awaitable[None]], finish: Callable[..., Finished], *, most: int = NAMES
) -> dict[str, Finished]:
    """Collect the values of all metrics, and return the result of `finish(name, *arrays)` for each metric.

    Args:
      fill: Adds the values of all rows to a `ValuesByName`. It is called again if the values do not fit into memory at
        once.
      finish: Computes the result of one metric from its values, in a thread.
      most: Maximum number of metrics; further metrics are left out.
    """
    made: dict[str, Finished] = {}
    wanted: Collection[str] | None = None
    for _ in range(_PASSES):
        values = ValuesByName(wanted, most=most)
        await fill(values)
        arrays = values.arrays
        made |= await asyncio.to_thread(lambda: {name: finish(name, *arrays[name]) for name in arrays})  # noqa: B023
        wanted = values.postponed
        if not wanted:
            break
    return made


def aggregate(name: str, values: Iterable[float], *, nan_count: int = 0) -> Aggregate:
    """Return the statistics of a metric; needs eight bytes of memory for each value.

    `nan_count` counts values that are missing or not finite.
    """
    finite = array("d")
    for value in values:
        if math.isfinite(value):
            finite.append(value)
        else:
            nan_count += 1
    if not finite:
        return Aggregate(name, 0, nan_count)
    ordered = array("d", sorted(finite))
    added = total(ordered)
    mean = mean_of(ordered)
    variance = total(array("d", ((value - mean) * (value - mean) for value in ordered))) / len(ordered)
    return Aggregate(
        name,
        len(ordered),
        nan_count,
        sum=added,
        mean=mean,
        min=ordered[0],
        max=ordered[-1],
        std_dev=math.sqrt(variance),
        variance=variance,
        std_error=math.sqrt(variance / (len(ordered) - 1)) if len(ordered) > 1 and math.isfinite(variance) else None,
        percentiles={f"p{p}": percentile(ordered, p) for p in sorted((*_PERCENTILES, 99))},
        histogram=_histogram(ordered),
    )


def total(values: "array[float]") -> float:
    """Return the exact sum of the values; infinity if it is too large for a float."""
    try:
        return math.fsum(values)
    except OverflowError:
        return sum(values)


def as_float(value: float) -> float:
    """Convert a number to a float. A number that is too large becomes infinity."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _histogram(ordered: "array[float]") -> tuple[Bin, ...]:
    low, high = ordered[0], ordered[-1]
    width = (high - low) / _BINS
    if not width or not math.isfinite(width):
        return (Bin(low, high, len(ordered)),)
    edges = [low, *_inner_edges(low, width, high), high]
    places = [0, *(bisect_left(ordered, edge) for edge in edges[1:-1]), len(ordered)]
    return tuple(Bin(edges[at], edges[at + 1], places[at + 1] - places[at]) for at in range(_BINS))


def _inner_edges(low: float, width: float, high: float) -> list[float]:
    """Return the edges between bins without rounding errors, so that 0.3 is not below the edge 0.1 + 0.1 + 0.1.

    If the values are so close together that rounded edges would not rise, the edges are not rounded.
    """
    edges = [low + at * width for at in range(1, _BINS)]
    rounded = [float(f"{edge:.12g}") for edge in edges]
    rise = [low, *rounded, high]
    return rounded if all(one < other for one, other in pairwise(rise)) else edges


async def with_rubrics(
    metrics: tuple[Aggregate, ...], rubrics: Rubrics, results: AsyncIterator[StoredResult]
) -> tuple[Aggregate, ...]:
    """Return `metrics` with the number of rows at each level of their rubrics, counted over scored rows."""
    labels = Counter({(f"{name}.label", label): 0 for name, rubric in rubrics.items() for label in rubric})
    async for one in results:
        given = (await _value(one)).get("labels")
        found = given.items() if isinstance(given, dict) else ()
        labels.update(pair for name, label in found if (pair := (name, str(label))) in labels)
    return tuple(_with_levels(metric, rubrics.get(metric.name), labels) for metric in metrics)


async def rubrics_of(result: StoredResult) -> Rubrics:
    """Return the rubrics in a result. Values in a wrong format are skipped, because the result comes from a sandbox."""
    found = (await _value(result)).get("rubrics")
    known = found.items() if isinstance(found, dict) else ()
    return {name: [str(label) for label in labels] for name, labels in known if isinstance(labels, list) and labels}


async def _value(result: StoredResult) -> dict[str, Any]:
    value = (await decode_large(result.result.encode()))["value"]
    return value if isinstance(value, dict) else {}


def _with_levels(metric: Aggregate, rubric: list[str] | None, labels: Counter[tuple[str, str]]) -> Aggregate:
    if rubric is None:
        return metric
    levels = tuple(LevelCount(label, labels[f"{metric.name}.label", label]) for label in rubric)
    most = max(level.count for level in levels)
    mode = min(level.label for level in levels if level.count == most)
    return replace(metric, rubric_distribution=levels, mode_category=mode)


def paired_difference(metric: str, pairs: Iterable[tuple[float, float]]) -> Difference:
    """Compare a metric over pairs (before, after): means, difference, interval. Skip pairs that are not finite.

    If all values are between 0 and 1, a difference can only be between -1 and 1, and the interval is cut to this range.
    """
    before, after = array("d"), array("d")
    for old, new in pairs:
        if math.isfinite(old) and math.isfinite(new) and math.isfinite(new - old):
            before.append(old)
            after.append(new)
    n = len(before)
    if not n:
        return Difference(metric, 0, None, None, None, None, significant=False, better=0, worse=0)
    changes = array("d", (difference(old, new) for old, new in zip(before, after, strict=True)))
    mean = difference(0.0, mean_of(changes))
    of_one = all(0.0 <= value <= 1.0 for values in (before, after) for value in values)
    interval = _interval(changes, mean, reachable=1.0 if of_one else math.inf)
    return Difference(
        metric,
        n,
        before=mean_of(before),
        after=mean_of(after),
        difference=mean,
        interval=interval,
        significant=interval is not None and (difference(0.0, interval[0]) > 0 or difference(0.0, interval[1]) < 0),
        better=sum(change > 0 for change in changes),
        worse=sum(change < 0 for change in changes),
        note="too few rows" if n < FEWEST_ROWS else None,
    )


def _interval(changes: "array[float]", mean: float, *, reachable: float) -> tuple[float, float] | None:
    """Return the interval of a mean difference, within ±`reachable`. None if there are too few rows."""
    n = len(changes)
    if n < FEWEST_ROWS:
        return None
    squares = total(array("d", ((change - mean) * (change - mean) for change in changes)))
    if not math.isfinite(squares):
        return None
    deviation = math.sqrt(squares / (n - 1))
    reach = student_t((1 + CONFIDENCE) / 2, n - 1) * deviation / math.sqrt(n)
    return max(mean - reach, -reachable), min(mean + reach, reachable)


@lru_cache(maxsize=1024)  # most metrics of a comparison need the same quantile
def student_t(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution for a probability of at least one half.

    Newton's method finds the quantile, exact to seven digits, without a statistics library. Above its mean the
    distribution function is concave, so each step from below stays below the quantile.
    """
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)
    found = 0.0
    for _ in range(_STEPS):
        density = scale * math.exp(-(degrees + 1) / 2 * math.log1p(found * found / degrees))
        step = (probability - _student_cdf(found, degrees)) / density
        found += step
        if step <= _EXACT * found:
            break
    return found


def _student_cdf(t: float, degrees: int) -> float:
    """Return Student's distribution function for a `t` of at least 0.

    It is computed from the regularized beta function (DLMF 8.17(ii)).
    """
    if not t:
        return 0.5
    x = degrees / (degrees + t * t)
    a, b = degrees / 2, 0.5
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1) / (a + b + 2):
        return 1 - 0.5 * math.exp(log_front) * _beta_fraction(x, a, b) / a
    return 0.5 + 0.5 * math.exp(log_front) * _beta_fraction(1 - x, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            value *= c * d
        if abs(c * d - 1) < _EXACT:
            break
    return value


class Scatter:
    """Collects pairs of values for a scatter plot, 24 bytes each."""

    def __init__(self) -> None:
        self._rows = array("q")
        self._before = array("d")
        self._after = array("d")

    def add_pair(self, row: int, before: float, after: float) -> None:
        """Add a pair of values, unless one of them is not finite."""
        if math.isfinite(before) and math.isfinite(after):
            self._rows.append(row)
            self._before.append(before)
            self._after.append(after)

    def __len__(self) -> int:
        return len(self._rows)

    def points(self) -> tuple[tuple[Point, ...], bool]:
        """Return the points of the plot, and whether neighbouring points were merged into one."""
        distinct = _grouped(zip(self._before, self._after, strict=True), at_most=POINTS)
        if distinct is not None:
            return self._placed(distinct), False
        cells = zip(_cells(self._before), _cells(self._after), strict=True)
        grouped = _grouped(cells, at_most=_CELLS * _CELLS)
        assert grouped is not None  # noqa: S101 - there are no more cells than that
        return self._placed(grouped), True

    def _placed(self, groups: "list[array[int]]") -> tuple[Point, ...]:
        points = [
            Point(
                before=_middle([self._before[at] for at in group]),
                after=_middle([self._after[at] for at in group]),
                count=len(group),
                row=self._rows[group[0]],
            )
            for group in groups
        ]
        return tuple(sorted(points, key=lambda point: (point.before, point.after)))


def _grouped(keys: Iterable[tuple[float, float]], *, at_most: int) -> "list[array[int]] | None":
    """Return an array of positions in `keys` for each distinct key, or None if over `at_most` keys are distinct."""
    groups: dict[tuple[float, float], array[int]] = {}
    for at, key in enumerate(keys):
        if (group := groups.get(key)) is None:
            if len(groups) == at_most:
                return None
            group = groups[key] = array("q")
        group.append(at)
    return list(groups.values())


def _middle(values: list[float]) -> float:
    """Return the mean: exact when all values are equal, and finite even when their sum is not."""
    if values.count(values[0]) == len(values):
        return values[0]
    return math.fsum(value / len(values) for value in values)


def _cells(values: "array[float]") -> list[int]:
    low, high = min(values), max(values)
    reach = high / 2 - low / 2  # computed with halves, so that no difference is infinite
    if not reach:
        return [0] * len(values)
    return [min(int((value / 2 - low / 2) / reach * _CELLS), _CELLS - 1) for value in values]
