"""Defines a metric's input (a row and its output) and its result (named values of declared types)."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints, field_serializer, field_validator

MetricTypeName = Annotated[str, StringConstraints(min_length=1)]
_SAMPLE = ("output_text", "response", "trajectory", "evidence")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DatasetRow(_Strict):
    """A row of a data set, including the mapped fields."""

    row_index: int | None = None
    data: dict[str, Any]


class CandidateOutput(_Strict):
    """The output to score: its text, and facts about how the output was made."""

    output_text: str | None = None
    response: Any | None = None
    trajectory: Any | None = None
    evidence: Any | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    def as_sample(self) -> dict[str, Any]:
        """Convert the output to the dict that templates can use as `sample`."""
        known = {name: getattr(self, name) for name in _SAMPLE}
        return {**self.metadata, **{name: value for name, value in known.items() if value is not None}}


class MetricInput(_Strict):
    """One row, and the output to score."""

    row: DatasetRow
    candidate: CandidateOutput


class ContinuousScore(RootModel[float]):
    """Continuous numeric metric value."""


class DiscreteScore(RootModel[int]):
    """Discrete numeric metric value."""


class Label(RootModel[str]):
    """String label metric value."""


class BooleanValue(RootModel[bool]):
    """Boolean metric value."""


class MetricOutput(_Strict):
    """A named value. NaN is written as the string "NaN", since JSON has no NaN."""

    name: str
    value: Any

    @field_serializer("value")
    def _without_nan(self, value: Any) -> Any:
        return "NaN" if isinstance(value, float) and math.isnan(value) else value


class MetricOutputSpec(BaseModel):
    """The declaration of one output of a metric."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    name: str
    description: str | None = None
    value_schema: type[BaseModel]

    @field_validator("name")
    @classmethod
    def _named(cls, name: str) -> str:
        if not name:
            raise ValueError("metric output name must not be empty")
        return name

    @staticmethod
    def continuous_score(name: str, description: str | None = None) -> MetricOutputSpec:
        """Declare a number."""
        return MetricOutputSpec(name=name, description=description, value_schema=ContinuousScore)

    @staticmethod
    def discrete_score(name: str, description: str | None = None) -> MetricOutputSpec:
        """Declare an integer."""
        return MetricOutputSpec(name=name, description=description, value_schema=DiscreteScore)

    @staticmethod
    def label(name: str, description: str | None = None) -> MetricOutputSpec:
        """Declare a string, which is never aggregated."""
        return MetricOutputSpec(name=name, description=description, value_schema=Label)

    @staticmethod
    def boolean(name: str, description: str | None = None) -> MetricOutputSpec:
        """Declare a boolean, which is aggregated as a rate."""
        return MetricOutputSpec(name=name, description=description, value_schema=BooleanValue)

    @staticmethod
    def model(name: str, value_schema: type[BaseModel], description: str | None = None) -> MetricOutputSpec:
        """Declare an object, which is never aggregated."""
        return MetricOutputSpec(name=name, description=description, value_schema=value_schema)

    def coerce_value(self, value: Any) -> BaseModel:
        """Convert a value to the declared type.

        Raises:
          pydantic.ValidationError: the value does not fit the type, even in pydantic's lax mode.
        """
        return self.value_schema.model_validate(value)

    def coerce_output(self, output: MetricOutput) -> BaseModel:
        """Convert an output's value to the declared type.

        Raises:
          ValueError: the output has another name, or its value does not fit the type.
        """
        if output.name != self.name:
            raise ValueError(f"Expected metric output {self.name!r}, got {output.name!r}")
        return self.coerce_value(output.value)

    def value_json_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the values."""
        return self.value_schema.model_json_schema()


class MetricDescriptor(_Strict):
    """A metric's name and its declared outputs."""

    type: MetricTypeName
    outputs: list[MetricOutputSpec] = Field(min_length=1)

    @field_validator("outputs")
    @classmethod
    def _distinct(cls, outputs: list[MetricOutputSpec]) -> list[MetricOutputSpec]:
        if twice := _duplicates([output.name for output in outputs]):
            raise ValueError(f"duplicate metric output names: {twice}")
        return outputs


class MetricDiagnostic(_Strict):
    """A message that explains a score."""

    message: str
    details: dict[str, Any] | None = None


class MetricResult(_Strict):
    """The result of a metric for one row."""

    outputs: list[MetricOutput]
    diagnostics: list[MetricDiagnostic] = Field(default_factory=list)


def validate_metric_result(result: MetricResult, outputs: list[MetricOutputSpec]) -> MetricResult:
    """Check that a result has exactly the declared outputs, each with its declared type; return the result unchanged.

    Raises:
      ValueError: an output is missing, unknown or of another type.
    """
    names = [output.name for output in result.outputs]
    if twice := _duplicates(names):
        raise ValueError(f"Duplicate metric output names: {twice}")
    declared = {spec.name: spec for spec in outputs}
    if missing := [spec.name for spec in outputs if spec.name not in names]:
        raise ValueError(f"Missing declared metric outputs: {missing}")
    if unknown := [name for name in names if name not in declared]:
        raise ValueError(f"Undeclared metric outputs: {unknown}")
    for output in result.outputs:
        declared[output.name].coerce_output(output)
    return result


def _duplicates(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})
