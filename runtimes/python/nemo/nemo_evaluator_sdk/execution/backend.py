"""Owns evaluation in this process, of outputs that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..datasets.loader import prepare_rows
from ..metrics.protocol import Metric
from ..metrics.utils import metric_type_name
from ..resolvers import LocalModelResolver, LocalSecretResolver
from ..values.dataset_schemas import FieldMapping
from ..values.datasets import DatasetInput
from ..values.params import RunConfig
from ..values.results import BenchmarkEvaluationResult, EvaluationResult, RowScore
from ..values.scores import AggregatedMetricResult
from .scoring import evaluate_metric
from .utils import prepare_metric_for_execution, unique_metric_keys

_NO_TARGET = (
    "these modules have no network and score outputs that are there already; to have a model make them, "
    "run a job with a `target` on the host, or pin the package nemo-platform"
)


class LocalBackend:
    """Runs metrics in this process.

    Attributes:
      secret_resolver: Where metrics find their secrets.
      model_resolver: Where they find their models.
    """

    def __init__(self) -> None:
        self.secret_resolver = LocalSecretResolver()
        self.model_resolver = LocalModelResolver()

    async def evaluate(
        self,
        *,
        metric: Metric,
        dataset: DatasetInput | str | Path,
        params: RunConfig,
        target: object = None,
        field_mapping: FieldMapping | None = None,
        prompt_template: object = None,
        aggregate_fields: tuple[str, ...] | None = None,
        preprocess_hooks: tuple[Any, ...] | None = None,
        postprocess_hooks: tuple[Any, ...] | None = None,
    ) -> EvaluationResult:
        """Run one metric.

        Raises:
          EvaluationError: a row failed.
        """
        _refuse(target, prompt_template, preprocess_hooks, postprocess_hooks)
        rows = prepare_rows(dataset, limit=params.limit_samples, mapping=field_mapping)
        own = await self._prepared(metric, params)
        key = metric_type_name(metric)
        result = await evaluate_metric(own, key=key, rows=rows, parallelism=params.parallelism)
        return _filtered(result, aggregate_fields)

    async def evaluate_benchmark(
        self,
        *,
        metrics: Sequence[Metric],
        dataset: DatasetInput | str | Path,
        params: RunConfig,
        target: object = None,
        field_mapping: FieldMapping | None = None,
        prompt_template: object = None,
        aggregate_fields: tuple[str, ...] | None = None,
        preprocess_hooks: tuple[Any, ...] | None = None,
        postprocess_hooks: tuple[Any, ...] | None = None,
    ) -> BenchmarkEvaluationResult:
        """Run several metrics.

        Raises:
          EvaluationError: a row failed.
          ValueError: there is no metric.
        """
        _refuse(target, prompt_template, preprocess_hooks, postprocess_hooks)
        if not metrics:
            raise ValueError("metrics must contain at least one (metric_ref, metric) tuple")
        rows = prepare_rows(dataset, limit=params.limit_samples, mapping=field_mapping)
        own = [await self._prepared(metric, params) for metric in metrics]
        results = {}
        for key, metric in zip(unique_metric_keys(metrics), own, strict=True):
            if not metric.output_spec():
                raise RuntimeError(f"Metric '{key}' does not declare any outputs")
            result = await evaluate_metric(
                metric, key=key, rows=rows, parallelism=params.parallelism, in_declared_order=True
            )
            results[key] = _filtered(result, aggregate_fields)
        return _together(results, len(rows))

    async def _prepared(self, metric: Metric, params: RunConfig) -> Any:
        return await prepare_metric_for_execution(
            metric, params=params, model_resolver=self.model_resolver, secret_resolver=self.secret_resolver
        )


def _refuse(target: object, prompt_template: object, *hooks: tuple[Any, ...] | None) -> None:
    if target is not None or prompt_template is not None or any(hooks):
        raise NotImplementedError(_NO_TARGET)


def _filtered(result: EvaluationResult, fields: tuple[str, ...] | None) -> EvaluationResult:
    if not fields:
        return result
    scores = [score.with_fields(frozenset(fields)) for score in result.aggregate_scores.scores]
    return EvaluationResult(row_scores=result.row_scores, aggregate_scores=AggregatedMetricResult(scores=scores))


def _together(results: dict[str, EvaluationResult], count: int) -> BenchmarkEvaluationResult:
    rows = [
        RowScore(
            row_index=index,
            item=first.item,
            sample=first.sample,
            metrics={key: result.row_scores[index].metrics[key] for key, result in results.items()},
            requests=[],
            metric_diagnostics=_diagnostics(results, index),
        )
        for index in range(count)
        for first in [next(iter(results.values())).row_scores[index]]
    ]
    scores = [score for result in results.values() for score in result.aggregate_scores.scores]
    return BenchmarkEvaluationResult(
        row_scores=rows, aggregate_scores=AggregatedMetricResult(scores=scores), per_metric=results
    )


def _diagnostics(results: dict[str, EvaluationResult], index: int) -> dict[str, Any] | None:
    found = (result.row_scores[index].metric_diagnostics for result in results.values())
    return {key: items for one in found if one for key, items in one.items()} or None
