"""Built-in metrics of NeMo Evaluator get the packages that they need, and metrics can score all rows together."""

from dataclasses import replace
from typing import Any

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, EvaluatorSettings, Row
from evaluator_host.types.outcome import EvaluationResult, Status
from tests.conftest import ON_BUBBLEWRAP
from tests.dialects.nemo.metrics import metric, returning

BLEU = 'from nemo_evaluator_sdk import BLEUMetric\nm = BLEUMetric(references=["{{r}}"])'
SUM = (
    metric(
        """
    return MetricResult(outputs=[MetricOutput(name="p", value=float(text))])

    def corpus_output_spec(self):
        return [MetricOutputSpec.continuous_score("sum"), MetricOutputSpec.boolean("all")]

    async def compute_corpus_scores(self, inputs):
        found = [float(one.candidate.output_text) for one in inputs]
        if found == [7.0]:
            return None
        if 9.0 in found:
            raise ValueError(f"rows {[one.row.row_index for one in inputs]}")
        values = {"sum": sum(found), "all": all(found), "undeclared": 1}
        return MetricResult(outputs=[MetricOutput(name=name, value=value) for name, value in values.items()])
    """,
        'MetricOutputSpec.continuous_score("p")',
    )
    .replace("        def corpus", "    def corpus")
    .replace("        async def compute_corpus", "    async def compute_corpus")
)


async def together(service: Service, code: str, *outputs: str, **inputs: str) -> EvaluationResult | None:
    evaluator = Evaluator(code, settings=EvaluatorSettings(score_output="p" if code is SUM else None))
    rows = [Row(dict(inputs), text) for text in outputs]
    return await service.evaluate_together(evaluator, rows, await service.evaluate_batch(evaluator, rows))


async def test_rows_have_scores_together(service: Service) -> None:
    result = await together(service, SUM, "1", "no number", "2.5")
    assert result is not None
    assert (result.status, result.metrics) == (Status.SCORED, {"sum": 3.5, "all": 1.0})


@ON_BUBBLEWRAP
async def test_rows_that_have_nothing_together_are_not_asked(service: Service) -> None:
    assert await together(service, returning("True"), "1") is None
    assert await together(service, SUM, "no number") is None
    assert await together(service, "def evaluate(i, o, t):\n    return 1", "1") is None
    nothing = await together(service, SUM, "7")
    assert nothing is not None
    assert (nothing.status, nothing.metrics, nothing.score) == (Status.SCORED, {}, None)


@ON_BUBBLEWRAP
async def test_a_failure_over_all_rows_is_reported_as_the_error_of_all_rows(service: Service) -> None:
    result = await together(service, SUM, "x", "9", "1")
    assert result is not None
    assert result.error is not None
    assert (result.error.type, result.error.message) == ("ValueError", "rows [1, 2]")


@pytest.mark.long
@ON_BUBBLEWRAP
async def test_rouge_and_bleu_come_with_what_computes_them(service: Service) -> None:
    row = Row(inputs={"r": "the cat sat on the mat"}, outputs="the cats")
    code = 'from nemo_evaluator_sdk import ROUGEMetric\nm = ROUGEMetric(reference="{{r}}")'
    rouge = await service.evaluate(Evaluator(code), row)
    assert rouge.metrics == {"rouge_1_score": 0.5, "rouge_2_score": pytest.approx(1 / 3), "rouge_3_score": 0.0} | {
        "rouge_L_score": 0.5
    }
    same = await service.evaluate(Evaluator(BLEU), replace(row, outputs=row.inputs["r"]))
    assert same.score == pytest.approx(100.0)
    corpus = await together(service, BLEU, "a cat sat on the mat", r=row.inputs["r"])
    assert corpus is not None
    assert corpus.metrics == {"corpus": pytest.approx(100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25)}


@pytest.mark.sampled(3)
@ON_BUBBLEWRAP
@pytest.mark.parametrize(
    ("base", "arguments", "module"),
    [
        ("ROUGEMetric", {"reference": "{{r}}"}, "rouge_score"),
        ("BLEUMetric", {"references": ["{{r}}"]}, "sacrebleu"),
        ("F1Metric", {"reference": "{{r}}"}, "jinja2.sandbox"),
    ],
)
async def test_a_metrics_modules_are_there_before_the_first_row(
    service: Service, base: str, arguments: dict[str, Any], module: str
) -> None:
    code = f"""import sys
from nemo_evaluator_sdk import {base}, MetricOutput, MetricOutputSpec, MetricResult
class M({base}):
    def output_spec(self):
        return [MetricOutputSpec.boolean("there")]
    async def compute_scores(self, metric_input):
        return MetricResult(outputs=[MetricOutput(name="there", value="{module}" in sys.modules)])
"""
    result = await service.evaluate(Evaluator(code, settings=EvaluatorSettings(config=arguments)), Row())
    assert (result.error, result.passed) == (None, True)
