"""Figures of one metric: count, mean, deviation, percentiles, histogram, and the levels of a rubric.

Variance is that of the population, percentile p lies at `(p / 100) * (n + 1) - 1` of
the sorted values with linear interpolation, and the histogram has ten equal bins of which the last is closed.
"""

import math
from array import array
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from evaluator_host.model.json_values import decode_json
from evaluator_host.schemas.results import Aggregate, Bin, LevelCount
from evaluator_host.store.job_queue import StoredResult

Rubrics: TypeAlias = dict[str, list[str]]

_BINS: Final = 10
_PERCENTILES: Final = tuple(range(10, 101, 10))


def aggregate(name: str, values: Iterable[float], *, nan_count: int = 0) -> Aggregate:
    """Return the figures of a metric; needs eight bytes of memory a value.

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
    """Return a percentile of sorted values, of which there is at least one."""
    position = min(max((p / 100) * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def as_float(value: float) -> float:
    """Return a number as a float; infinity when it exceeds a float."""
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
    """Return the figures with the counts of rubric levels. `results` are those of scored rows."""
    labels: Counter[tuple[str, str]] = Counter()
    async for one in results:
        given = _value(one).get("labels")
        labels.update((name, str(label)) for name, label in (given if isinstance(given, dict) else {}).items())
    return tuple(_with_levels(metric, rubrics.get(metric.name), labels) for metric in metrics)


def rubrics_of(result: StoredResult) -> Rubrics:
    """Return the rubrics in a result; skip values of another shape, because a sandbox wrote them."""
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
