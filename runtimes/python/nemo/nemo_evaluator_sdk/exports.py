"""Owns the list of public names, under whichever name this package is imported."""

from .datasets import DatasetLoadError, load_dataset_as_dicts
from .execution.backend import LocalBackend
from .execution.evaluator import Evaluator
from .execution.values import EvaluationError, EvaluationPhase
from .metrics.bleu import BLEUMetric
from .metrics.exact_match import ExactMatchMetric
from .metrics.f1 import F1Metric
from .metrics.number_check import NumberCheckMetric
from .metrics.protocol import Metric
from .metrics.rouge import ROUGEMetric
from .metrics.string_check import StringCheckMetric
from .metrics.tool_calling import ToolCallingMetric
from .resolver_protocols import ModelResolver, SecretResolver
from .resolvers import LocalModelResolver, LocalSecretResolver
from .values import (
    BooleanValue,
    CandidateOutput,
    ContinuousScore,
    DatasetRow,
    DatasetRows,
    DiscreteScore,
    EvaluationResult,
    FieldMapping,
    InferenceParams,
    Label,
    MetricDescriptor,
    MetricDiagnostic,
    MetricInput,
    MetricOutput,
    MetricOutputSpec,
    MetricResult,
    MetricTypeName,
    Model,
    ModelRef,
    ReasoningParams,
    RunConfig,
    RunConfigOnline,
    RunConfigOnlineModel,
    SecretRef,
)
from .values.protocol import validate_metric_result

version = "0.0.0"  # what the real package says of itself

__all__ = [
    "BLEUMetric",
    "BooleanValue",
    "CandidateOutput",
    "ContinuousScore",
    "DatasetLoadError",
    "DatasetRow",
    "DatasetRows",
    "DiscreteScore",
    "EvaluationError",
    "EvaluationPhase",
    "EvaluationResult",
    "Evaluator",
    "ExactMatchMetric",
    "F1Metric",
    "FieldMapping",
    "InferenceParams",
    "Label",
    "LocalBackend",
    "LocalModelResolver",
    "LocalSecretResolver",
    "Metric",
    "MetricDescriptor",
    "MetricDiagnostic",
    "MetricInput",
    "MetricOutput",
    "MetricOutputSpec",
    "MetricResult",
    "MetricTypeName",
    "Model",
    "ModelRef",
    "ModelResolver",
    "NumberCheckMetric",
    "ROUGEMetric",
    "ReasoningParams",
    "RunConfig",
    "RunConfigOnline",
    "RunConfigOnlineModel",
    "SecretRef",
    "SecretResolver",
    "StringCheckMetric",
    "ToolCallingMetric",
    "load_dataset_as_dicts",
    "validate_metric_result",
    "version",
]
