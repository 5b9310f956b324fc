"""NeMo's workspaces: here, namespaces in the workspace of the caller's key, which no other workspace can see."""

from datetime import UTC, datetime
from typing import Any

from evaluator_host.types.errors import InUse, NameTaken
from evaluator_host.vendors.nemo.entities import DEFAULT, Entities, Entity, EntityKind, Order, Place
from evaluator_host.vendors.nemo.names import page, require_name, shown

_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


class Namespaces:
    """The namespaces of every workspace; `default` always exists."""

    def __init__(self, entities: Entities) -> None:
        self._entities = entities

    async def create(self, workspace_id: str, name: str, description: str | None) -> dict[str, Any]:
        """Create a namespace, and return its description.

        Raises:
          InvalidRequest: the name is not valid.
          NameTaken: there is a namespace with that name.
        """
        require_name(name, "workspace")
        if name == DEFAULT:
            raise NameTaken(f"the workspace {DEFAULT} always exists; use it, or choose another name")
        return _shown(await self._entities.add_entity(_place(workspace_id), name, {"description": description}))

    async def get(self, workspace_id: str, name: str) -> dict[str, Any]:
        """Return a namespace.

        Raises:
          NotFound: there is no namespace with that name.
        """
        found = await self._entities.find_entity(_place(workspace_id), name)
        if found is None and name == DEFAULT:
            return _shown(_default())
        return _shown(found or await self._entities.get_entity(_place(workspace_id), name))

    async def all(self, workspace_id: str, *, number: int, size: int) -> dict[str, Any]:
        """Return a page of namespaces: `default`, then the others, sorted by name."""
        first = (number - 1) * size
        listed, begun = [_shown(_default())][first:], max(0, first - 1)
        place, limit = _place(workspace_id), max(1, size - len(listed))
        found, total = await self._entities.page(place, _shown, order=Order.NAME, first=begun, limit=limit)
        return page([*listed, *found][:size], number=number, size=size, total=total + 1)

    async def delete(self, workspace_id: str, name: str) -> None:
        """Delete an empty namespace.

        Raises:
          NotFound: there is no namespace with that name.
          InUse: the namespace is not empty.
        """
        if name == DEFAULT:
            raise InUse(f"the workspace {DEFAULT} cannot be removed")
        await self._entities.delete_namespace(workspace_id, name)


def _place(workspace_id: str) -> Place:
    return Place(workspace_id, EntityKind.WORKSPACE, "")


def _default() -> Entity:
    return Entity("wor-default", "", DEFAULT, {"description": None}, _BEGINNING, _BEGINNING)


def _shown(entity: Entity) -> dict[str, Any]:
    made = shown(entity, description=entity.content.get("description"))
    del made["workspace"]
    return made
