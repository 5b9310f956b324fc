"""Defines the protocols of objects that resolve references to secrets and models."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from .values.common import SecretRef
from .values.models import Model, ModelRef


@runtime_checkable
class SecretResolver(Protocol):
    """Looks up secrets by reference."""

    async def resolve_secret(self, secret_ref: SecretRef) -> str | None:
        """Return a secret, or None if there is no secret with that name."""
        ...


@runtime_checkable
class ModelResolver(Protocol):
    """Looks up models by reference."""

    async def resolve_model(self, model_ref: ModelRef) -> Model:
        """Return the model to which a reference refers."""
        ...
