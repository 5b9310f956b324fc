"""Implements `bleu` with sacrebleu: the n-grams that a text shares with references, for each row and over all rows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ..values.metrics import BLEU
from ..values.protocol import MetricInput, MetricOutput, MetricOutputSpec, MetricResult
from .template_rendering import as_text, render, render_candidate

__all__ = ["BLEUMetric"]


class BLEUMetric(BLEU):
    """Scores 0 to 100, for each row and over all rows. The score over all rows uses only each row's first reference."""

    def model_post_init(self, context: Any, /) -> None:
        """Import sacrebleu before the first row."""
        super().model_post_init(context)
        with suppress(ImportError):  # an evaluation without rows does not need sacrebleu
            import sacrebleu  # noqa: F401

    def output_spec(self) -> list[MetricOutputSpec]:
        """Declare the output `sentence`."""
        return [MetricOutputSpec.continuous_score("sentence")]

    def corpus_output_spec(self) -> list[MetricOutputSpec]:
        """Declare the output `corpus`."""
        return [MetricOutputSpec.continuous_score("corpus")]

    async def compute_scores(self, input: MetricInput) -> MetricResult:  # noqa: A002 - the documented name
        import sacrebleu  # imported here: it takes 0.2 s, and other metrics do not need it

        references, candidate = self._texts(input)
        score = sacrebleu.sentence_bleu(candidate, references).score
        return MetricResult(outputs=[MetricOutput(name="sentence", value=score)])

    async def compute_corpus_scores(self, inputs: list[MetricInput]) -> MetricResult | None:
        import sacrebleu

        texts = [self._texts(row) for row in inputs]
        first = [references[0] for references, _ in texts]
        score = sacrebleu.corpus_bleu([candidate for _, candidate in texts], [first]).score
        return MetricResult(outputs=[MetricOutput(name="corpus", value=score)])

    def _texts(self, row: MetricInput) -> tuple[list[str], str]:
        references = [
            as_text(render(self, f"references[{at}]", template, row), "reference")
            for at, template in enumerate(self.references)
        ]
        return references, as_text(render_candidate(self, row), "candidate")
