"""Implements `string-check`: compares two strings as they are, without normalizing them."""

from __future__ import annotations

from collections.abc import Callable

from ..values.metrics import StringCheck, StringCheckOperation
from ..values.protocol import MetricInput, MetricOutput, MetricOutputSpec, MetricResult
from .template_rendering import as_text, render

__all__ = ["StringCheckMetric", "StringCheckOperation"]

_CHECKS: dict[tuple[str, ...], Callable[[str, str], bool]] = {
    ("equals", "=="): lambda left, right: left == right,
    ("!=", "<>", "not equals"): lambda left, right: left != right,
    ("contains",): lambda left, right: right in left,
    ("not contains",): lambda left, right: right not in left,
    ("startswith",): str.startswith,
    ("endswith",): str.endswith,
}


class StringCheckMetric(StringCheck):
    """Scores 1.0 if the comparison is true, else 0.0."""

    def output_spec(self) -> list[MetricOutputSpec]:
        """Declare the output `string-check`."""
        return [MetricOutputSpec.continuous_score(self.type.value)]

    async def compute_scores(self, input: MetricInput) -> MetricResult:  # noqa: A002 - the documented name
        left = render(self, "left_template", self.left_template, input)
        right = render(self, "right_template", self.right_template, input)
        check = next(check for names, check in _CHECKS.items() if self.operation in names)
        score = float(check(as_text(left, "left value"), as_text(right, "right value")))
        return MetricResult(outputs=[MetricOutput(name=self.type.value, value=score)])
