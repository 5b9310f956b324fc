"""Exports the base classes of evaluators under the names that evaluators import."""

from typing import Any

from .base_evaluator import (
    BaseEvaluationCriteria,
    BaseEvaluator,
    BaseEvaluatorConfig,
    BaseEvaluatorJustification,
    GenericBaseEvaluator,
)

__all__ = [
    "BaseEvaluationCriteria",
    "BaseEvaluator",
    "BaseEvaluatorConfig",
    "BaseEvaluatorJustification",
    "GenericBaseEvaluator",
]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise ImportError(f"without a pin of uipath there are only base classes, not {name}; pin it, as in uipath==2.14.44")
