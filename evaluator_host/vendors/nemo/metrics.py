"""NeMo metrics that are stored under a name, to which jobs refer; a stored metric never changes."""

from typing import Any

from evaluator_host.types.errors import NotFound
from evaluator_host.vendors.nemo.bundles import checked
from evaluator_host.vendors.nemo.entities import Entities, Entity, EntityKind, Order, Place, split_ref
from evaluator_host.vendors.nemo.names import page_kept, require_name, shown


class NemoMetrics:
    """The stored NeMo metrics of every workspace."""

    def __init__(self, entities: Entities) -> None:
        self._entities = entities

    async def create(
        self, workspace_id: str, namespace: str, name: str, bundle: dict[str, Any], project: str | None
    ) -> dict[str, Any]:
        """Store a metric under a name, and return its description.

        Raises:
          InvalidRequest: the name or the bundle is not valid.
          NotFound: there is no such namespace.
          NameTaken: there is a metric with that name.
        """
        require_name(name, "metric")
        content = {"bundle": checked(bundle, field="metric"), "project": project}
        return _shown(await self._entities.add_entity(_place(workspace_id, namespace), name, content))

    async def get(self, workspace_id: str, namespace: str, name: str) -> dict[str, Any]:
        """Return the description of a metric, without its content.

        Raises:
          NotFound: there is no metric with that name.
        """
        return _shown(await self._entities.get_entity(_place(workspace_id, namespace), name))

    async def all(self, workspace_id: str, namespace: str, *, number: int, size: int, order: Order) -> dict[str, Any]:
        """Return a page of stored metrics."""
        place = _place(workspace_id, namespace)
        return await page_kept(self._entities, place, _shown, number=number, size=size, order=order)

    async def delete(self, workspace_id: str, namespace: str, name: str) -> Entity:
        """Delete a metric, and return it; jobs keep their own copy.

        Raises:
          NotFound: there is no metric with that name.
        """
        return await self._entities.delete_entity(_place(workspace_id, namespace), name)

    async def bundle(self, workspace_id: str, namespace: str, reference: str) -> dict[str, Any]:
        """Return the bundle of the metric `workspace/name`, or of `name` in a namespace.

        Raises:
          InvalidRequest: the reference is not valid.
          NotFound: there is no such metric.
        """
        place, name = split_ref(reference, namespace=namespace, what="metric")
        found = await self._entities.find_entity(_place(workspace_id, place), name)
        if found is None:
            raise NotFound(f"there is no metric {place}/{name}; create it with client.evaluator.metrics.create")
        bundle: dict[str, Any] = found.content["bundle"]
        return bundle


def _place(workspace_id: str, namespace: str) -> Place:
    return Place(workspace_id, EntityKind.METRIC, namespace)


def _shown(entity: Entity) -> dict[str, Any]:
    bundle = entity.content["bundle"]
    metadata = bundle.get("metadata") or {}
    return shown(
        entity,
        project=entity.content.get("project"),
        metric_type=bundle["metric_type"],
        description=metadata.get("description"),
        labels=metadata.get("labels") or {},
        outputs=bundle["outputs"],
        secrets=bundle.get("secrets") or {},
        payload_kind=bundle["payload"]["kind"],
        payload_digest=bundle["payload"]["digest"],
        bundle_ref=f"{entity.namespace}/{entity.name}",
        derived=False,
    )
