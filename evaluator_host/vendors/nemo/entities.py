"""Stores the objects of NeMo's client (entities): JSON objects by kind and name, in a workspace's namespaces."""

import asyncio
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy import ColumnElement, Insert, Select, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from evaluator_host.platform.store.database import Database, Repository, columns_of, row_values
from evaluator_host.platform.store.tables import EntityTable
from evaluator_host.platform.store.usage import StorageUsage
from evaluator_host.types.errors import InUse, InvalidRequest, NameTaken, NotFound
from evaluator_host.types.json_values import decode_json, encode_json

NAME: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.\-]{1,255}")

DEFAULT: Final = "default"  # namespace that always exists
_SHOWN: Final = 120
_SMALL: Final = 64 << 10  # content with more characters is decoded in a thread
_PAGE_BYTES: Final = 16 << 20

_T = TypeVar("_T")


class EntityKind(StrEnum):
    """The kind of an entity. Namespaces are entities too, but are not in a namespace themselves."""

    WORKSPACE = "workspace"
    FILESET = "fileset"
    FILE = "file"
    MODEL = "model"
    PROVIDER = "model provider"
    METRIC = "metric"
    JOB = "job"


class Order(StrEnum):
    """The field by which a list is sorted; `-` in front of it means descending."""

    CREATED = "created_at"
    CREATED_DOWN = "-created_at"
    UPDATED = "updated_at"
    UPDATED_DOWN = "-updated_at"
    NAME = "name"
    NAME_DOWN = "-name"


@dataclass(frozen=True, slots=True)
class Place:
    """The key under which entities are stored: their kind, namespace and workspace."""

    workspace_id: str
    kind: EntityKind
    namespace: str


@dataclass(frozen=True, slots=True)
class Entity:
    """One stored entity. `content` is its JSON object."""

    id: str
    namespace: str
    name: str
    content: dict[str, Any]
    created_at: datetime
    updated_at: datetime


class StoredEntities(Repository):
    """Finds entities in the database."""

    async def find_entity(self, place: Place, name: str) -> Entity | None:
        row = await self._database.fetch_first(_entities().where(_named(place, name)))
        return None if row is None else await _off_loop(len(row.content), lambda: _entity(row))


