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
        """Return what every row's result has; asked for each row, so it must be stable."""
        ...

    async def compute_scores(self, input: MetricInput) -> MetricResult:  # noqa: A002 - the documented name
        """Score a row."""
        ...


@runtime_checkable
class CorpusMetric(Protocol):
    """Also scores all rows together."""

    async def compute_corpus_scores(self, inputs: list[MetricInput]) -> MetricResult | None:
        """Score them, or return None."""
        ...


@runtime_checkable
class MetricWithSecrets(Protocol):
    """Needs secrets."""

    def secrets(self) -> dict[str, SecretRef]:
        """Return references by the names of the variables they are for."""
        ...

    async def resolve_secrets(self, secret_resolver: SecretResolver) -> None:
        """Take them, before the first row."""
        ...


@runtime_checkable
class MetricWithModels(Protocol):
    """Needs models."""

    def model_refs(self) -> dict[str, ModelRef]:
        """Return references by the names of the fields they are for."""
        ...

    async def resolve_models(self, model_resolver: ModelResolver) -> None:
        """Take them, before the first row."""
        ...


@runtime_checkable
class MetricWithPreflight(Protocol):
    """Has something to do before the first row."""

    async def preflight(self) -> None:
        """Do it."""
        ...
