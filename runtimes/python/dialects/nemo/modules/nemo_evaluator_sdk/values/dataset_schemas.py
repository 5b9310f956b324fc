"""Maps columns of a data set to fields of an evaluation."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

_FIELDS = ("input", "output", "context", "reference", "trajectory", "messages", "tool_calls", "tools")
_Path = Annotated[str, Field(pattern=r"^[^\[\]]*$", min_length=1)]
_ABSENT = object()


class FieldMapping(BaseModel):
    """The column for each canonical field; a dot in a column's name means a field of a nested object."""

    model_config = ConfigDict(defer_build=True, extra="forbid")

    input: _Path | None = None
    output: _Path | None = None
    context: _Path | None = None
    reference: _Path | None = None
    trajectory: _Path | None = None
    messages: _Path | None = None
    tool_calls: _Path | None = None
    tools: _Path | None = None
    custom: dict[str, _Path] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _own_names(self) -> Self:
        if taken := sorted(set(self.custom) & set(_FIELDS)):
            raise ValueError(f"custom binding keys overlap with reserved evaluator fields: {taken}")
        return self

    def mapping(self) -> dict[str, str]:
        """Return the column of each field that is mapped to a column."""
        known = {name: getattr(self, name) for name in _FIELDS}
        return {name: path for name, path in known.items() if path is not None} | self.custom

    def applied_to(self, row: dict[str, Any]) -> dict[str, Any]:
        """Copy a row and add the canonical fields; a field is left out if its path finds nothing."""
        found = ((name, _at(row, path)) for name, path in self.mapping().items())
        return {**row, **{name: value for name, value in found if value is not _ABSENT}}


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return _ABSENT
        value = value[part]
    return value