class Entities(StoredEntities):
    """The entities in the database.

    Args:
      database: The database.
      usage: Checks that a workspace may store more.
    """

    def __init__(self, database: Database, usage: StorageUsage) -> None:
        super().__init__(database)
        self._usage = usage

    async def add_entity(self, place: Place, name: str, content: dict[str, Any]) -> Entity:
        """Add and return a new entity.

        Raises:
          NotFound: there is no such namespace.
          NameTaken: there is an entity of that kind with that name.
          OverQuota: the workspace has reached its limit of stored bytes.
        """
        made = _new(place, name, content)
        insertion = _insertion(place, made, await self._text(place, content))
        try:
            async with self._database.transaction() as connection:
                await _require_namespace(connection, place)
                await connection.execute(insertion)
        except IntegrityError as error:
            where = f" in {place.namespace}" if place.namespace else ""
            raise NameTaken(f"there is already a {place.kind} named {name[:_SHOWN]}{where}") from error
        return made

    async def put_within(
        self, holder: Entity, place: Place, name: str, content: dict[str, Any]
    ) -> tuple[Entity, Entity | None]:
        """Add or replace an entity inside another entity. Return the new entity, and the replaced one (or None).

        Raises:
          NotFound: the entity that should contain it was deleted, even if there is a new one with the same name.
          OverQuota: the workspace has reached its limit of stored bytes.
        """
        made, text = _new(place, name, content), await self._text(place, content)
        same = _entities().where(EntityTable.id == holder.id).with_for_update()
        async with self._database.transaction() as connection:
            if (await connection.execute(same)).first() is None:
                raise NotFound(f"{holder.name[:_SHOWN]} was deleted meanwhile; create it, and send this again")
            row = (await connection.execute(_entities().where(_named(place, name)))).first()
            before = None if row is None else _entity(row)
            if before is not None:
                made = replace(made, id=before.id, created_at=before.created_at)
                await connection.execute(delete(EntityTable).where(EntityTable.id == before.id))
            await connection.execute(_insertion(place, made, text))
        return made, before

    async def require_namespace(self, place: Place) -> None:
        """Check that the namespace of a place exists.

        Raises:
          NotFound: there is no such namespace.
        """
        async with self._database.reading() as connection:
            await _require_namespace(connection, place)

    async def change(self, place: Place, name: str, content: dict[str, Any]) -> Entity:
        """Replace the content of an entity, and return it.

        Raises:
          NotFound: there is no entity of that kind with that name.
          OverQuota: the workspace has reached its limit of stored bytes.
        """
        values = {"content": await self._text(place, content), "updated_at": datetime.now(UTC)}
        if not await self._database.change_rows(update(EntityTable).where(_named(place, name)).values(**values)):
            raise _missing(place, name)
        return await self.get_entity(place, name)

    async def get_entity(self, place: Place, name: str) -> Entity:
        """Return the entity with this name.

        Raises:
          NotFound: there is no entity of that kind with that name.
        """
        found = await self.find_entity(place, name)
        if found is None:
            raise _missing(place, name)
        return found

    async def page(
        self, place: Place, read: Callable[[Entity], _T], *, order: Order, first: int, limit: int
    ) -> tuple[list[_T], int]:
        """Return at most `limit` entities from index `first` on, converted by `read`, and the total number of entities.

        Only one entity at a time is in memory.

        Raises:
          InvalidRequest: the converted entities take more than 16 MB as JSON.
        """
        column = getattr(EntityTable, order.removeprefix("-"))
        by = column.desc() if order.startswith("-") else column.asc()
        query = _entities().where(_at(place)).order_by(by, EntityTable.id).offset(first).limit(limit)
        counting = select(func.count()).select_from(EntityTable).where(_at(place))

        def measured(row: Any) -> tuple[_T, int]:
            one = read(_entity(row))
            return one, len(row.content) if len(row.content) <= _SMALL else len(encode_json(one))

        found, held = list[_T](), 0
        async with self._database.reading() as connection:
            total = int(await connection.scalar(counting) or 0)
            async with connection.stream(query.execution_options(yield_per=1)) as rows:
                async for row in rows:
                    one, size = await _off_loop(len(row.content), partial(measured, row))
                    found.append(one)
                    held += size
                    if held > _PAGE_BYTES and len(found) > 1:
                        break  # an error raised here would leave PostgreSQL's cursor open
        if held > _PAGE_BYTES and len(found) > 1:
            raise InvalidRequest(
                f"a page of {limit} objects has over {_PAGE_BYTES >> 20} MB here; ask for a smaller page_size, or for "
                "each object by its name"
            )
        return found, total

    async def below(self, place: Place, prefix: str) -> list[Entity]:
        """Return the entities whose names start with a prefix, sorted by name."""
        query = _entities().where(_below(place, prefix)).order_by(EntityTable.name)
        rows = await self._database.fetch_all(query)
        return await asyncio.to_thread(lambda: [_entity(row) for row in rows])

    async def delete_namespace(self, workspace_id: str, name: str) -> None:
        """Delete a namespace that contains no entity.

        Raises:
          NotFound: there is no namespace with that name.
          InUse: the namespace contains entities; the message names their kinds.
        """
        table = EntityTable
        kinds = select(table.kind).distinct().where(table.workspace_id == workspace_id, table.namespace == name)
        async with self._database.transaction() as connection:
            found = await _locked(connection, _namespaces(workspace_id), name)
            if held := sorted(await connection.scalars(kinds)):
                raise InUse(f"the workspace {name[:80]} is not empty; first remove each {', '.join(held)} in it")
            await connection.execute(delete(table).where(table.id == found.id))

    async def delete_with(self, place: Place, name: str, *, within: EntityKind) -> tuple[Entity, list[Entity]]:
        """Delete an entity and the entities of kind `within` inside it. Return the entity and the deleted entities.

        Raises:
          NotFound: there is no entity of that kind with that name.
        """
        held = _below(replace(place, kind=within), f"{name}/")
        async with self._database.transaction() as connection:
            found = await _locked(connection, place, name)
            rows = (await connection.execute(_entities().where(held))).all()
            await connection.execute(delete(EntityTable).where(held | (EntityTable.id == found.id)))
        return found, await asyncio.to_thread(lambda: [_entity(row) for row in rows])

    async def delete_entity(self, place: Place, name: str) -> Entity:
        """Delete an entity, and return it.

        Raises:
          NotFound: there is no entity of that kind with that name.
        """
        found = await self.get_entity(place, name)
        await self._database.change_rows(delete(EntityTable).where(EntityTable.id == found.id))
        return found

    async def _text(self, place: Place, content: dict[str, Any]) -> str:
        """Check that the workspace may store this content, and return the content as JSON.

        Raises:
          OverQuota: the workspace has reached its limit of stored bytes.
        """
        text = (await asyncio.to_thread(encode_json, content)).decode()
        await self._usage.require_room(place.workspace_id, len(text))
        return text


