"""The decorator and the base classes for evaluators, and the class of their results."""

from patronus.evals.evaluators import (
    AsyncEvaluator,
    AsyncStructuredEvaluator,
    Evaluator,
    StructuredEvaluator,
    evaluator,
)
from patronus.evals.types import EvaluationResult

__all__ = [
    "AsyncEvaluator",
    "AsyncStructuredEvaluator",
    "EvaluationResult",
    "Evaluator",
    "StructuredEvaluator",
    "evaluator",
]
