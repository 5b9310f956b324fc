"""Light modules that replace `patronus` (as in release 0.1.26): evaluators and their results."""

from patronus.evals import AsyncStructuredEvaluator, EvaluationResult, Evaluator, StructuredEvaluator, evaluator

__pin__ = "patronus==0.1.26"
__version__ = "0.1.26"
__all__ = [
    "AsyncStructuredEvaluator",
    "EvaluationResult",
    "Evaluator",
    "StructuredEvaluator",
    "evaluator",
    "init",
    "traced",
]


def init(**_settings):
    """Do nothing, because nothing is recorded here."""


def traced(func=None, **_settings):
    """Return the function unchanged. The decorator can be used with or without parentheses."""
    return traced if func is None or isinstance(func, str) else func
