"""Defines the values of evaluations, metrics and results. Each module is imported when it is first used."""

from __future__ import annotations

from typing import Any

from ..lazy import attribute, names

_NAMES = {
    "agents": "Agent AgentBase GenericAgent NatAgentConfig NemoAgentToolkitAgent",
    "common": "SecretRef SupportedJobTypes",
    "dataset_schemas": "FieldMapping",
    "datasets": "DatasetInput DatasetRows",
    "models": "Model ModelRef ReasoningParams",
    "multi_metric_results": "BenchmarkEvaluationResult",
    "params": "InferenceParams RunConfig RunConfigOnline RunConfigOnlineModel",
    "protocol": (
        "BooleanValue CandidateOutput ContinuousScore DatasetRow DiscreteScore Label MetricDescriptor "
        "MetricDiagnostic MetricInput MetricOutput MetricOutputSpec MetricResult MetricTypeName"
    ),
    "results": (
        "AggregateFieldName AggregateRangeScore AggregateRubricScore AggregateScore AggregateScoreBase "
        "AggregatedMetricResult EvaluationResult Histogram HistogramBin Percentiles RowScore RubricScoreStat"
    ),
    "scores": "JSONScoreParser RangeScore RegexScoreParser Rubric RubricScore",
}

__all__ = names(_NAMES)  # noqa: PLE0605 - `names` returns a list


def __getattr__(name: str) -> Any:
    return attribute(__name__, globals(), _NAMES, name)
