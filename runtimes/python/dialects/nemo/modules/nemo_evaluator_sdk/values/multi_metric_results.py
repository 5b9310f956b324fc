"""Exports the result class for several metrics under the documented name of the module."""

from .results import BenchmarkEvaluationResult

__all__ = ["BenchmarkEvaluationResult"]