async def _off_loop(size: int, work: Callable[[], _T]) -> _T:
    """Return the result of `work`. If the content's `size` is large, run `work` in a thread."""
    return work() if size <= _SMALL else await asyncio.to_thread(work)


async def stored_files(database: Database) -> set[str]:
    """Return the ids of the stored files that filesets of any workspace contain."""
    query = select(EntityTable.content).where(EntityTable.kind == EntityKind.FILE)
    return {str(decode_json(text.encode()).get("blob")) for text in await database.fetch_values(query)}


def _new(place: Place, name: str, content: dict[str, Any]) -> Entity:
    now = datetime.now(UTC)
    return Entity(f"{place.kind[:3]}-{secrets.token_hex(8)}", place.namespace, name, content, now, now)


def _insertion(place: Place, made: Entity, content: str) -> Insert:
    values = {**row_values(made), "content": content}
    return insert(EntityTable).values(**values, workspace_id=place.workspace_id, kind=place.kind)


async def _require_namespace(connection: AsyncConnection, place: Place) -> None:
    """Check that the namespace of a place exists, and lock it until the transaction ends."""
    name = place.namespace
    if name not in ("", DEFAULT):
        query = select(EntityTable.id).where(_named(_namespaces(place.workspace_id), name)).with_for_update(read=True)
        if await connection.scalar(query) is None:
            raise NotFound(f"there is no workspace {name[:80]}; create it with client.workspaces.create(name=…)")


async def _locked(connection: AsyncConnection, place: Place, name: str) -> Entity:
    """Return an entity, and lock it: until this transaction ends, no other transaction can delete it or add to it."""
    row = (await connection.execute(_entities().where(_named(place, name)).with_for_update())).first()
    if row is None:
        raise _missing(place, name)
    return _entity(row)


def _namespaces(workspace_id: str) -> Place:
    return Place(workspace_id, EntityKind.WORKSPACE, "")


def _entities() -> Select[Any]:
    return select(*columns_of(EntityTable, Entity))


def _at(place: Place) -> ColumnElement[bool]:
    table = EntityTable
    here = (table.workspace_id == place.workspace_id) & (table.kind == place.kind)
    return here & (table.namespace == place.namespace)


def _below(place: Place, prefix: str) -> ColumnElement[bool]:
    return _at(place) & EntityTable.name.startswith(prefix, autoescape=True)


def _named(place: Place, name: str) -> ColumnElement[bool]:
    return _at(place) & (EntityTable.name == name)


def _entity(row: Any) -> Entity:
    return Entity(**{**row._mapping, "content": decode_json(row.content.encode())})  # noqa: SLF001 - a public name


def _missing(place: Place, name: str) -> NotFound:
    where = f" in {place.namespace}" if place.namespace else ""
    return NotFound(f"there is no {place.kind} {name[:_SHOWN]}{where}")


def split_ref(reference: str, *, namespace: str, what: str) -> tuple[str, str]:
    """Split `workspace/name`, or `name` alone, into namespace and name.

    Raises:
      InvalidRequest: the reference is not valid; the message calls it `what`, such as `model`.
    """
    before, slash, after = reference.rpartition("/")
    if not slash:
        before = namespace
    if NAME.fullmatch(before) is None or NAME.fullmatch(after) is None:
        raise InvalidRequest(f"{reference[:120]!r} is not a valid name of a {what}; write workspace/name")
    return before, after
