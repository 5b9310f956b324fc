"""Aggregates the outputs of many rows, except labels and objects."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from ..values.aggregates import (
    AggregatedMetricResult,
    AggregateRangeScore,
    AggregateRubricScore,
    AggregateScore,
    Histogram,
    HistogramBin,
    Percentiles,
    RubricScoreStat,
)
from ..values.protocol import (
    BooleanValue,
    ContinuousScore,
    DiscreteScore,
    MetricOutput,
    MetricOutputSpec,
    MetricResult,
)
from ..values.scores import Rubric, RubricScore

_BINS = 10


def is_aggregateable_output_spec(output_spec: MetricOutputSpec) -> bool:
    """Return whether an output is aggregated."""
    return issubclass(output_spec.value_schema, ContinuousScore | DiscreteScore | BooleanValue)


def number_of(output: MetricOutput, spec: MetricOutputSpec) -> float | int | None:
    """Convert an output to a number; a bool becomes 1.0 or 0.0, labels and objects become None.

    Raises:
      ValueError: the output is not of its declared type.
    """
    if not is_aggregateable_output_spec(spec):
        return None
    if isinstance(output.value, float) and math.isnan(output.value):
        return output.value
    value = spec.coerce_output(output).root  # type: ignore[attr-defined]
    return float(value) if isinstance(value, bool) else value  # type: ignore[no-any-return]


def aggregate_metrics(
    items: Sequence[MetricResult],
    output_specs: Sequence[MetricOutputSpec],
    rubrics: dict[str, list[Rubric]] | None = None,
) -> AggregatedMetricResult:
    """Aggregate every score, in the order in which the scores first appear.

    Args:
      items: The results of all rows.
      output_specs: The outputs that the metric declares.
      rubrics: The rubric levels of each score that has a rubric, by the score's name.
    """
    specs = {spec.name: spec for spec in output_specs}
    values: dict[str, list[float]] = {}
    labels: Counter[tuple[str, str]] = Counter()
    for item in items:
        for output in item.outputs:
            spec = specs.get(output.name)
            number = None if spec is None else number_of(output, spec)
            if number is not None:
                values.setdefault(output.name, []).append(number)
            elif isinstance(output.value, str):
                labels[output.name, output.value] += 1
    scores: list[AggregateScore] = []
    for name, found in values.items():
        statistics = _statistics(name, found)
        rubric = (rubrics or {}).get(name)
        scores.append(statistics if rubric is None else _of_rubric(statistics, rubric, labels))
    return AggregatedMetricResult(scores=scores)


def rubrics_of(metric: object) -> dict[str, list[Rubric]]:
    """Return the rubric levels for each score of a metric, by the score's name."""
    scores = getattr(metric, "scores", None)
    known = scores if isinstance(scores, list | tuple) else ()
    return {score.name: score.rubric for score in known if isinstance(score, RubricScore)}


def _of_rubric(
    statistics: AggregateRangeScore, rubric: list[Rubric], labels: Counter[tuple[str, str]]
) -> AggregateRubricScore:
    levels = [
        RubricScoreStat(label=one.label, value=one.value, count=labels[f"{statistics.name}.label", one.label])
        for one in rubric
    ]
    most = max(level.count for level in levels)
    return AggregateRubricScore(
        **statistics.model_dump(exclude={"score_type", "percentiles", "histogram"}),
        rubric_distribution=levels,
        mode_category=min(level.label for level in levels if level.count == most),
    )


def corpus_statistics(result: MetricResult, output_specs: Sequence[MetricOutputSpec]) -> list[AggregateRangeScore]:
    """Convert each score over all rows to an aggregate of a single value."""
    specs = {spec.name: spec for spec in output_specs}
    found = ((output.name, number_of(output, specs[output.name])) for output in result.outputs if output.name in specs)
    return [_single(name, value) for name, value in found if value is not None]


def _single(name: str, value: float) -> AggregateRangeScore:
    return AggregateRangeScore(
        name=name,
        count=1,
        nan_count=0,
        **dict.fromkeys(("sum", "mean", "min", "max"), value),
        std_dev=0.0,
        variance=0.0,
        percentiles=Percentiles(**dict.fromkeys(Percentiles.model_fields, value)),
        histogram=Histogram(bins=[HistogramBin(lower_bound=value, upper_bound=value, count=1)]),
    )


def _statistics(name: str, values: list[float]) -> AggregateRangeScore:
    known = [value for value in values if not math.isnan(value)]
    nan_count = len(values) - len(known)
    if not known:
        return AggregateRangeScore(name=name, count=0, nan_count=nan_count, histogram=Histogram(bins=[]))
    total: float = sum(known, 0.0)
    mean = total / len(known)
    variance = sum((value - mean) ** 2 for value in known) / len(known)
    return AggregateRangeScore(
        name=name,
        count=len(known),
        nan_count=nan_count,
        sum=total,
        mean=mean,
        min=min(known),
        max=max(known),
        std_dev=math.sqrt(variance),
        variance=variance,
        percentiles=_percentiles(sorted(known)),
        histogram=_histogram(known),
    )


def _percentiles(ordered: list[float]) -> Percentiles:
    return Percentiles(**{f"p{percent}": _percentile(ordered, percent) for percent in range(10, 101, 10)})


def _percentile(ordered: list[float], percent: int) -> float:
    """Return the value at rank `percent / 100 * (n + 1)`, interpolated linearly."""
    at = percent / 100 * (len(ordered) + 1) - 1
    if at <= 0:
        return ordered[0]
    if at >= len(ordered) - 1:
        return ordered[-1]
    below = int(at)
    return ordered[below] + (at - below) * (ordered[below + 1] - ordered[below])


def _histogram(values: list[float]) -> Histogram:
    low, high = min(values), max(values)
    if low == high:
        return Histogram(bins=[HistogramBin(lower_bound=low, upper_bound=high, count=len(values))])
    width = (high - low) / _BINS
    bins = []
    for number in range(_BINS):
        lower, upper = low + number * width, low + (number + 1) * width
        last = number == _BINS - 1
        count = sum(lower <= value < upper or (last and value == upper) for value in values)
        bins.append(HistogramBin(lower_bound=lower, upper_bound=upper, count=count))
    return Histogram(bins=bins)
