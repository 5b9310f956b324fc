"""Implements `tool-calling`: checks that the right functions were called with the right arguments."""

from __future__ import annotations

import json
import math
from typing import Any, ClassVar

from ..values.metrics import ToolCalling
from ..values.protocol import MetricInput, MetricOutput, MetricOutputSpec, MetricResult
from .template_rendering import render

__all__ = ["ToolCallingMetric"]


class ToolCallingMetric(ToolCalling):
    """Gives two scores, each 1.0 or 0.0: one for the called functions, one for the functions with their arguments.

    The order of the calls does not matter. The score for arguments is NaN if the arguments of a call are not JSON. The
    reference and the response are in OpenAI's format. The response comes from the sample, or else from the row's
    `response`.
    """

    _score_names: ClassVar[tuple[str, str]] = ("function_name_accuracy", "function_name_and_args_accuracy")

    def output_spec(self) -> list[MetricOutputSpec]:
        """Declare both scores."""
        return [MetricOutputSpec.continuous_score(name) for name in self._score_names]

    async def compute_scores(self, input: MetricInput) -> MetricResult:  # noqa: A002 - the documented name
        reference = render(self, "reference", self.reference, input)
        if not isinstance(reference, list):
            raise TypeError("The reference must render to a list of OpenAI-style tool calls.")
        expected = _expected(reference)
        calls = _calls(input.candidate.as_sample().get("response") or input.row.data.get("response"))
        names_match = set(expected) == {call["function"]["name"] for call in calls}
        scores = (float(names_match), _arguments_score(expected, calls, names_match=names_match))
        outputs = [MetricOutput(name=name, value=score) for name, score in zip(self._score_names, scores, strict=True)]
        return MetricResult(outputs=outputs)


def _expected(reference: list[Any]) -> dict[str, Any]:
    try:
        return dict(_call(item) for item in reference)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"Invalid reference template - expected each item to have function.name and function.arguments: {error}"
        ) from error


def _call(item: Any) -> tuple[str, Any]:
    function = _mapping(item, "reference item")["function"]
    name = _mapping(function, "reference function payload")["name"]
    if not isinstance(name, str):
        raise TypeError(f"expected reference function name to be a string, got {type(name).__name__}")
    return name, function["arguments"]


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"expected {what} to be a mapping, got {type(value).__name__}")
    return value


def _calls(response: Any) -> list[dict[str, Any]]:
    if not response:
        raise ValueError("No response found in sample or item - tool-calling metric requires model response data")
    if not isinstance(response, dict):
        raise ValueError(f"Invalid response format: expected response dict, got {response!r}.")
    choices = response.get("choices")
    if not isinstance(choices, list) or not choices:
        raise ValueError(f"Invalid response format: expected non-empty choices list in response {response!r}.")
    if not isinstance(choices[0], dict) or "message" not in choices[0]:
        raise ValueError(f"Invalid response format: expected choices[0].message in response {response!r}.")
    calls = choices[0]["message"].get("tool_calls") or []
    return [call for call in calls if "name" in call.get("function", {})]


def _arguments_score(expected: dict[str, Any], calls: list[dict[str, Any]], *, names_match: bool) -> float:
    try:
        given = {call["function"]["name"]: _arguments(call["function"].get("arguments")) for call in calls}
    except (json.JSONDecodeError, TypeError):
        return math.nan
    return float(names_match and given == expected)


def _arguments(text: Any) -> Any:
    return {} if text is None else json.loads(text)
