"""Defines the configuration of `LLMJudgeMetric`, and its default prompt."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from ..enums import MetricType
from ..inference import is_chat
from .common import SupportedJobTypes
from .metrics import MetricBase
from .models import Model, ModelRef, ReasoningParams
from .params import InferenceParams
from .scores import Score

_RESERVED = ("reasoning", "system_prompt")
_TASK = """\
Judge the answer that you are given, and nothing else. Score {{ scores | join(", ") }}.
{%- for name, score in scores.items() %}
{{ name }}{% if score.description %}: {{ score.description }}{% endif %}
{%- if score.rubric is defined %}, one of:
{%- for level in score.rubric %}
- {{ level.label }}{% if level.description %}: {{ level.description }}{% endif %}
{%- endfor %}
{%- else %}, from {{ score.minimum }} to {{ score.maximum }}
{%- endif %}
{%- endfor %}
"""


class LLMJudge(MetricBase):
    """Configuration of `LLMJudgeMetric`.

    Attributes:
      model: The judge.
      scores: The scores that the judge gives, and how to read each from the judge's answer.
      prompt_template: A string, or a request such as `{"messages": […]}`; None for a prompt made from the scores.
      structured_output: `{"schema": …}`; None for a schema made from the scores.
      system_prompt: Text that is put before the system message.
      ignore_request_failure: Whether scores are NaN when the judge does not answer; otherwise the row fails.
    """

    type: Literal[MetricType.LLM_JUDGE] = MetricType.LLM_JUDGE
    model: Model | ModelRef
    scores: list[Score] = Field(min_length=1)
    prompt_template: str | dict[str, Any] | None = None
    optional_fields: list[str] = Field(default_factory=list)
    structured_output: dict[str, Any] | None = None
    inference: InferenceParams | None = None
    system_prompt: str | None = None
    reasoning: ReasoningParams | None = None
    ignore_request_failure: bool = False

    @model_validator(mode="after")
    def _unique_scores(self) -> Self:
        if len({score.name for score in self.scores}) != len(self.scores):
            raise ValueError("score names must be unique")
        return self

    @model_validator(mode="after")
    def _own_keys(self) -> Self:
        given = self.prompt_template if isinstance(self.prompt_template, dict) else {}
        if found := [name for name in _RESERVED if name in given]:
            raise ValueError(
                f"prompt_template cannot include {', '.join(sorted(found))}. "
                "Use top-level fields 'system_prompt' and 'reasoning' instead."
            )
        return self


def default_prompt(model: Model, job_type: SupportedJobTypes) -> dict[str, Any]:
    """Return the default prompt of a judge. The prompt contains a model's output, or else the whole row."""
    shown = "{{ sample.output_text }}" if job_type is SupportedJobTypes.ONLINE else "{{ item | string }}"
    if is_chat(model.url):
        return {"messages": [{"role": "system", "content": _TASK}, {"role": "user", "content": shown}]}
    return {"prompt": f"{_TASK}\n{shown}"}
