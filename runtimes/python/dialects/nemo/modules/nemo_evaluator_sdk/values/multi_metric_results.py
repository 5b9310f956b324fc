"""Exports the result class for several metrics from the module where NeMo's documentation has it."""

from .results import BenchmarkEvaluationResult

__all__ = ["BenchmarkEvaluationResult"]
