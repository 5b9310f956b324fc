"""Defines the configurations of built-in metrics."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..enums import MetricType
from ..templates import compile_ahead
from .common import SupportedJobTypes
from .protocol import MetricTypeName

StringCheckOperation = Literal[
    "equals", "==", "!=", "<>", "not equals", "contains", "not contains", "startswith", "endswith"
]
NumberCheckOperation = Literal[
    *("equals", "==", "!=", "<>", "not equals"),
    *(">=", "gte", "greater than or equal", ">", "gt", "greater than"),
    *("<=", "lte", "less than or equal", "<", "lt", "less than"),
    "absolute difference",
]
_JOB_TYPES = (SupportedJobTypes.ONLINE, SupportedJobTypes.OFFLINE)


class MetricBase(BaseModel):
    """The fields of every built-in metric. Templates can use `item` (the row) and `sample` (the output to score)."""

    model_config = ConfigDict(defer_build=True)  # pydantic builds a class's validator at its first use

    type: MetricTypeName
    description: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    supported_job_types: list[SupportedJobTypes] = Field(default=list(_JOB_TYPES))

    def model_post_init(self, _context: Any, /) -> None:
        """Mark `type` as set, so that it is always written, and compile the templates before the first row."""
        self.__pydantic_fields_set__.add("type")
        given = (value if isinstance(value, list) else [value] for value in self.__dict__.values())
        compile_ahead(text for texts in given for text in texts if isinstance(text, str) and "{" in text)


class ExactMatch(MetricBase):
    """Configuration of `ExactMatchMetric`. Without `candidate`, the output text is compared with the reference."""

    type: Literal[MetricType.EXACT_MATCH] = MetricType.EXACT_MATCH
    reference: str
    candidate: str | None = None


class F1(MetricBase):
    """Configuration of `F1Metric`. Without `candidate`, the output text is compared with the reference."""

    type: Literal[MetricType.F1] = MetricType.F1
    reference: str
    candidate: str | None = None


class BLEU(MetricBase):
    """Configuration of `BLEUMetric`. Without `candidate`, the output text is compared with the references."""

    type: Literal[MetricType.BLEU] = MetricType.BLEU
    references: list[str]
    candidate: str | None = None


class ROUGE(MetricBase):
    """Configuration of `ROUGEMetric`. Without `candidate`, the output text is compared with the reference."""

    type: Literal[MetricType.ROUGE] = MetricType.ROUGE
    reference: str
    candidate: str | None = None


class StringCheck(MetricBase):
    """Configuration of `StringCheckMetric`."""

    type: Literal[MetricType.STRING_CHECK] = MetricType.STRING_CHECK
    operation: StringCheckOperation
    left_template: str
    right_template: str


class NumberCheck(MetricBase):
    """Configuration of `NumberCheckMetric`. Only the operation `absolute difference` uses `epsilon`."""

    type: Literal[MetricType.NUMBER_CHECK] = MetricType.NUMBER_CHECK
    operation: NumberCheckOperation
    left_template: str
    right_template: str
    epsilon: int | float | None = None

    @model_validator(mode="after")
    def _epsilon_where_needed(self) -> Self:
        if self.operation == "absolute difference" and self.epsilon is None:
            raise ValueError(f"epsilon value is required with operation {self.operation}")
        if self.operation != "absolute difference" and self.epsilon:
            raise ValueError(f"epsilon value can only be used with absolute difference operation: {self.operation}")
        return self


class ToolCalling(MetricBase):
    """Configuration of `ToolCallingMetric`. The rendered reference must be a list of tool calls."""

    model_config = ConfigDict(defer_build=True, validate_assignment=True)

    type: Literal[MetricType.TOOL_CALLING] = MetricType.TOOL_CALLING
    reference: str
