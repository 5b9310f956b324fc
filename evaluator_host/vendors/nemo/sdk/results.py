"""Converts a host's results for rows to NeMo Evaluator's classes, by NeMo Evaluator's own rules."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluator_host.sdk.execution.scoring import corpus_output_spec, nan_result
from evaluator_host.sdk.execution.values import EvaluationError
from evaluator_host.sdk.metrics.aggregation import (
    aggregate_metrics,
    corpus_statistics,
    is_aggregateable_output_spec,
    rubrics_of,
)
from evaluator_host.sdk.values.aggregates import AggregatedMetricResult
from evaluator_host.sdk.values.protocol import MetricDiagnostic, MetricOutput, MetricOutputSpec, MetricResult
from evaluator_host.sdk.values.results import EvaluationResult, RowScore


@dataclass(frozen=True, slots=True)
class Answered:
    """The host's result for one row.

    Attributes:
      value: The result's `value`; None if the row failed.
      error: Why the row failed; None if it was scored.
      sample: The scored output, as NeMo's sample.
      requests: Logged requests to models for this row.
    """

    value: dict[str, Any] | None
    error: str | None
    sample: dict[str, Any]
    requests: list[dict[str, Any]] = field(default_factory=list)


def evaluation_result(
    metric: Any,
    key: str,
    rows: Sequence[dict[str, Any]],
    answered: Sequence[Answered],
    *,
    together: dict[str, Any] | None = None,
    in_declared_order: bool = False,
) -> EvaluationResult:
    """Make NeMo's result for a metric that scored rows.

    Args:
      metric: A NeMo metric, whose `output_spec()` declares its outputs.
      key: The metric's name in the result.
      rows: Rows of the data set, as the caller gave them.
      answered: The host's result for each row, in the same order.
      together: Scores over all rows, `{"outputs": [{"name", "value"}]}`; None when the metric has none.
      in_declared_order: Whether to sort each row's outputs in the order of `output_spec()`, as NeMo does for several
        metrics; otherwise they keep the order in which the metric returned them.
    """
    declared = metric.output_spec()
    results = [_result(one, declared) for one in answered]
    if in_declared_order:
        places = {spec.name: at for at, spec in enumerate(declared)}
        for result in results:
            result.outputs.sort(key=lambda output: places[output.name])
    statistics: list[Any] = []
    if rows:
        statistics = list(aggregate_metrics(results, declared, rubrics_of(metric)).scores)
    if together is not None:
        specs = corpus_output_spec(metric)
        statistics += corpus_statistics(MetricResult(outputs=_outputs(together, specs)), specs)
    scores = [score.model_copy(update={"name": f"{key}.{score.name}"}) for score in statistics]
    row_scores = [
        RowScore(
            row_index=index,
            item=row,
            sample=one.sample,
            metrics={key: result.outputs},
            requests=one.requests,
            metric_errors=None if one.error is None else {key: one.error},
            metric_diagnostics={key: result.diagnostics} if result.diagnostics else None,
        )
        for index, (row, one, result) in enumerate(zip(rows, answered, results, strict=True))
    ]
    return EvaluationResult(row_scores=row_scores, aggregate_scores=AggregatedMetricResult(scores=scores))


def raise_first(key: str, answered: Sequence[Answered]) -> None:
    """Raise the error of the first row that failed.

    Raises:
      EvaluationError: a row failed.
    """
    for index, one in enumerate(answered):
        if one.error is not None:
            raise EvaluationError(index, one.error, metric_key=key)


def _result(one: Answered, declared: list[MetricOutputSpec]) -> MetricResult:
    if one.value is None:
        return nan_result(declared)
    diagnostics = [MetricDiagnostic(**found) for found in one.value["diagnostics"]]
    return MetricResult(outputs=_outputs(one.value, declared), diagnostics=diagnostics)


def _outputs(value: dict[str, Any], declared: list[MetricOutputSpec]) -> list[MetricOutput]:
    """Convert a row's outputs to NeMo's; NaN and infinities, which JSON does not have, all become NaN."""
    numeric = {spec.name for spec in declared if is_aggregateable_output_spec(spec)}
    return [
        MetricOutput(name=one["name"], value=_number(one["value"]) if one["name"] in numeric else one["value"])
        for one in value["outputs"]
    ]


def _number(value: Any) -> Any:
    return math.nan if value is None or value == "NaN" else value
