"""Checks names that NeMo's client chooses, and formats stored objects and pages for this client."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from evaluator_host.types.errors import InvalidRequest
from evaluator_host.vendors.nemo.entities import NAME, Entities, Entity, Order, Place

_PATH_CHARS: Final = 1024


def require_name(name: str, what: str) -> str:
    """Check and return a name that a caller chose.

    Raises:
      InvalidRequest: the name is not valid.
    """
    if NAME.fullmatch(name) is None:
        message = (
            f"{name[:80]!r} is not a valid name for a {what}; use up to 255 letters, digits, dots, dashes and "
            "underscores"
        )
        raise InvalidRequest.of("name", message)
    return name


def require_path(path: str) -> str:
    """Check and return the path of a file inside its fileset.

    Raises:
      InvalidRequest: the path is not valid, or points outside the fileset.
    """
    parts = path.split("/")
    odd = any(part in ("", ".", "..") for part in parts) or not path.isprintable() or "#" in path or "\\" in path
    if odd or len(path) > _PATH_CHARS:
        message = f"{path[:80]!r} is not a valid path of a file; separate names with /, and leave out . and .."
        raise InvalidRequest(message)
    return path


def shown(entity: Entity, **fields: Any) -> dict[str, Any]:
    """Convert a stored object for NeMo's client: id, name, workspace, times, and the given fields."""
    return {
        "id": entity.id,
        "name": entity.name,
        "workspace": entity.namespace,
        "created_at": stamp(entity.created_at),
        "updated_at": stamp(entity.updated_at),
        **fields,
    }


def stamp(moment: datetime) -> str:
    """Format a time as in NeMo's API."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def page(data: list[dict[str, Any]], *, number: int, size: int, total: int, sort: str | None = None) -> dict[str, Any]:
    """Format one page of a list as in NeMo's API."""
    pagination = {
        "page": number,
        "page_size": size,
        "current_page_size": len(data),
        "total_pages": -(-total // size),
        "total_results": total,
    }
    return {"data": data, "pagination": pagination, "sort": sort, "filter": None}


def page_of(everything: list[dict[str, Any]], *, number: int, size: int, sort: str | None = None) -> dict[str, Any]:
    """Return page `number` (from 1) of a list that is in memory."""
    part = everything[(number - 1) * size :][:size]
    return page(part, number=number, size=size, total=len(everything), sort=sort)


async def page_kept(
    entities: Entities, place: Place, show: Callable[[Entity], dict[str, Any]], *, number: int, size: int, order: Order
) -> dict[str, Any]:
    """Return page `number` (from 1) of the objects stored at `place`, each converted by `show`."""
    found, total = await entities.page(place, show, order=order, first=(number - 1) * size, limit=size)
    return page(found, number=number, size=size, total=total, sort=order)
