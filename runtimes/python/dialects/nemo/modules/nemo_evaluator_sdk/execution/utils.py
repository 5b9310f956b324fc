"""Recognises metrics by their members; copies and prepares metrics before a run."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from ..metrics.protocol import Metric, MetricWithModels, MetricWithPreflight, MetricWithSecrets
from ..metrics.utils import metric_type_name
from ..resolver_protocols import ModelResolver, SecretResolver
from ..values.params import RunConfig


def is_metric(value: object) -> bool:
    """Return whether a value has the members of a metric."""
    return isinstance(value, Metric)


def is_metric_sequence(value: object) -> bool:
    """Return whether a value is a sequence of metrics."""
    is_sequence = isinstance(value, Sequence) and not isinstance(value, Metric | str | bytes)
    return is_sequence and all(isinstance(item, Metric) for item in value)  # type: ignore[attr-defined]


def unique_metric_keys(metrics: Sequence[Metric]) -> list[str]:
    """Return a unique name for each metric: the second metric called `bleu` becomes `bleu_2`."""
    seen: Counter[str] = Counter()
    keys = []
    for name in map(metric_type_name, metrics):
        seen[name] += 1
        keys.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return keys


def copy_metric(metric: Any) -> Any:
    """Return a deep copy, so that a run does not change the caller's metric.

    Raises:
      TypeError: the metric cannot be copied.
    """
    if isinstance(metric, BaseModel):
        return metric.model_copy(deep=True)
    try:
        return copy.deepcopy(metric)
    except Exception as error:
        raise TypeError(
            f"Cannot copy metric {type(metric).__name__}; use a Pydantic model or ensure the metric "
            "supports copy.deepcopy() (for example, by implementing __deepcopy__)."
        ) from error


async def prepare_metric_for_execution(
    metric: Metric, *, params: RunConfig, model_resolver: ModelResolver, secret_resolver: SecretResolver
) -> Any:
    """Copy a metric, set its parameters, models and secrets, and run its preflight."""
    own = copy_metric(metric)
    if callable(getattr(own, "apply_evaluation_job_params", None)):
        own.apply_evaluation_job_params(params)
    if isinstance(own, MetricWithModels):
        await own.resolve_models(model_resolver)
    if isinstance(own, MetricWithSecrets):
        await own.resolve_secrets(secret_resolver)
    if isinstance(own, MetricWithPreflight):
        await own.preflight()
    return own
