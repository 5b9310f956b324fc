"""Exports the arguments and results of evaluators under the names that evaluators import."""

from .models import (
    AgentExecution,
    BooleanEvaluationResult,
    ErrorEvaluationResult,
    EvalItemResult,
    EvaluationResult,
    EvaluationResultDto,
    EvaluatorType,
    LLMResponse,
    NumericEvaluationResult,
    ScoreType,
    ToolCall,
    ToolOutput,
    UiPathEvaluationError,
    UiPathEvaluationErrorCategory,
    WorkloadExecution,
)

__all__ = [
    "AgentExecution",
    "BooleanEvaluationResult",
    "ErrorEvaluationResult",
    "EvalItemResult",
    "EvaluationResult",
    "EvaluationResultDto",
    "EvaluatorType",
    "LLMResponse",
    "NumericEvaluationResult",
    "ScoreType",
    "ToolCall",
    "ToolOutput",
    "UiPathEvaluationError",
    "UiPathEvaluationErrorCategory",
    "WorkloadExecution",
]
