"""Defines the protocol of metrics: any object with these members is a metric."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ..resolver_protocols import ModelResolver, SecretResolver
from ..values.common import SecretRef
from ..values.models import ModelRef
from ..values.protocol import (
    BooleanValue,
    CandidateOutput,
    ContinuousScore,
    DatasetRow,
    DiscreteScore,
    Label,
    MetricDescriptor,
    MetricDiagnostic,
    MetricInput,
    MetricOutput,
    MetricOutputSpec,
    MetricResult,
    MetricTypeName,
    validate_metric_result,
)

__all__ = [
    "BooleanValue",
    "CandidateOutput",
    "ContinuousScore",
    "CorpusMetric",
    "DatasetRow",
    "DiscreteScore",
    "Label",
    "Metric",
    "MetricDescriptor",
    "MetricDiagnostic",
    "MetricInput",
    "MetricOutput",
    "MetricOutputSpec",
    "MetricResult",
    "MetricTypeName",
    "MetricWithModels",
    "MetricWithPreflight",
    "MetricWithSecrets",
    "validate_metric_result",
]


@runtime_checkable
class Metric(Protocol):
    """Scores rows, one at a time."""

    @property
    def type(self) -> MetricTypeName:
        """The metric's public name."""
        ...

    def output_spec(self) -> list[MetricOutputSpec]:
        """Declare the outputs that every row's result has; called for each row, so it must always return the same."""
        ...

    async def compute_scores(self, input: MetricInput) -> MetricResult:  # noqa: A002 - the documented name
        """Score a row."""
        ...


@runtime_checkable
class CorpusMetric(Protocol):
    """A metric that also scores all rows together."""

    async def compute_corpus_scores(self, inputs: list[MetricInput]) -> MetricResult | None:
        """Return the scores over all rows, or None if there are none."""
        ...


@runtime_checkable
class MetricWithSecrets(Protocol):
    """A metric that needs secrets, such as API keys."""

    def secrets(self) -> dict[str, SecretRef]:
        """Return references to secrets by the name of the environment variable of each."""
        ...

    async def resolve_secrets(self, secret_resolver: SecretResolver) -> None:
        """Look the secrets up and keep them; called before the first row."""
        ...


@runtime_checkable
class MetricWithModels(Protocol):
    """A metric that calls models by reference."""

    def model_refs(self) -> dict[str, ModelRef]:
        """Return references to models by the name of the field of each."""
        ...

    async def resolve_models(self, model_resolver: ModelResolver) -> None:
        """Look the models up and keep them; called before the first row."""
        ...


@runtime_checkable
class MetricWithPreflight(Protocol):
    """A metric with a step to run once before the first row."""

    async def preflight(self) -> None:
        """Run this step."""
        ...
