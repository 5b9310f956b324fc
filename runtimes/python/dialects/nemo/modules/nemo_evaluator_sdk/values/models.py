"""Defines models and references to them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, RootModel

from ..enums import ModelFormat
from .common import SecretRef

_NAME = r"[a-z](?:[a-z0-9@.+_]|-[a-z0-9@.+_]){1,62}"


class ReasoningParams(BaseModel):
    """Options for a model that reasons."""

    model_config = ConfigDict(defer_build=True)

    end_token: str | None = None
    include_if_not_finished: bool | None = None
    effort: str | None = None


class ModelRef(RootModel[Annotated[str, Field(pattern=rf"^{_NAME}/{_NAME}$")]]):
    """A reference `workspace/name` to a model on a platform."""

    model_config = ConfigDict(defer_build=True)


class Model(BaseModel):
    """A model and its address."""

    model_config = ConfigDict(defer_build=True, extra="forbid")

    url: str
    name: str
    default_headers: dict[str, str] | None = Field(default=None, exclude=True)
    host_url: str | None = None
    api_key_secret: SecretRef | None = None
    format: ModelFormat = ModelFormat.NVIDIA_NIM
