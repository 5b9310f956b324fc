"""Evaluators made from functions, and their scores."""

from phoenix.evals.evaluators import Score, create_evaluator

__all__ = ["Score", "create_evaluator"]
