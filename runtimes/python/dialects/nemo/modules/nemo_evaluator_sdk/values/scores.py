"""Defines the scores of a judge, each a range or a rubric, and how to find a score in the judge's answer."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator


class JSONScoreParser(BaseModel):
    """Reads a score from a key of a JSON object."""

    model_config = ConfigDict(defer_build=True)

    type: Literal["json"] = "json"
    json_path: str


class RegexScoreParser(BaseModel):
    """Reads a score from the first group of a regular expression, which matches anywhere or only at the beginning."""

    model_config = ConfigDict(defer_build=True)

    type: Literal["regex"] = "regex"
    pattern: str
    method: Literal["search", "match"] = "match"

    @model_validator(mode="after")
    def _compiles(self) -> Self:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ValueError(f"invalid regex for score parser: {error}") from error
        return self


class _Score(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    description: str | None = None
    parser: JSONScoreParser | RegexScoreParser = Field(
        default_factory=lambda given: JSONScoreParser(json_path=given["name"])
    )


class Rubric(BaseModel):
    """One level of a rubric, and the level's value."""

    model_config = ConfigDict(defer_build=True, extra="forbid")

    label: str
    description: str | None = None
    value: float | int


class RubricScore(_Score):
    """A score with levels; the judge answers with the label of one level."""

    rubric: list[Rubric] = Field(min_length=2)


class RangeScore(_Score):
    """A score between two bounds. The prompt tells the judge the bounds, but a score outside them is accepted."""

    minimum: float | int
    maximum: float | int

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.minimum >= self.maximum:
            raise ValueError(f"minimum must be less than maximum: {self.minimum} < {self.maximum}")
        return self


def _kind(given: Any) -> str:
    is_rubric = isinstance(given, RubricScore) or (isinstance(given, dict) and "rubric" in given)
    return "rubric" if is_rubric else "range"


Score = Annotated[Annotated[RubricScore, Tag("rubric")] | Annotated[RangeScore, Tag("range")], Discriminator(_kind)]
