"""Compares two jobs over the same rows: the paired difference of a metric, with its confidence interval.

The interval is Student's: mean difference ± t · s / √n over the rows that both jobs scored, s over n - 1.
"""

import math
from array import array
from collections.abc import Iterable
from typing import Final

from evaluator_host.jobs.results.aggregate import total
from evaluator_host.schemas.results import Difference

CONFIDENCE: Final = 0.95


def paired_difference(metric: str, pairs: Iterable[tuple[float, float]]) -> Difference:
    """Return the difference of a metric over pairs (before, after), without pairs that are not finite."""
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
