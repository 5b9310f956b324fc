"""Defines the scores of a judge: a range or a rubric, and how to find them in its answer."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator


class JSONScoreParser(BaseModel):
    """Takes a score from a key of a JSON object."""

    model_config = ConfigDict(defer_build=True)

    type: Literal["json"] = "json"
    json_path: str


class RegexScoreParser(BaseModel):
    """Takes a score from the first group of a pattern, searched anywhere or matched from the beginning."""

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
    """One level of a rubric, and its value."""

    model_config = ConfigDict(defer_build=True, extra="forbid")

    label: str
    description: str | None = None
    value: float | int


class RubricScore(_Score):
    """A score by levels; the judge names one of their labels."""

    rubric: list[Rubric] = Field(min_length=2)


class RangeScore(_Score):
    """A score between two bounds. The judge is told the bounds, but nothing enforces them."""

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
