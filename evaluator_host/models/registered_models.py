"""Finds the addresses of models that callers registered: a model names its providers, or its own address."""

from dataclasses import dataclass
from typing import Any

from evaluator_host.model.errors import InvalidRequest
from evaluator_host.store.entities import Entities, Kind, Place, split_ref


@dataclass(frozen=True, slots=True)
class ModelPlace:
    """Where a model answers, by which name, and the secret of the caller's workspace that is its key."""

    base_url: str
    model: str
    secret: str | None = None


class RegisteredModels:
    """The models and model providers of every workspace."""

    def __init__(self, entities: Entities) -> None:
        self._entities = entities

    async def find_model(self, workspace_id: str, namespace: str, name: str) -> ModelPlace | None:
        """Return where a model answers, None when there is no such model.

        Raises:
          InvalidRequest: nothing says where it answers, or a provider's name is none.
        """
        entity = await self._entities.find_entity(Place(workspace_id, Kind.MODEL, namespace), name)
        if entity is None:
            return None
        api = entity.content.get("api_endpoint") or {}
        model = str(api.get("model_id") or name)
        if api.get("url"):
            return ModelPlace(str(api["url"]), model)
        for reference in entity.content.get("model_providers") or ():
            provider = await self._provider(workspace_id, namespace, str(reference))
            if provider is not None:
                secret = provider.get("api_key_secret_name")
                return ModelPlace(str(provider["host_url"]), model, secret.rpartition("/")[2] if secret else None)
        raise InvalidRequest(
            f"nothing says where the model {namespace}/{name} answers: give it model_providers or an api_endpoint.url"
        )

    async def _provider(self, workspace_id: str, namespace: str, reference: str) -> dict[str, Any] | None:
        place, name = split_ref(reference, namespace=namespace, what="model provider")
        found = await self._entities.find_entity(Place(workspace_id, Kind.PROVIDER, place), name)
        return None if found is None else found.content
