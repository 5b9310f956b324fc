"""Provides the names that metrics for NeMo Evaluator import, with the same behaviour but without 190 dependencies.

Judges and targets can call models. Features that need a platform or another service are missing. An evaluator that pins
the real package gets that package instead. Each module is imported when one of its names is first used.
"""

from __future__ import annotations

from typing import Any

from .lazy import attribute, names

version = "0.0.0"  # the version of the real package

_NAMES = {
    "datasets": "DatasetLoadError load_dataset_as_dicts",
    "execution.backend": "LocalBackend",
    "execution.evaluator": "Evaluator",
    "execution.values": "EvaluationError EvaluationPhase",
    "inference": "InferenceFn",
    "metrics.bleu": "BLEUMetric",
    "metrics.exact_match": "ExactMatchMetric",
    "metrics.f1": "F1Metric",
    "metrics.llm_judge": "LLMJudgeMetric",
    "metrics.number_check": "NumberCheckMetric",
    "metrics.protocol": "Metric",
    "metrics.rouge": "ROUGEMetric",
    "metrics.string_check": "StringCheckMetric",
    "metrics.tool_calling": "ToolCallingMetric",
    "resolver_protocols": "ModelResolver SecretResolver",
    "resolvers": "LocalModelResolver LocalSecretResolver",
    "structured_output": "StructuredOutputMode default_structured_output_mode",
    "values.agents": "Agent AgentBase GenericAgent NatAgentConfig NemoAgentToolkitAgent",
    "values.common": "SecretRef",
    "values.dataset_schemas": "FieldMapping",
    "values.datasets": "DatasetRows",
    "values.models": "Model ModelRef ReasoningParams",
    "values.params": "InferenceParams RunConfig RunConfigOnline RunConfigOnlineModel",
    "values.protocol": (
        "BooleanValue CandidateOutput ContinuousScore DatasetRow DiscreteScore Label MetricDescriptor "
        "MetricDiagnostic MetricInput MetricOutput MetricOutputSpec MetricResult MetricTypeName "
        "validate_metric_result"
    ),
    "values.results": "EvaluationResult",
    "values.scores": "JSONScoreParser RangeScore RegexScoreParser Rubric RubricScore",
}

__all__ = [*names(_NAMES), "version"]  # noqa: PLE0604 - the list has only strings


def __getattr__(name: str) -> Any:
    return attribute(__name__, globals(), _NAMES, name)
