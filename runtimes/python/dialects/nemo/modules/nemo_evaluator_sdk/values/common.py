"""Defines small values that several modules share: references to secrets, and kinds of jobs."""

from __future__ import annotations

from enum import Enum

from pydantic import ConfigDict, Field, RootModel


class SupportedJobTypes(str, Enum):
    """The kind of a job: its outputs exist already, or a model makes them."""

    ONLINE = "online"
    OFFLINE = "offline"


class SecretRef(RootModel[str]):
    """The name of a secret, with or without a workspace: `key`, `workspace/key`."""

    model_config = ConfigDict(defer_build=True)

    root: str = Field(pattern=r"^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)?$")
