"""Scores rows and their samples with a prepared metric, a few rows at a time, and keeps the rows' order."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..inference import requests_log
from ..metrics.aggregation import aggregate_metrics, corpus_statistics, is_aggregateable_output_spec, rubrics_of
from ..metrics.protocol import CorpusMetric
from ..values.aggregates import AggregatedMetricResult
from ..values.protocol import MetricOutput, MetricOutputSpec, MetricResult, validate_metric_result
from ..values.results import EvaluationResult, RowScore
from .online import Sample
from .samples import build_metric_input
from .values import EvaluationError

Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Policy:
    """How rows are scored.

    Attributes:
      parallelism: How many rows are scored at the same time, on one event loop.
      fail_fast: Whether the first row that fails ends the run.
      timeout_s: Time limit for a row in seconds; it does not stop code that blocks the event loop.
      in_declared_order: Whether outputs are in the order in which the metric declares them, instead of the order in its
        result.
    """

    parallelism: int = 8
    fail_fast: bool = True
    timeout_s: float | None = None
    in_declared_order: bool = False


@dataclass(frozen=True, slots=True)
class Scored:
    """The outcome of a row; the numbers of a failed row are NaN."""

    result: MetricResult
    requests: list[dict[str, Any]]
    error: str | None = None


def corpus_output_spec(metric: Any) -> list[MetricOutputSpec]:
    """Return the declared outputs of a metric's score over all rows, or else those of its score for a row."""
    declared = getattr(metric, "corpus_output_spec", None)
    return list(declared() if callable(declared) else metric.output_spec())


async def evaluate_metric(
    metric: Any, *, key: str, rows: Rows, samples: Sequence[Sample], policy: Policy
) -> EvaluationResult:
    """Score rows and aggregate the scores; the names of scores begin with `key`.

    Raises:
      EvaluationError: a row failed and failures end the run.
    """
    scored = await _score_all(metric, rows, samples, key=key, policy=policy)
    statistics: list[Any] = []
    if rows:
        results = [one.result for one in scored]
        statistics = list(aggregate_metrics(results, metric.output_spec(), rubrics_of(metric)).scores)
        statistics += await _corpus_statistics(metric, rows, samples, scored)
    scores = [score.model_copy(update={"name": f"{key}.{score.name}"}) for score in statistics]
    row_scores = [
        RowScore(
            row_index=index,
            item=row,
            sample=sample.given,
            metrics={key: one.result.outputs},
            requests=[*sample.requests, *one.requests],
            metric_errors={key: one.error} if one.error is not None else None,
            metric_diagnostics={key: one.result.diagnostics} if one.result.diagnostics else None,
        )
        for index, (row, sample, one) in enumerate(zip(rows, samples, scored, strict=True))
    ]
    return EvaluationResult(row_scores=row_scores, aggregate_scores=AggregatedMetricResult(scores=scores))


async def _corpus_statistics(metric: Any, rows: Rows, samples: Sequence[Sample], scored: Sequence[Scored]) -> list[Any]:
    if not isinstance(metric, CorpusMetric):
        return []
    inputs = [
        build_metric_input(row, sample.given, index)
        for index, (row, sample, one) in enumerate(zip(rows, samples, scored, strict=True))
        if one.error is None
    ]
    together = await metric.compute_corpus_scores(inputs) if inputs else None
    return list(corpus_statistics(together, corpus_output_spec(metric))) if together else []


async def _score_row(metric: Any, row: dict[str, Any], sample: Sample, index: int, *, policy: Policy) -> MetricResult:
    import asyncio

    declared = metric.output_spec()
    scoring: Coroutine[Any, Any, Any] = metric.compute_scores(build_metric_input(dict(row), sample.given, index))
    if policy.timeout_s is None:
        return validate_metric_result(await scoring, declared)
    try:
        async with asyncio.timeout(policy.timeout_s):
            return validate_metric_result(await scoring, declared)
    except TimeoutError as error:
        raise TimeoutError(str(error) or f"no result within {policy.timeout_s:g} s") from error


async def _outcome(metric: Any, row: dict[str, Any], sample: Sample, index: int, *, key: str, policy: Policy) -> Scored:
    """Score a row, and check the metric's result.

    Raises:
      EvaluationError: the metric raised an error, or its result is not as declared, and failures end the run.
    """
    log: list[dict[str, Any]] = []
    requests_log.set(log)
    if sample.error is not None:
        return Scored(nan_result(metric.output_spec()), log, sample.error)
    try:
        return Scored(await _score_row(metric, row, sample, index, policy=policy), log)
    except Exception as error:
        if policy.fail_fast:
            raise EvaluationError(index, str(error), metric_key=key) from error
        return Scored(nan_result(metric.output_spec()), log, str(error) or type(error).__name__)


def nan_result(declared: Sequence[MetricOutputSpec]) -> MetricResult:
    """Return the result for a row that failed: NaN for every number."""
    nan = float("nan")
    return MetricResult(
        outputs=[MetricOutput(name=spec.name, value=nan) for spec in declared if is_aggregateable_output_spec(spec)]
    )


async def _score_all(metric: Any, rows: Rows, samples: Sequence[Sample], *, key: str, policy: Policy) -> list[Scored]:
    import asyncio  # imported here, because it takes 40 ms, and a metric called by the host does not need it

    results: dict[int, Scored] = {}
    waiting = iter(enumerate(zip(rows, samples, strict=True)))

    async def work(share: Iterator[tuple[int, tuple[dict[str, Any], Sample]]]) -> None:
        for index, (row, sample) in share:
            results[index] = await _outcome(metric, row, sample, index, key=key, policy=policy)

    workers = [asyncio.ensure_future(work(waiting)) for _ in range(min(policy.parallelism, len(rows)))]
    try:
        for worker in asyncio.as_completed(workers):
            await worker
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    ordered = [results[index] for index in range(len(rows))]
    return [_in_order(metric, one) for one in ordered] if policy.in_declared_order else ordered


def _in_order(metric: Any, scored: Scored) -> Scored:
    outputs = {output.name: output for output in scored.result.outputs}
    declared = [outputs[spec.name] for spec in metric.output_spec() if spec.name in outputs]
    result = MetricResult(outputs=declared, diagnostics=scored.result.diagnostics)
    return Scored(result, scored.requests, scored.error)
