"""Defines the base class of evaluators: a model with an id, a configuration and three type parameters."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from .._helpers.helpers import track_evaluation_metrics
from ..models.models import (
    EvaluationResult,
    EvaluationResultDto,
    UiPathEvaluationError,
    UiPathEvaluationErrorCategory,
    WorkloadExecution,
)

# accepted names: the new one, its form in Python, and the one before release 2.7.1
_CONFIG_KEYS = ("evaluatorConfig", "evaluator_config", "config")
_TYPES = ("evaluation_criteria_type", "config_type", "justification_type")


class BaseEvaluationCriteria(BaseModel):
    """The expectations of one test case; keys in camelCase or snake_case."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class BaseEvaluatorJustification(BaseModel):
    """The reason for a score, as an object."""

    expected: str
    actual: str

    @classmethod
    def try_from(cls, details: object) -> BaseEvaluatorJustification | None:
        """Convert a result's details to a justification. Return None if the details do not fit."""
        if isinstance(details, cls):
            return details
        try:
            return cls.model_validate(details) if isinstance(details, dict) else None
        except ValueError:
            return None


T = TypeVar("T", bound=BaseEvaluationCriteria)


class BaseEvaluatorConfig(BaseModel, Generic[T]):
    """How an evaluator behaves; keys in camelCase or snake_case."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    name: str = Field(description="The name of the evaluator")
    description: str = Field(default="", description="The description of the evaluator")
    default_evaluation_criteria: T | None = None


C = TypeVar("C", bound=BaseEvaluatorConfig[Any])
J = TypeVar("J")  # str, None, type(None) or a justification


class BaseEvaluator(BaseModel, ABC, Generic[T, C, J]):
    """Scores executions. Create one as `Evaluator(id=…, evaluatorConfig={…})`.

    The name of the argument before 2.7.1, `config`, also works.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, populate_by_name=True)

    id: str
    version: str = "1.0"
    evaluator_type_id: str = Field(default="", alias="evaluatorTypeId")
    evaluator_config: C = Field(alias="evaluatorConfig")
    name: str = Field(default="", exclude=True)
    description: str = Field(default="", exclude=True)
    config_type: type[C] = Field(exclude=True)
    evaluation_criteria_type: type[T] = Field(exclude=True)
    justification_type: type[J] = Field(exclude=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "evaluate" in cls.__dict__ and not getattr(cls.evaluate, "_has_metrics_decorator", False):
            tracked: Any = track_evaluation_metrics(cls.evaluate)
            tracked._has_metrics_decorator = True  # noqa: SLF001 - as the package marks it
            cls.evaluate = tracked  # type: ignore[method-assign]

    @model_validator(mode="before")
    @classmethod
    def _typed(cls, values: Any) -> Any:
        """Fill in the fields for the class's types, and convert the configuration to its type."""
        if not isinstance(values, dict):
            return values
        types = {name: cls._type_of(name) for name in _TYPES}
        _require_same_criteria(cls, types["config_type"], types["evaluation_criteria_type"])
        config = next((values[key] for key in _CONFIG_KEYS if values.get(key)), {})
        if isinstance(config, dict):
            config = config | {key: values[key] for key in ("name", "description") if values.get(key)}
        try:
            config = types["config_type"].model_validate(config)
        except Exception as error:
            raise _error(
                "FAILED_TO_VALIDATE_EVALUATOR_CONFIG",
                f"Failed to validate evaluator config for {cls.__name__}",
                f"Error: {error}",
            ) from error
        rest = {key: value for key, value in values.items() if key not in _CONFIG_KEYS}
        return {**rest, **types, "evaluatorConfig": config}

    def model_post_init(self, context: Any, /) -> None:
        """Give the evaluator the name in its configuration."""
        super().model_post_init(context)
        self.evaluator_type_id = self.evaluator_type_id or type(self).get_evaluator_id()
        self.name = self.name or self.evaluator_config.name
        self.description = self.description or self.evaluator_config.description

    @property
    def config(self) -> dict[str, Any]:
        """The configuration as a dict, under the name that releases before 2.7.1 used."""
        return self.evaluator_config.model_dump()

    @classmethod
    def _type_of(cls, field: str) -> Any:
        """Return the class's type for the type parameter of a field, such as `config_type`."""
        arguments = get_args(cls.model_fields[field].annotation)
        found = arguments[0] if arguments else None
        base, fits = _EXPECTED[field]
        if fits(found):
            return type(None) if found is None else found
        name = field.removesuffix("_type").replace("_", " ")
        shape = f"class {cls.__name__}(BaseEvaluator[<criteria>, <config>, <justification>])"
        if isinstance(found, TypeVar):
            raise _error(f"INVALID_{field.upper()}", f"No {name} type given in {cls.__name__}", f"Write {shape}")
        title = f"Invalid {name} type {found} in {cls.__name__}"
        raise _error(f"INVALID_{field.upper()}", title, f"{found} must be {base}: {shape}")

    @classmethod
    @abstractmethod
    def get_evaluator_id(cls) -> str:
        """Return the evaluator's unique id."""

    @abstractmethod
    async def evaluate(self, workload_execution: WorkloadExecution, evaluation_criteria: T) -> EvaluationResult:
        """Score an execution by the criteria of its test case."""

    async def validate_and_evaluate_criteria(
        self, workload_execution: WorkloadExecution, evaluation_criteria: Any
    ) -> EvaluationResult:
        """Score an execution by criteria in JSON; None stands for the default criteria in the configuration."""
        if evaluation_criteria is None:
            evaluation_criteria = self.evaluator_config.default_evaluation_criteria
        if evaluation_criteria is None:
            missing = "No evaluation criteria provided and no default evaluation criteria configured"
            raise _error("NO_EVALUATION_CRITERIA_PROVIDED", missing, missing)
        return await self.evaluate(workload_execution, self.validate_evaluation_criteria(evaluation_criteria))

    def validate_evaluation_criteria(self, criteria: Any) -> T:
        """Convert criteria to the evaluator's own type."""
        return _taken_as(self.evaluation_criteria_type, criteria, "CANNOT_VALIDATE_EVALUATION_CRITERIA", "validate")

    def validate_justification(self, justification: Any) -> Any:
        """Convert a justification to the evaluator's own type."""
        if self.justification_type is type(None):
            return None
        if self.justification_type is str:
            return "" if justification is None else str(justification)
        return _taken_as(self.justification_type, justification, "CANNOT_CONVERT_JUSTIFICATION", "convert")

    def reduce_scores(self, results: list[EvaluationResultDto]) -> float:
        """Return the mean score of many results."""
        return sum(result.score for result in results) / len(results) if results else 0.0

    @classmethod
    def get_evaluation_criteria_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the criteria."""
        return cls._type_of("evaluation_criteria_type").model_json_schema(by_alias=False)

    @classmethod
    def get_config_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the configuration."""
        return cls._type_of("config_type").model_json_schema(by_alias=False)

    @classmethod
    def get_justification_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the justification."""
        kind = cls._type_of("justification_type")
        if kind is str:
            return {"type": "string"}
        return {} if kind is type(None) else kind.model_json_schema(by_alias=False)

    @classmethod
    def generate_json_type(cls) -> dict[str, Any]:
        """Return the content of `<name>-types.json`: the evaluator's type id and three JSON Schemas."""
        return {
            "evaluatorTypeId": cls.get_evaluator_id(),
            "evaluatorConfigSchema": cls.get_config_schema(),
            "evaluationCriteriaSchema": cls.get_evaluation_criteria_schema(),
            "justificationSchema": cls.get_justification_schema(),
        }

    def _canonical_json(self, obj: Any) -> str:
        return json.dumps(obj, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


GenericBaseEvaluator = BaseEvaluator


def _is_a(base: type) -> Any:
    return lambda found: isinstance(found, type) and issubclass(found, base)


def _is_justification(found: Any) -> bool:
    return found in {None, str, type(None)} or _is_a(BaseEvaluatorJustification)(found)


_EXPECTED: dict[str, tuple[str, Any]] = {
    "evaluation_criteria_type": ("a subclass of BaseEvaluationCriteria", _is_a(BaseEvaluationCriteria)),
    "config_type": ("a subclass of BaseEvaluatorConfig", _is_a(BaseEvaluatorConfig)),
    "justification_type": ("str, None or a subclass of BaseEvaluatorJustification", _is_justification),
}


def _require_same_criteria(evaluator: type, config: type[BaseEvaluatorConfig[Any]], criteria: type) -> None:
    """Raise an error if a configuration's default criteria are not of the evaluator's criteria type."""
    for kind in get_args(config.model_fields["default_evaluation_criteria"].annotation):
        if _is_a(BaseEvaluationCriteria)(kind) and kind is not criteria:
            raise _error(
                "TYPE_INCONSISTENCY_IN_EVALUATOR",
                f"Type inconsistency in {evaluator.__name__}: "
                f"Config {config.__name__} expects criteria type {kind.__name__}",
                f"Evaluator expects {criteria.__name__}. "
                "Give BaseEvaluator and its config the same criteria type: BaseEvaluator[T, Config[T], J].",
            )


def _taken_as(kind: Any, value: Any, code: str, verb: str) -> Any:
    if isinstance(value, kind):
        return value
    try:
        plain = value if isinstance(value, dict) else getattr(value, "__dict__", value)
        return kind.model_validate(plain)
    except Exception as error:
        raise _error(code, f"Cannot {verb} {type(value)} to {kind}", f"Error: {error}") from error


def _error(code: str, title: str, detail: str) -> UiPathEvaluationError:
    return UiPathEvaluationError(code=code, title=title, detail=detail, category=UiPathEvaluationErrorCategory.SYSTEM)
