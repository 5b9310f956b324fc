"""Owns the documented place of the result of several metrics."""

from .results import BenchmarkEvaluationResult

__all__ = ["BenchmarkEvaluationResult"]
