"""Resolves model references `workspace/name` to OpenAI-compatible endpoints, configured by the operator or callers."""

import re
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from evaluator_host.platform.models.gateway.operator_grants import OperatorGrants
from evaluator_host.platform.models.judges import ModelPlace
from evaluator_host.platform.store.database import Database
from evaluator_host.types.errors import InvalidRequest, NotFound
from evaluator_host.types.evaluator import ModelKind
from evaluator_host.vendors.nemo.entities import Entities, Entity, EntityKind, Order, Place, StoredEntities, split_ref
from evaluator_host.vendors.nemo.names import page, require_name, shown

_GATEWAY: Final = re.compile(r"/apis/inference-gateway/v2/workspaces/([^/?#]+)/model/([^/?#]+)/-(?:/v1)?/?$")
_STARTED: Final = datetime(2026, 1, 1, tzinfo=UTC)


class NemoModels:
    """The models and model providers of every workspace.

    Args:
      entities: Models and providers that callers stored.
      operator: The operator's models for each workspace, by `namespace/name`; they take precedence over stored models.
    """

    def __init__(self, entities: Entities, operator: OperatorGrants) -> None:
        self._entities = entities
        self._operator = operator

    async def create(
        self, kind: EntityKind, workspace_id: str, namespace: str, name: str, content: dict[str, Any]
    ) -> dict[str, Any]:
        """Store a model or a provider, and return its description.

        Raises:
          InvalidRequest: the name is not valid, or the content contains an API key.
          NotFound: there is no such namespace.
          NameTaken: there is a model or provider with that name.
        """
        require_name(name, kind)
        _refuse_keys(content)
        return _shown(kind, await self._entities.add_entity(Place(workspace_id, kind, namespace), name, content))

    async def change(
        self, kind: EntityKind, workspace_id: str, namespace: str, name: str, changes: dict[str, Any]
    ) -> dict[str, Any]:
        """Change the given fields of a model or a provider, and return its description.

        Raises:
          InvalidRequest: the changes contain an API key.
          NotFound: there is no model or provider with that name.
        """
        _refuse_keys(changes)
        place = Place(workspace_id, kind, namespace)
        content = (await self._entities.get_entity(place, name)).content
        return _shown(kind, await self._entities.change(place, name, {**content, **changes}))

    async def get(self, kind: EntityKind, workspace_id: str, namespace: str, name: str) -> dict[str, Any]:
        """Return a model or a provider.

        Raises:
          NotFound: there is no model or provider with that name.
        """
        if kind is EntityKind.MODEL and f"{namespace}/{name}" in await self._operator.models(workspace_id):
            return _shown(kind, _of_operator(namespace, name))
        found = await self._entities.find_entity(Place(workspace_id, kind, namespace), name)
        if found is None:
            raise _unknown(kind, namespace, name)
        return _shown(kind, found)

    async def all(
        self, kind: EntityKind, workspace_id: str, namespace: str, *, number: int, size: int, order: Order
    ) -> dict[str, Any]:
        """Return a page of models or providers; the operator's models come first."""
        own = []
        if kind is EntityKind.MODEL:
            refs = [ref.partition("/") for ref in sorted(await self._operator.models(workspace_id))]
            own = [_shown(kind, _of_operator(place, name)) for place, _, name in refs if place == namespace]
        place, first = Place(workspace_id, kind, namespace), (number - 1) * size
        begun = max(0, first - len(own))
        listed = own[first : first + size]
        limit, show = max(1, size - len(listed)), partial(_shown, kind)
        found, total = await self._entities.page(place, show, order=order, first=begun, limit=limit)
        listed += found[: size - len(listed)]
        return page(listed, number=number, size=size, total=total + len(own), sort=order)

    async def delete(self, kind: EntityKind, workspace_id: str, namespace: str, name: str) -> None:
        """Delete a model or a provider.

        Raises:
          NotFound: there is no model or provider with that name.
        """
        await self._entities.delete_entity(Place(workspace_id, kind, namespace), name)

    async def resolve(self, workspace_id: str, namespace: str, name: str) -> ModelPlace:
        """Return a model's endpoint: its URL, its name there, and the name of the secret with the API key.

        Raises:
          NotFound: there is no such model.
          InvalidRequest: neither the model nor its provider has a URL, or the model's API is not OpenAI's.
        """
        configured = (await self._operator.models(workspace_id)).get(f"{namespace}/{name}")
        if configured is not None:
            if configured.kind is not ModelKind.OPENAI:
                raise InvalidRequest(
                    f"{namespace}/{name} has an API of kind {configured.kind}, but these jobs can call only models "
                    "with an API of kind openai"
                )
            return ModelPlace(configured.base_url, configured.model or name, configured.secret)
        kept = await _find(self._entities, workspace_id, namespace, name)
        if kept is None:
            raise _unknown(EntityKind.MODEL, namespace, name)
        return kept

    def reference_of(self, url: str) -> tuple[str, str] | None:
        """Return `(workspace, name)` from a URL of the client's model gateway, or None for any other URL."""
        found = _GATEWAY.search(url)
        return (found[1], found[2]) if found is not None else None


