"""Implements `number-check`: compares the last number in one text with the last number in another."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable

from ..values.metrics import NumberCheck, NumberCheckOperation
from ..values.protocol import MetricInput, MetricOutput, MetricOutputSpec, MetricResult
from .template_rendering import render

__all__ = ["NumberCheckMetric", "NumberCheckOperation"]

_NUMBER = re.compile(r"[+-]?[.\d]*\d+")
_CHECKS: dict[tuple[str, ...], Callable[[float, float], bool]] = {
    ("equals", "=="): operator.eq,
    ("!=", "<>", "not equals"): operator.ne,
    (">=", "gte", "greater than or equal"): operator.ge,
    (">", "gt", "greater than"): operator.gt,
    ("<=", "lte", "less than or equal"): operator.le,
    ("<", "lt", "less than"): operator.lt,
}


class NumberCheckMetric(NumberCheck):
    """Scores 1.0 if the comparison is true, else 0.0; NaN if one of the texts has no number."""

    def output_spec(self) -> list[MetricOutputSpec]:
        """Declare the output `number-check`."""
        return [MetricOutputSpec.continuous_score(self.type.value)]

    async def compute_scores(self, input: MetricInput) -> MetricResult:  # noqa: A002 - the documented name
        left = last_number(str(render(self, "left_template", self.left_template, input)))
        right = last_number(str(render(self, "right_template", self.right_template, input)))
        unknown = math.isnan(left) or math.isnan(right)
        score = math.nan if unknown else float(self._holds(left, right))
        return MetricResult(outputs=[MetricOutput(name=self.type.value, value=score)])

    def _holds(self, left: float, right: float) -> bool:
        if self.epsilon is not None and self.operation == "absolute difference":
            return abs(left - right) <= self.epsilon
        return next(check for names, check in _CHECKS.items() if self.operation in names)(left, right)


def last_number(text: str) -> int | float:
    """Return the last number in a text; NaN if there is none, or if it is not a valid number, such as `1.2.3`."""
    found = _NUMBER.findall(text)
    points = found[-1].count(".") if found else 2
    if points > 1:
        return math.nan
    return float(found[-1]) if points else int(found[-1])
