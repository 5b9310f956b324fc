"""Statistics of one metric, and the comparison of two jobs by a metric.

Figures are count, mean, deviation, percentiles, histogram, and the levels of a rubric. Variance is that of the
population, percentile p lies at `(p / 100) * (n + 1) - 1` of the sorted values with linear interpolation, and the
histogram has ten equal bins of which the last is closed. A comparison is a paired difference with Student's interval,
mean ± t · s / √n over the rows that both jobs scored (s over n - 1), and the points of a scatter plot.
"""

import math
from array import array
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from evaluator_host.model.json_values import decode_json
from evaluator_host.schemas.results import Aggregate, Bin, Difference, LevelCount, Point
from evaluator_host.store.job_queue import StoredResult

Rubrics: TypeAlias = dict[str, list[str]]

_BINS: Final = 10
_PERCENTILES: Final = tuple(range(10, 101, 10))
CONFIDENCE: Final = 0.95
POINTS: Final = 2000
_CELLS: Final = 40  # along each axis of a grid, so 1600 points at most


def aggregate(name: str, values: Iterable[float], *, nan_count: int = 0) -> Aggregate:
    """Return the statistics of a metric; needs eight bytes of memory for each value.

    Args:
      name: Of the metric.
      values: In any order.
      nan_count: Missing values, counted together with those that are not finite.
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
    mean = added / len(ordered)
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
        percentiles={f"p{p}": percentile(ordered, p) for p in sorted((*_PERCENTILES, 99))},
        histogram=_histogram(ordered),
    )


def total(values: "array[float]") -> float:
    """Return the exact sum; infinity when it exceeds a float."""
    try:
        return math.fsum(values)
    except OverflowError:
        return sum(values)


def percentile(ordered: "array[float]", p: float) -> float:
    """Return a percentile of a non-empty sorted list."""
    position = min(max((p / 100) * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def as_float(value: float) -> float:
    """Return a number as a float; infinity when it is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _histogram(ordered: "array[float]") -> tuple[Bin, ...]:
    low, high = ordered[0], ordered[-1]
    width = (high - low) / _BINS
    if not width or not math.isfinite(width):
        return (Bin(low, high, len(ordered)),)
    counts = [0] * _BINS
    for value in ordered:
        counts[min(int((value - low) / width), _BINS - 1)] += 1
    edges = [low + index * width for index in range(_BINS)] + [high]
    return tuple(Bin(edges[index], edges[index + 1], count) for index, count in enumerate(counts))


"""Labels by score, for the scores that are rubrics."""


async def with_rubrics(
    metrics: tuple[Aggregate, ...], rubrics: Rubrics, results: AsyncIterator[StoredResult]
) -> tuple[Aggregate, ...]:
    """Return the statistics with the number of rows at each rubric level; `results` are of scored rows."""
    labels: Counter[tuple[str, str]] = Counter()
    async for one in results:
        given = _value(one).get("labels")
        labels.update((name, str(label)) for name, label in (given if isinstance(given, dict) else {}).items())
    return tuple(_with_levels(metric, rubrics.get(metric.name), labels) for metric in metrics)


def rubrics_of(result: StoredResult) -> Rubrics:
    """Return the rubrics in a result; values of another shape are skipped, because a sandbox wrote them."""
    found = _value(result).get("rubrics")
    known = found.items() if isinstance(found, dict) else ()
    return {name: [str(label) for label in labels] for name, labels in known if isinstance(labels, list) and labels}


def _value(result: StoredResult) -> dict[str, Any]:
    value = decode_json(result.result.encode())["value"]
    return value if isinstance(value, dict) else {}


def _with_levels(metric: Aggregate, rubric: list[str] | None, labels: Counter[tuple[str, str]]) -> Aggregate:
    if rubric is None:
        return metric
    levels = tuple(LevelCount(label, labels[f"{metric.name}.label", label]) for label in rubric)
    most = max(level.count for level in levels)
    mode = min(level.label for level in levels if level.count == most)
    return replace(metric, rubric_distribution=levels, mode_category=mode)


def paired_difference(metric: str, pairs: Iterable[tuple[float, float]]) -> Difference:
    """Compare a metric over pairs (before, after): means, difference, interval. Skip pairs that are not finite."""
    before, after = array("d"), array("d")
    for old, new in pairs:
        if math.isfinite(old) and math.isfinite(new) and math.isfinite(new - old):
            before.append(old)
            after.append(new)
    n = len(before)
    if not n:
        return Difference(metric, 0, None, None, None, None, significant=False, better=0, worse=0)
    changes = array("d", (new - old for old, new in zip(before, after, strict=True)))
    mean = total(changes) / n
    interval = _interval(changes, mean)
    return Difference(
        metric,
        n,
        before=total(before) / n,
        after=total(after) / n,
        difference=mean,
        interval=interval,
        significant=interval is not None and not interval[0] <= 0.0 <= interval[1],
        better=sum(change > 0 for change in changes),
        worse=sum(change < 0 for change in changes),
    )


def _interval(changes: "array[float]", mean: float) -> tuple[float, float] | None:
    n = len(changes)
    if n < 2:
        return None
    squares = total(array("d", ((change - mean) * (change - mean) for change in changes)))
    if not math.isfinite(squares):
        return None
    deviation = math.sqrt(squares / (n - 1))
    reach = student_t((1 + CONFIDENCE) / 2, n - 1) * deviation / math.sqrt(n)
    return mean - reach, mean + reach


def student_t(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution for a probability of at least one half.

    It bisects the distribution function, integrated by Simpson's rule: exact to eight digits, without a library of
    statistics.
    """
    low, high = 0.0, 1.0
    while _student_cdf(high, degrees) < probability:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if _student_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _student_cdf(t: float, degrees: int) -> float:
    """Integrate the density over the angle `atan(t / sqrt(degrees))`, where it is a power of the cosine and smooth."""
    log_scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(math.pi) / 2
    angle = math.atan(t / math.sqrt(degrees))
    steps = 400
    width = angle / steps
    total = 0.0
    for step in range(steps + 1):
        weight = 1 if step in (0, steps) else 4 if step % 2 else 2
        total += weight * math.cos(step * width) ** (degrees - 1)
    return 0.5 + math.exp(log_scale) * total * width / 3


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
        """Return the points of the plot, and whether neighbouring values were merged into one point."""
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
    """Return the indexes of each key, or None when there are more than `at_most` keys."""
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
    reach = high / 2 - low / 2  # halves, so that no difference is infinite
    if not reach:
        return [0] * len(values)
    return [min(int((value / 2 - low / 2) / reach * _CELLS), _CELLS - 1) for value in values]
