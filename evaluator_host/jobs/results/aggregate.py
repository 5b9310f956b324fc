"""What many values of one metric come to: count, mean, deviation, percentiles, histogram.

Variance is that of the population, percentile p lies at `(p / 100) * (n + 1) - 1` of
the sorted values with linear interpolation, and the histogram has ten equal bins of which the last is closed.
"""

import math
from array import array
from collections.abc import Iterable
from typing import Final

from evaluator_host.schemas.results import Aggregate, Bin

_BINS: Final = 10
_PERCENTILES: Final = tuple(range(10, 101, 10))


def aggregate(name: str, values: Iterable[float], *, nan_count: int = 0) -> Aggregate:
    """Return the figures of a metric; takes eight bytes of memory a value.

    Args:
      name: The metric.
      values: In any order.
      nan_count: Values missing from `values`, to be counted with those that are not finite.
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
    """Add exactly; a sum beyond what a float holds is infinite."""
    try:
        return math.fsum(values)
    except OverflowError:
        return sum(values)


def percentile(ordered: "array[float]", p: float) -> float:
    """Return the percentile of sorted values, which are at least one."""
    position = min(max((p / 100) * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def as_float(value: float) -> float:
    """Return a number as a float: an integer of hundreds of digits is infinite."""
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
