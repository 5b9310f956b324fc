"""Defines the configurations of runs."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from .models import ReasoningParams


class InferenceParams(BaseModel):
    """Parameters for generation; unknown parameters are passed on to the model."""

    model_config = ConfigDict(defer_build=True, extra="allow")

    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    top_p: float | None = Field(default=None, ge=0, le=1)
    stop: list[str] | None = None

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        if self.max_tokens and self.max_completion_tokens:
            raise ValueError("give max_tokens or max_completion_tokens, not both")
        return self


class RunConfig(BaseModel):
    """Configuration of a run over existing outputs.

    Attributes:
      parallelism: How many rows are scored at the same time, on one event loop.
      limit_samples: How many rows to score, beginning with the first; None for all.
    """

    model_config = ConfigDict(defer_build=True, extra="forbid")

    parallelism: int = Field(default=8, ge=1)
    limit_samples: int | None = Field(default=None, ge=1)


class RunConfigOnline(RunConfig):
    """Configuration of a run in which an agent makes the outputs."""

    ignore_request_failure: bool = False
    request_timeout: int | None = None
    max_retries: int = Field(default=3, ge=0)


class RunConfigOnlineModel(RunConfigOnline):
    """Configuration of a run in which a model makes the outputs."""

    inference: InferenceParams | None = None
    system_prompt: str | None = None
    reasoning: ReasoningParams | None = None
    structured_output: dict[str, Any] | None = None

    @field_validator("inference", mode="before")
    @classmethod
    def _as_own(cls, value: object) -> object:
        foreign = isinstance(value, BaseModel) and not isinstance(value, InferenceParams)
        return value.model_dump(exclude_none=True) if foreign else value  # type: ignore[union-attr]
