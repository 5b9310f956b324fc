"""Exports the result of several metrics under its documented module name."""

from .results import BenchmarkEvaluationResult

__all__ = ["BenchmarkEvaluationResult"]
