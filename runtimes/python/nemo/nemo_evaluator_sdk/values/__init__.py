"""Owns the values that evaluations, metrics and results are made of."""

from .common import SecretRef, SupportedJobTypes
from .dataset_schemas import FieldMapping
from .datasets import DatasetInput, DatasetRows
from .models import Model, ModelRef, ReasoningParams
from .multi_metric_results import BenchmarkEvaluationResult
from .params import InferenceParams, RunConfig, RunConfigOnline, RunConfigOnlineModel
from .protocol import (
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
)
from .results import (
    AggregatedMetricResult,
    AggregateFieldName,
    AggregateRangeScore,
    AggregateScore,
    AggregateScoreBase,
    EvaluationResult,
    Histogram,
    HistogramBin,
    Percentiles,
    RowScore,
)

__all__ = [
    "AggregateFieldName",
    "AggregateRangeScore",
    "AggregateScore",
    "AggregateScoreBase",
    "AggregatedMetricResult",
    "BenchmarkEvaluationResult",
    "BooleanValue",
    "CandidateOutput",
    "ContinuousScore",
    "DatasetInput",
    "DatasetRow",
    "DatasetRows",
    "DiscreteScore",
    "EvaluationResult",
    "FieldMapping",
    "Histogram",
    "HistogramBin",
    "InferenceParams",
    "Label",
    "MetricDescriptor",
    "MetricDiagnostic",
    "MetricInput",
    "MetricOutput",
    "MetricOutputSpec",
    "MetricResult",
    "MetricTypeName",
    "Model",
    "ModelRef",
    "Percentiles",
    "ReasoningParams",
    "RowScore",
    "RunConfig",
    "RunConfigOnline",
    "RunConfigOnlineModel",
    "SecretRef",
    "SupportedJobTypes",
]
