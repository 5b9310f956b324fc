"""Defines the error of a failed evaluation."""

from __future__ import annotations

from enum import Enum


class EvaluationPhase(str, Enum):
    """The step of an evaluation at which a row failed."""

    SAMPLE_GENERATION = "sample_generation"
    METRIC_SCORING = "metric_scoring"


class EvaluationError(Exception):
    """A row failed, and therefore the run failed.

    Attributes:
      index: The row's position.
      message: The message of the error in the metric or the model.
    """

    def __init__(
        self,
        index: int,
        message: str,
        *,
        phase: EvaluationPhase = EvaluationPhase.METRIC_SCORING,
        metric_key: str | None = None,
    ) -> None:
        self.index = index
        self.message = message
        self.phase = phase
        self.metric_key = metric_key
        what = phase.value.replace("_", " ")
        whose = f" for metric {metric_key!r}" if metric_key else ""
        super().__init__(f"Evaluation failed during {what}{whose} on row {index}: {message}")
