"""Defines executions, results and errors, which accept the field names of all releases of the package."""

from __future__ import annotations

import traceback
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal

from opentelemetry.sdk.trace import ReadableSpan
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    computed_field,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel

_RENAMED = {"agent_output": "workload_output", "agent_trace": "workload_trace"}  # fields that release 2.12 renamed


class WorkloadExecution(BaseModel):
    """The input of an agent, its output, and the spans of its run.

    `agent_output` and `agent_trace`, the names before 2.12, are the same fields.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    agent_input: dict[str, Any] | None
    workload_output: dict[str, Any] | str
    workload_trace: list[ReadableSpan]
    expected_agent_behavior: str | None = None
    simulation_instructions: str = ""

    @model_validator(mode="before")
    @classmethod
    def _in_new_words(cls, values: Any) -> Any:
        return _renamed(values) if isinstance(values, dict) else values

    def model_copy(self, *, update: Any = None, deep: bool = False) -> WorkloadExecution:
        """Return a copy in which the fields in `update` are replaced; `update` may use the older names of fields."""
        return super().model_copy(update=_renamed(update) if update else update, deep=deep)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def agent_output(self) -> dict[str, Any] | str:
        """The older name of `workload_output`."""
        return self.workload_output

    @agent_output.setter
    def agent_output(self, value: dict[str, Any] | str) -> None:
        self.workload_output = value

    @computed_field  # type: ignore[prop-decorator]
    @property
    def agent_trace(self) -> list[ReadableSpan]:
        """The older name of `workload_trace`."""
        return self.workload_trace

    @agent_trace.setter
    def agent_trace(self, value: list[ReadableSpan]) -> None:
        self.workload_trace = value


def _renamed(values: dict[str, Any]) -> dict[str, Any]:
    """Rename fields to their new names; if a field has both names, the value under the new name counts."""
    old = {new: values[name] for name, new in _RENAMED.items() if name in values}
    return old | {name: value for name, value in values.items() if name not in _RENAMED}


AgentExecution = WorkloadExecution


class ScoreType(IntEnum):
    """The kind of a result's score."""

    BOOLEAN = 0
    NUMERICAL = 1
    ERROR = 2


class BaseEvaluationResult(BaseModel):
    """The fields of all results. Details that are a dict are kept as a dict; the real package drops them."""

    details: str | dict[str, Any] | SerializeAsAny[BaseModel] | None = None
    evaluation_time: float | None = None


class BooleanEvaluationResult(BaseEvaluationResult):
    """A result that is either passed or failed."""

    score: bool
    score_type: Literal[ScoreType.BOOLEAN] = ScoreType.BOOLEAN


class NumericEvaluationResult(BaseEvaluationResult):
    """A result that is a number of any size."""

    score: float
    score_type: Literal[ScoreType.NUMERICAL] = ScoreType.NUMERICAL


class ErrorEvaluationResult(BaseEvaluationResult):
    """The reason why there is no score. The argument `error` becomes `details`; the real package drops it."""

    score: float = 0.0
    score_type: Literal[ScoreType.ERROR] = ScoreType.ERROR

    @model_validator(mode="before")
    @classmethod
    def _keep_message(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("details") is not None or values.get("error") is None:
            return values
        return {**values, "details": str(values["error"])}


EvaluationResult = Annotated[
    BooleanEvaluationResult | NumericEvaluationResult | ErrorEvaluationResult, Field(discriminator="score_type")
]


class EvaluationResultDto(BaseModel):
    """A result as it is stored: true is 100, false and errors are 0."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    score: float
    details: str | dict[str, Any] | None = None
    evaluation_time: float | None = None

    @model_serializer(mode="wrap")
    def _without_missing_details(self, serialize: Any) -> Any:
        written = serialize(self)
        if self.details is None:
            written.pop("details", None)
        return written

    @classmethod
    def from_evaluation_result(cls, evaluation_result: Any) -> EvaluationResultDto:
        """Convert a result to the form in which it is stored."""
        kind, score = evaluation_result.score_type, evaluation_result.score
        if kind == ScoreType.BOOLEAN:
            score = 100 if score else 0
        elif kind == ScoreType.ERROR:
            score = 0
        details = evaluation_result.details
        if isinstance(details, BaseModel):
            details = details.model_dump()
        return cls(score=score, details=details, evaluation_time=evaluation_result.evaluation_time)


class EvalItemResult(BaseModel):
    """A result, and the id of its evaluator."""

    evaluator_id: str
    result: EvaluationResult


class LLMResponse(BaseModel):
    """A model's verdict."""

    score: float
    justification: str


class ToolCall(BaseModel):
    """A call to a tool."""

    name: str
    args: dict[str, Any]
    id: str | None = None


class ToolOutput(BaseModel):
    """The answer of a tool."""

    name: str
    output: str
    id: str | None = None


class EvaluatorType(str, Enum):
    """Type ids of the package's own evaluators."""

    CONTAINS = "uipath-contains"
    EXACT_MATCH = "uipath-exact-match"
    JSON_SIMILARITY = "uipath-json-similarity"
    LLM_JUDGE_OUTPUT_SEMANTIC_SIMILARITY = "uipath-llm-judge-output-semantic-similarity"
    LLM_JUDGE_OUTPUT_STRICT_JSON_SIMILARITY = "uipath-llm-judge-output-strict-json-similarity"
    LLM_JUDGE_TRAJECTORY_SIMILARITY = "uipath-llm-judge-trajectory-similarity"
    LLM_JUDGE_TRAJECTORY_SIMULATION = "uipath-llm-judge-trajectory-simulation"
    TOOL_CALL_ARGS = "uipath-tool-call-args"
    TOOL_CALL_COUNT = "uipath-tool-call-count"
    TOOL_CALL_ORDER = "uipath-tool-call-order"
    TOOL_CALL_OUTPUT = "uipath-tool-call-output"
    BINARY_CLASSIFICATION = "uipath-binary-classification"
    MULTICLASS_CLASSIFICATION = "uipath-multiclass-classification"


class UiPathEvaluationErrorCategory(str, Enum):
    """The cause of an error: the system or the user."""

    SYSTEM = "System"
    USER = "User"
    UNKNOWN = "Unknown"


class UiPathEvaluationErrorContract(BaseModel):
    """An error as data; `code` is `<component>.<NAME>`."""

    code: str
    title: str
    detail: str
    category: UiPathEvaluationErrorCategory = UiPathEvaluationErrorCategory.UNKNOWN


class UiPathEvaluationError(Exception):
    """A fault of an evaluator, its configuration or its criteria: see `error_info`."""

    def __init__(
        self,
        code: str,
        title: str,
        detail: str,
        category: UiPathEvaluationErrorCategory = UiPathEvaluationErrorCategory.UNKNOWN,
        prefix: str = "Python",
        include_traceback: bool = True,  # noqa: FBT001, FBT002 - the package's signature
    ) -> None:
        current = traceback.format_exc().strip() if include_traceback else ""
        if current and current != "NoneType: None":
            detail = f"{detail}\n\n{current}"
        super().__init__(detail)
        self.error_info = UiPathEvaluationErrorContract(
            code=f"{prefix}.{code}", title=title, detail=detail, category=category
        )

    @property
    def as_dict(self) -> dict[str, Any]:
        return self.error_info.model_dump()
