from opik.evaluation.metrics import base_metric, score_result


class Exact(base_metric.BaseMetric):
    def __init__(self, name: str = "exact"):
        super().__init__(name=name, track=False)

    def score(self, output: str, reference: str, **ignored) -> score_result.ScoreResult:
        return score_result.ScoreResult(name=self.name, value=float(output == reference), reason="compared as text")
