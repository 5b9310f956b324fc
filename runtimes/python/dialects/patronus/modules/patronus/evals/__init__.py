"""The decorator, the base classes and the result of evaluators."""

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
