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
        """Declare the outputs of a row's result. Called for each row; must always return the same list."""
        ...

    async def compute_scores(self, input: MetricInput) -> MetricResult:  # noqa: A002 - the documented name
        """Score a row."""
        ...


@runtime_checkable
class CorpusMetric(Protocol):
    """A metric that also scores all rows together."""

    async def compute_corpus_scores(self, inputs: list[MetricInput]) -> MetricResult | None:
        """Return the scores over all rows, or None if there are no such scores."""
        ...


@runtime_checkable
class MetricWithSecrets(Protocol):
    """A metric that needs secrets, such as API keys."""

    def secrets(self) -> dict[str, SecretRef]:
        """Return references to secrets, by environment variable."""
        ...

    async def resolve_secrets(self, secret_resolver: SecretResolver) -> None:
        """Look up the secrets and store them, before the first row."""
        ...


@runtime_checkable
class MetricWithModels(Protocol):
    """A metric that calls models and has references to them."""

    def model_refs(self) -> dict[str, ModelRef]:
        """Return references to models, by the metric's field that has the reference."""
        ...

    async def resolve_models(self, model_resolver: ModelResolver) -> None:
        """Look up the models and store them, before the first row."""
        ...


@runtime_checkable
class MetricWithPreflight(Protocol):
    """A metric with a step that runs once, before the first row."""

    async def preflight(self) -> None:
        """Run the step that comes before the first row."""
        ...
