"""Defines small shared values: a reference to a secret, kinds of jobs."""

from __future__ import annotations

from enum import Enum

from pydantic import ConfigDict, Field, RootModel


class SupportedJobTypes(str, Enum):
    """Whether outputs are there already, or a model makes them."""

    ONLINE = "online"
    OFFLINE = "offline"


class SecretRef(RootModel[str]):
    """Name of a secret, perhaps with a workspace before it: `key`, `workspace/key`."""

    model_config = ConfigDict(defer_build=True)

    root: str = Field(pattern=r"^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)?$")
