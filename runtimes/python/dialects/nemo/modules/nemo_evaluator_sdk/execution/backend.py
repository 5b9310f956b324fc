"""Runs metrics in this process, over existing outputs or over outputs that a model makes first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from ..datasets.loader import prepare_rows
from ..metrics.protocol import Metric
from ..metrics.utils import metric_type_name
from ..resolvers import LocalModelResolver, LocalSecretResolver
from ..values.aggregates import AggregatedMetricResult
from ..values.dataset_schemas import FieldMapping
from ..values.datasets import DatasetInput
from ..values.models import Model
from ..values.params import RunConfig, RunConfigOnline, RunConfigOnlineModel
from ..values.results import BenchmarkEvaluationResult, EvaluationResult, RowScore
from .online import Rows, Sample, offline_samples, online_samples
from .scoring import Policy, evaluate_metric
from .utils import prepare_metric_for_execution, unique_metric_keys

# Agents are recognised by the name of their class, because importing the class would slow down runs without agents.
_AGENTS = (
    "GenericAgent",
    "NemoAgentToolkitAgent",
)
OnError = Literal["raise", "row"]
Hooks = tuple[Any, ...] | None


class LocalBackend:
    """Runs metrics in this process.

    Attributes:
      secret_resolver: Looks up the secrets of metrics.
      model_resolver: Looks up the models of metrics.
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
        prompt_template: str | dict[str, Any] | None = None,
        aggregate_fields: tuple[str, ...] | None = None,
        preprocess_hooks: Hooks = None,
        postprocess_hooks: Hooks = None,
        on_error: OnError = "raise",
        row_timeout_s: float | None = None,
    ) -> EvaluationResult:
        """Run one metric.

        Raises:
          EvaluationError: a row failed.
        """
        rows = prepare_rows(dataset, limit=params.limit_samples, mapping=field_mapping)
        key = metric_type_name(metric)
        hooks = preprocess_hooks, postprocess_hooks
        samples = await self._samples(rows, target, params, prompt_template, hooks, key=key)
        own = await self._prepared(metric, params)
        policy = _policy(params, on_error, row_timeout_s)
        result = await evaluate_metric(own, key=key, rows=rows, samples=samples, policy=policy)
        return filtered(result, aggregate_fields)

    async def evaluate_benchmark(
        self,
        *,
        metrics: Sequence[Metric],
        dataset: DatasetInput | str | Path,
        params: RunConfig,
        target: object = None,
        field_mapping: FieldMapping | None = None,
        prompt_template: str | dict[str, Any] | None = None,
        aggregate_fields: tuple[str, ...] | None = None,
        preprocess_hooks: Hooks = None,
        postprocess_hooks: Hooks = None,
        on_error: OnError = "raise",
        row_timeout_s: float | None = None,
    ) -> BenchmarkEvaluationResult:
        """Run several metrics.

        Raises:
          EvaluationError: a row failed.
          ValueError: there is no metric.
        """
        if not metrics:
            raise ValueError("metrics must contain at least one (metric_ref, metric) tuple")
        rows = prepare_rows(dataset, limit=params.limit_samples, mapping=field_mapping)
        samples = await self._samples(rows, target, params, prompt_template, (preprocess_hooks, postprocess_hooks))
        own = [await self._prepared(metric, params) for metric in metrics]
        policy = _policy(params, on_error, row_timeout_s, in_declared_order=True)
        results = {}
        for key, metric in zip(unique_metric_keys(metrics), own, strict=True):
            if not metric.output_spec():
                raise RuntimeError(f"Metric '{key}' does not declare any outputs")
            result = await evaluate_metric(metric, key=key, rows=rows, samples=samples, policy=policy)
            results[key] = filtered(result, aggregate_fields)
        return joined(results, len(rows))

    async def _samples(
        self,
        rows: Rows,
        target: object,
        params: RunConfig,
        prompt_template: str | dict[str, Any] | None,
        hooks: tuple[Hooks, Hooks],
        *,
        key: str | None = None,
    ) -> list[Sample]:
        before, after = hooks
        is_agent = type(target).__name__ in _AGENTS
        if is_agent and prompt_template is None:
            raise ValueError("prompt_template is required for agent online evaluation")
        if is_agent or (isinstance(target, Model) and isinstance(params, RunConfigOnlineModel)):
            return await online_samples(
                rows,
                target=target,
                prompt_template=prompt_template,
                params=params,
                secret_resolver=self.secret_resolver,
                preprocess=before or (),
                postprocess=after or (),
                key=key,
            )
        if target is not None:
            raise TypeError(
                f"a target must be a Model, a GenericAgent or a NemoAgentToolkitAgent, not {type(target).__name__}"
            )
        samples = offline_samples(rows)
        for index, sample in enumerate(samples):
            for hook in after or ():
                sample.given = hook.postprocess(sample.given, id=str(index))
        return samples

    async def _prepared(self, metric: Metric, params: RunConfig) -> Any:
        return await prepare_metric_for_execution(
            metric, params=params, model_resolver=self.model_resolver, secret_resolver=self.secret_resolver
        )


def _policy(
    params: RunConfig, on_error: OnError, row_timeout_s: float | None, *, in_declared_order: bool = False
) -> Policy:
    ignored = isinstance(params, RunConfigOnline) and params.ignore_request_failure
    return Policy(
        parallelism=params.parallelism,
        fail_fast=on_error == "raise" and not ignored,
        timeout_s=row_timeout_s,
        in_declared_order=in_declared_order,
    )


def filtered(result: EvaluationResult, fields: tuple[str, ...] | None) -> EvaluationResult:
    """Return the result with only these fields in its aggregate scores; None means all fields."""
    if not fields:
        return result
    scores = [score.with_fields(frozenset(fields)) for score in result.aggregate_scores.scores]
    return EvaluationResult(row_scores=result.row_scores, aggregate_scores=AggregatedMetricResult(scores=scores))


def joined(results: dict[str, EvaluationResult], count: int) -> BenchmarkEvaluationResult:
    """Join the results of several metrics over the same rows into one result."""
    rows = []
    for index in range(count):
        own = {key: result.row_scores[index] for key, result in results.items()}
        first = next(iter(own.values()))
        rows.append(
            RowScore(
                row_index=index,
                item=first.item,
                sample=first.sample,
                metrics={key: row.metrics[key] for key, row in own.items()},
                requests=_requests(first.sample, list(own.values())),
                metric_errors=_merged(row.metric_errors for row in own.values()),
                metric_diagnostics=_merged(row.metric_diagnostics for row in own.values()),
            )
        )
    scores = [score for result in results.values() for score in result.aggregate_scores.scores]
    return BenchmarkEvaluationResult(
        row_scores=rows, aggregate_scores=AggregatedMetricResult(scores=scores), per_metric=results
    )


def _requests(sample: dict[str, Any], rows: Sequence[RowScore]) -> list[dict[str, Any]]:
    """Return the model requests of a row: the one that made the output, then those of each metric."""
    made = 1 if sample.get("response") else 0
    return [*rows[0].requests[:made], *(one for row in rows for one in row.requests[made:])]


def _merged(parts: Any) -> dict[str, Any] | None:
    return {key: value for part in parts if part for key, value in part.items()} or None
