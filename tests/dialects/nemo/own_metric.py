"""A metric in a user's own file, beside the other code that such files contain. Tests send it to sandboxes and to a
host.
"""

import math
from functools import lru_cache

from evaluator_host.sdk import MetricInput, MetricOutput, MetricOutputSpec, MetricResult

print("this module was loaded")
LIMITS = {"words": 1}
LIMITS["words"] += 1


@lru_cache
def most(data_most: int | None) -> int:
    return data_most or LIMITS["words"]


class Words:
    def count(self, text: str) -> int:
        return len(text.split())


class LengthMetric(Words):
    """A metric that labels an output of few words as `short`, and fails or hangs if the row says so."""

    type = "length"

    def __init__(self, factor: int = 1) -> None:
        self.factor = factor

    def output_spec(self) -> "list[MetricOutputSpec]":
        return [
            MetricOutputSpec.boolean("short"),
            MetricOutputSpec.discrete_score("words"),
            MetricOutputSpec.continuous_score("share"),
            MetricOutputSpec.label("kind"),
        ]

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        data = metric_input.row.data
        if data.get("bad"):
            raise ValueError("a bad row")
        while data.get("hangs"):
            pass
        words = self.count(metric_input.candidate.output_text or "") * self.factor
        found = {"short": words <= most(data.get("most")), "words": words}
        found |= {"share": words / 10 if words else math.nan, "kind": "some" if words else "none"}
        return MetricResult(outputs=[MetricOutput(name=name, value=value) for name, value in found.items()])

    async def compute_corpus_scores(self, inputs: list[MetricInput]) -> MetricResult:
        words = sum(self.count(one.candidate.output_text or "") for one in inputs)
        return MetricResult(outputs=[MetricOutput(name="words", value=words)])


def unused() -> None:
    raise AssertionError(missing)  # noqa: F821 - the metric does not need this function, so it must not be sent
