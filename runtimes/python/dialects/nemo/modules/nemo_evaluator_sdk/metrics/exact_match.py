"""Implements `exact-match`: compares two strings, and ignores case, punctuation, articles and extra spaces."""

from __future__ import annotations

from ..values.metrics import ExactMatch
from ..values.protocol import MetricInput, MetricOutput, MetricOutputSpec, MetricResult
from .template_rendering import render_texts
from .utils import normalize_text

__all__ = ["ExactMatchMetric"]


class ExactMatchMetric(ExactMatch):
    """Scores 1 if the strings are equal, else 0."""

    def output_spec(self) -> list[MetricOutputSpec]:
        """Declare the output `exact-match`."""
        return [MetricOutputSpec.continuous_score(self.type.value)]

    async def compute_scores(self, input: MetricInput) -> MetricResult:  # noqa: A002 - the documented name
        reference, candidate = render_texts(self, input)
        same = normalize_text(candidate) == normalize_text(reference)
        return MetricResult(outputs=[MetricOutput(name=self.type.value, value=int(same))])
