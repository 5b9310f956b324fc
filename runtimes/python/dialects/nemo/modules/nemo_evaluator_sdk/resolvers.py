"""Looks up secrets in environment variables, and models in a registry."""

from __future__ import annotations

import os

from .values.common import SecretRef
from .values.models import Model, ModelRef


class LocalSecretResolver:
    """Finds secrets in environment variables; `my-ws/key` may also be called `my_ws_key` or `MY_WS_KEY`."""

    async def resolve_secret(self, secret_ref: SecretRef) -> str | None:
        """Return the value of the first variable that is set and not empty, or None."""
        return next(filter(None, map(os.environ.get, _spellings(secret_ref.root))), None)


class LocalModelResolver:
    """Finds models that were registered with `register_model`."""

    def __init__(self) -> None:
        self._models: dict[str, Model] = {}

    def register_model(self, model_ref: ModelRef, model: Model, *, replace: bool = False) -> None:
        """Register a model under a reference.

        Raises:
          ValueError: a model is already registered under this reference, and `replace` is false.
        """
        if model_ref.root in self._models and not replace:
            raise ValueError(f"Model reference '{model_ref.root}' is already registered.")
        self._models[model_ref.root] = model

    def get_model(self, model_ref: ModelRef) -> Model:
        """Return the model that is registered under a reference.

        Raises:
          ValueError: nothing is registered under that name.
        """
        self._require(
            model_ref, "Register it with LocalBackend.model_resolver.register_model() before local execution."
        )
        return self._models[model_ref.root]

    def unregister_model(self, model_ref: ModelRef) -> Model:
        """Remove a reference, and return the model that was registered under it.

        Raises:
          ValueError: nothing is registered under that name.
        """
        self._require(model_ref)
        return self._models.pop(model_ref.root)

    async def resolve_model(self, model_ref: ModelRef) -> Model:
        """Return the model that is registered under a reference, as `get_model` does."""
        return self.get_model(model_ref)

    def _require(self, model_ref: ModelRef, *advice: str) -> None:
        if model_ref.root not in self._models:
            raise ValueError(" ".join([f"Model reference '{model_ref.root}' is not registered.", *advice]))


def _spellings(name: str) -> list[str]:
    plain = name.replace("-", "_").replace("/", "_")
    names = [name, name.upper(), plain, plain.upper()]
    return [*names, f"_{plain}", f"_{plain.upper()}"] if plain[:1].isdigit() else names
