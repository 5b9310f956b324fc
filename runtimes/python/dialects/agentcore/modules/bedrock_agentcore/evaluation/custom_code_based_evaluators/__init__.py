"""Code-based evaluators: the decorator, and the types of its argument and result."""

from bedrock_agentcore.evaluation.custom_code_based_evaluators.decorator import custom_code_based_evaluator
from bedrock_agentcore.evaluation.custom_code_based_evaluators.models import (
    EvaluatorInput,
    EvaluatorOutput,
    ReferenceInput,
)

__all__ = ["EvaluatorInput", "EvaluatorOutput", "ReferenceInput", "custom_code_based_evaluator"]
