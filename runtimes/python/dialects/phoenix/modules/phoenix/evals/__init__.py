"""Evaluators of functions, and their scores."""

from phoenix.evals.evaluators import Score, create_evaluator

__pin__ = "arize-phoenix-evals==3.9.4"
__all__ = ["Score", "create_evaluator"]
