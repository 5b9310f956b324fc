"""Implements `f1`: how many words two texts share."""

from __future__ import annotations

from collections import Counter

from ..values.metrics import F1
from ..values.protocol import MetricInput, MetricOutput, MetricOutputSpec, MetricResult
from .template_rendering import render_texts
from .utils import normalize_text

__all__ = ["F1Metric"]


class F1Metric(F1):
    """Scores 0 to 1: the harmonic mean of the precision and the recall of words. Two texts without words score 1."""

    def output_spec(self) -> list[MetricOutputSpec]:
        """Declare the output `f1`."""
        return [MetricOutputSpec.continuous_score(self.type.value)]

    async def compute_scores(self, input: MetricInput) -> MetricResult:  # noqa: A002 - the documented name
        expected, given = (normalize_text(text).split() for text in render_texts(self, input))
        return MetricResult(outputs=[MetricOutput(name=self.type.value, value=_f1(expected, given))])


def _f1(expected: list[str], given: list[str]) -> float:
    if not expected or not given:
        return float(expected == given)
    shared = (Counter(expected) & Counter(given)).total()
    if not shared:
        return 0.0
    precision, recall = shared / len(given), shared / len(expected)
    return 2 * precision * recall / (precision + recall)
