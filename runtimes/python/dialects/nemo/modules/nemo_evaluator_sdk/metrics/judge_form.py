"""Implements evaluators of kind `judge`: a form (prompt, model, scale or labels, examples) in place of code."""

from __future__ import annotations

import json
import math
from typing import Any

from pydantic import Field, PrivateAttr

from ..inference import output_text
from ..values.protocol import CandidateOutput, DatasetRow, MetricDiagnostic, MetricInput, MetricResult
from ..values.scores import RangeScore, RubricScore
from .llm_judge import LLMJudgeMetric

__all__ = ["judge"]

_SHOWN = 300
_TASK = """\
{%- if system %}{{ system }}

{% endif -%}
Answer with one JSON object: {% if explains %}"reason", a short text; then {% endif %}"{{ name }}",
{%- if labels %} one of these texts:
{%- for one in labels %}
- {{ one.label }}{% if one.description %}: {{ one.description }}{% endif %}
{%- endfor %}
{%- else %} a number from {{ scale.min }} to {{ scale.max }}.
{%- endif %}
"""


class JudgeForm(LLMJudgeMetric):
    """A metric with one score by a judge, whose reason is a diagnostic.

    Attributes:
      form: The whole form.
    """

    form: dict[str, Any] = Field(default_factory=dict)

    _said: str = PrivateAttr(default="")

    async def compute_scores(self, input: MetricInput) -> MetricResult:  # noqa: A002 - the documented name
        """Ask the judge about a row; an answer without a score of the form is an error.

        Raises:
          ValueError: the judge's answer has no such score.
        """
        result = await super().compute_scores(input)
        score, value = self.scores[0], result.outputs[0].value
        within = isinstance(score, RubricScore) or score.minimum <= value <= score.maximum
        if math.isnan(value) or not within:
            wanted = "one of the labels" if isinstance(score, RubricScore) else f"{score.minimum} to {score.maximum}"
            raise ValueError(f"the judge's answer has no {score.name} ({wanted}): {self._said[:_SHOWN]}")
        reason = _reason(self._said)
        diagnostics = [MetricDiagnostic(message=reason)] if reason else []
        return MetricResult(outputs=result.outputs, diagnostics=diagnostics)

    def _request(self, row: MetricInput) -> dict[str, Any]:
        shown = super()._request(_with_names(row))
        *before, question = shown["messages"]
        for example in self.form["examples"]:
            data = {"output": example["outputs"], **example["inputs"]}
            output = example["outputs"] if isinstance(example["outputs"], str) else None
            asked = MetricInput(row=DatasetRow(data=data), candidate=CandidateOutput(output_text=output))
            answer = {"reason": example["reason"]} if self.form["explains"] else {}
            answer[self.form["name"]] = example["answer"]
            before += [
                super()._request(_with_names(asked))["messages"][-1],
                {"role": "assistant", "content": json.dumps(answer, ensure_ascii=False)},
            ]
        if not self.form["structured"]:
            shown = {name: value for name, value in shown.items() if name != "response_format"}
        return {**shown, "messages": [*before, question]}

    async def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        response = await super()._asked(request)
        self._said = str(output_text(response, self.reasoning) or "")
        return response


def judge(form: dict[str, Any]) -> JudgeForm:
    """Return the metric for a judge's form, which the host has completed."""
    from ..templates import render_template

    name, labels, scale = form["name"], form["labels"], form["scale"]
    if labels:
        score: Any = RubricScore(
            name=name,
            rubric=[
                {"label": one["label"], "description": one["description"], "value": one["score"]} for one in labels
            ],
        )
        answer: dict[str, Any] = {"type": "string", "enum": [one["label"] for one in labels]}
    else:
        score = RangeScore(name=name, minimum=scale["min"], maximum=scale["max"])
        whole = all(float(one).is_integer() for one in scale.values())
        answer = {"type": "integer" if whole else "number", "minimum": scale["min"], "maximum": scale["max"]}
    properties = {"reason": {"type": "string"}} if form["explains"] else {}
    properties[name] = answer
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    system = str(render_template(_TASK, form))
    prompt = {"messages": [{"role": "user", "content": form["prompt"]}]}
    return JudgeForm(
        model={"url": f"grant://{form['model']}", "name": form["model"], "format": "openai"},
        scores=[score],
        prompt_template=prompt,
        system_prompt=system,
        structured_output={"schema": schema},
        inference=form["inference"] or None,
        form=form,
    )


def _with_names(row: MetricInput) -> MetricInput:
    """Return a row whose templates also have `inputs` and `outputs`."""
    data = row.row.data
    output = row.candidate.output_text if row.candidate.output_text is not None else data.get("output")
    inputs = {name: value for name, value in data.items() if name != "output"}
    named = DatasetRow(row_index=row.row.row_index, data={**data, "inputs": inputs, "outputs": output})
    return MetricInput(row=named, candidate=row.candidate)


def _reason(text: str) -> str:
    try:
        found = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except ValueError:
        return ""
    reason = found.get("reason") if isinstance(found, dict) else None
    return reason if isinstance(reason, str) else ""
