"""Defines data sets whose rows are given inline."""

from __future__ import annotations

from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field


class DatasetRows(BaseModel):
    """A data set whose rows are given inline."""

    model_config = ConfigDict(defer_build=True, extra="forbid")

    rows: list[dict[str, Any]] = Field(min_length=1)


DatasetInput: TypeAlias = list[dict[str, Any]] | DatasetRows
