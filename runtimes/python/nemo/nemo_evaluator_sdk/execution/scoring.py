"""Owns one pass of a prepared metric over rows: a few at once, in their order, and the first failure ends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..metrics.aggregation import aggregate_metrics, corpus_figures
from ..metrics.protocol import CorpusMetric
from ..values.protocol import MetricOutputSpec, MetricResult, validate_metric_result
from ..values.results import EvaluationResult, RowScore
from ..values.scores import AggregatedMetricResult
from .samples import build_metric_input, build_offline_sample
from .values import EvaluationError

Rows = Sequence[dict[str, Any]]


def corpus_output_spec(metric: Any) -> list[MetricOutputSpec]:
    """Return what a metric declares over all rows, else what it declares of each."""
    declared = getattr(metric, "corpus_output_spec", None)
    return list(declared() if callable(declared) else metric.output_spec())


async def evaluate_metric(
    metric: Any, *, key: str, rows: Rows, parallelism: int, in_declared_order: bool = False
) -> EvaluationResult:
    """Score rows and aggregate; names of scores begin with `key`.

    Raises:
      EvaluationError: a row failed.
    """
    results = await _score_all(metric, rows, key=key, parallelism=parallelism, in_declared_order=in_declared_order)
    figures = aggregate_metrics(results, metric.output_spec()).scores if rows else []
    if rows and isinstance(metric, CorpusMetric):
        inputs = [build_metric_input(row, build_offline_sample(row), index) for index, row in enumerate(rows)]
        together = await metric.compute_corpus_scores(inputs)
        figures += corpus_figures(together, corpus_output_spec(metric)) if together else []
    scores = [score.model_copy(update={"name": f"{key}.{score.name}"}) for score in figures]
    row_scores = [
        RowScore(
            row_index=index,
            item=row,
            sample=build_offline_sample(row),
            metrics={key: result.outputs},
            requests=[],
            metric_diagnostics={key: result.diagnostics} if result.diagnostics else None,
        )
        for index, (row, result) in enumerate(zip(rows, results, strict=True))
    ]
    return EvaluationResult(row_scores=row_scores, aggregate_scores=AggregatedMetricResult(scores=scores))


async def score_row(metric: Any, row: dict[str, Any], index: int, *, key: str) -> MetricResult:
    """Score a row and check the result.

    Raises:
      EvaluationError: the metric raised, or its result is not as declared.
    """
    try:
        declared = metric.output_spec()
        given = build_metric_input(dict(row), build_offline_sample(row), index)
        return validate_metric_result(await metric.compute_scores(given), declared)
    except Exception as error:
        raise EvaluationError(index, str(error), metric_key=key) from error


async def _score_all(
    metric: Any, rows: Rows, *, key: str, parallelism: int, in_declared_order: bool
) -> list[MetricResult]:
    import asyncio  # 40 ms, which a metric that is called by the host does not pay

    results: dict[int, MetricResult] = {}
    waiting = iter(enumerate(rows))

    async def work(share: Iterator[tuple[int, dict[str, Any]]]) -> None:
        for index, row in share:
            results[index] = await score_row(metric, row, index, key=key)

    workers = [asyncio.ensure_future(work(waiting)) for _ in range(min(parallelism, len(rows)))]
    try:
        for worker in asyncio.as_completed(workers):
            await worker
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    ordered = [results[index] for index in range(len(rows))]
    return [_in_order(metric, result) for result in ordered] if in_declared_order else ordered


def _in_order(metric: Any, result: MetricResult) -> MetricResult:
    outputs = {output.name: output for output in result.outputs}
    declared = [outputs[spec.name] for spec in metric.output_spec()]
    return MetricResult(outputs=declared, diagnostics=result.diagnostics)
