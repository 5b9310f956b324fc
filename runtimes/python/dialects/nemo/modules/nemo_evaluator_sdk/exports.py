"""Imports all public names at once, for processes that import modules before they are used."""

from .datasets import DatasetLoadError, load_dataset_as_dicts
from .execution.backend import LocalBackend
from .execution.evaluator import Evaluator
from .execution.values import EvaluationError, EvaluationPhase
from .inference import InferenceFn
from .metrics.bleu import BLEUMetric
from .metrics.exact_match import ExactMatchMetric
from .metrics.f1 import F1Metric
from .metrics.llm_judge import LLMJudgeMetric
from .metrics.number_check import NumberCheckMetric
from .metrics.protocol import Metric
from .metrics.rouge import ROUGEMetric
from .metrics.string_check import StringCheckMetric
from .metrics.tool_calling import ToolCallingMetric
from .resolver_protocols import ModelResolver, SecretResolver
from .resolvers import LocalModelResolver, LocalSecretResolver
from .structured_output import StructuredOutputMode, default_structured_output_mode
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
    JSONScoreParser,
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
    RangeScore,
    ReasoningParams,
    RegexScoreParser,
    Rubric,
    RubricScore,
    RunConfig,
    RunConfigOnline,
    RunConfigOnlineModel,
    SecretRef,
)
from .values.agents import Agent, AgentBase, GenericAgent, NatAgentConfig, NemoAgentToolkitAgent
from .values.protocol import validate_metric_result

version = "0.0.0"  # the version of the real package

__all__ = [
    "Agent",
    "AgentBase",
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
    "GenericAgent",
    "InferenceFn",
    "InferenceParams",
    "JSONScoreParser",
    "LLMJudgeMetric",
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
    "NatAgentConfig",
    "NemoAgentToolkitAgent",
    "NumberCheckMetric",
    "ROUGEMetric",
    "RangeScore",
    "ReasoningParams",
    "RegexScoreParser",
    "Rubric",
    "RubricScore",
    "RunConfig",
    "RunConfigOnline",
    "RunConfigOnlineModel",
    "SecretRef",
    "SecretResolver",
    "StringCheckMetric",
    "StructuredOutputMode",
    "ToolCallingMetric",
    "default_structured_output_mode",
    "load_dataset_as_dicts",
    "validate_metric_result",
    "version",
]