async def find_model(database: Database, workspace_id: str, namespace: str, name: str) -> ModelPlace | None:
    """Return the endpoint of a model that a caller registered, or None if there is no such model.

    Raises:
      InvalidRequest: neither the model nor its provider has a URL, or the provider's name is not valid.
    """
    return await _find(StoredEntities(database), workspace_id, namespace, name)


async def _find(entities: StoredEntities, workspace_id: str, namespace: str, name: str) -> ModelPlace | None:
    entity = await entities.find_entity(Place(workspace_id, EntityKind.MODEL, namespace), name)
    if entity is None:
        return None
    api = entity.content.get("api_endpoint") or {}
    model = str(api.get("model_id") or name)
    if api.get("url"):
        return ModelPlace(str(api["url"]), model)
    for reference in entity.content.get("model_providers") or ():
        home, provider_name = split_ref(str(reference), namespace=namespace, what="model provider")
        provider = await entities.find_entity(Place(workspace_id, EntityKind.PROVIDER, home), provider_name)
        if provider is not None:
            secret = provider.content.get("api_key_secret_name")
            return ModelPlace(str(provider.content["host_url"]), model, secret.rpartition("/")[2] if secret else None)
    raise InvalidRequest(
        f"the host does not know the URL of the model {namespace}/{name}: set the model's model_providers or "
        "api_endpoint.url"
    )


def _refuse_keys(content: dict[str, Any]) -> None:
    if (content.get("api_endpoint") or {}).get("api_key"):
        raise InvalidRequest(
            "a model cannot contain its API key: store the key as a secret (`evaluator-host secrets set NAME`), and "
            "give the secret's name as api_key_secret_name of the model's provider"
        )


def _unknown(kind: EntityKind, namespace: str, name: str) -> NotFound:
    what = f"there is no {kind} {namespace[:80]}/{name[:80]}"
    if kind is not EntityKind.MODEL:
        return NotFound(what)
    return NotFound(
        f"{what}; ask the operator to add the model to EVALUATOR_HOST_MODELS, or create it with "
        "client.inference.providers.create and client.models.create"
    )


def _of_operator(namespace: str, name: str) -> Entity:
    content = {"description": "configured by the operator"}
    return Entity(f"mod-{namespace}-{name}", namespace, name, content, _STARTED, _STARTED)


def _shown(kind: EntityKind, entity: Entity) -> dict[str, Any]:
    own: dict[str, Any] = (
        {"host_url": "", "status": "READY"} if kind is EntityKind.PROVIDER else {"model_providers": []}
    )
    return shown(entity, **{**own, **{key: value for key, value in entity.content.items() if key != "name"}})
