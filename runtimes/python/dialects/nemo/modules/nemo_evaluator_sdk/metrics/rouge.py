"""Implements `rouge` with rouge-score: single words, pairs, triples and the longest sequence that two texts share."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import Any, ClassVar, Literal

from ..values.metrics import ROUGE
from ..values.protocol import MetricInput, MetricOutput, MetricOutputSpec, MetricResult
from .template_rendering import render_texts

__all__ = ["ROUGEMetric", "RougeScoreName"]

RougeScoreName = Literal["rouge_1_score", "rouge_2_score", "rouge_3_score", "rouge_L_score"]


class ROUGEMetric(ROUGE):
    """Gives four scores from 0 to 1: F-measures that compare the stems of words."""

    scores_mapping: ClassVar[dict[RougeScoreName, str]] = {
        "rouge_1_score": "rouge1",
        "rouge_2_score": "rouge2",
        "rouge_3_score": "rouge3",
        "rouge_L_score": "rougeL",
    }

    def model_post_init(self, context: Any, /) -> None:
        """Import rouge-score before the first row."""
        super().model_post_init(context)
        with suppress(ImportError):  # an evaluation without rows does not need rouge-score
            from rouge_score import rouge_scorer  # noqa: F401

    @cached_property
    def _scorer(self) -> Any:
        from rouge_score import rouge_scorer  # imported here, because the import takes seconds

        return rouge_scorer.RougeScorer(list(self.scores_mapping.values()), use_stemmer=True)

    def output_spec(self) -> list[MetricOutputSpec]:
        """Declare the four scores."""
        return [MetricOutputSpec.continuous_score(name) for name in self.scores_mapping]

    async def compute_scores(self, input: MetricInput) -> MetricResult:  # noqa: A002 - the documented name
        found = self._scorer.score(*render_texts(self, input))
        scores = ((name, found[key].fmeasure) for name, key in self.scores_mapping.items())
        return MetricResult(outputs=[MetricOutput(name=name, value=score) for name, score in scores])
