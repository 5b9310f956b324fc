"""Stores small JSON objects, each with a workspace, a kind and a name.

No change is lost if several hosts share a database.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from evaluator_host.platform.store.database import Database, Repository, columns_of, row_values
from evaluator_host.platform.store.tables import EntityTable
from evaluator_host.platform.store.workspaces import require_name
from evaluator_host.types.errors import InUse, NameTaken

_READ_AT_ONCE: Final = 100  # maximum number of objects that one query reads by id
_TRIES: Final = 5  # how many times to try to change an object that other hosts change at the same time


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A stored object, such as an alert; `content` is JSON."""

    id: str
    workspace_id: str
    name: str
    content: str
    created_at: datetime


class Objects(Repository):
    """The objects in the database.

    Every method for a stored object raises `NotFound` if there is no object with that name.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        # for each kind: `Database.mark` when the objects were read, and each object with the time of its last change
        self._every: dict[str, tuple[tuple[Any, ...] | None, list[tuple[datetime, StoredObject]]]] = {}

    async def add_object(self, kind: str, workspace_id: str, name: str, content: str, *, most: int) -> StoredObject:
        """Store an object, and return it.

        Raises:
          InvalidRequest: the name is not valid.
          NameTaken: there is an object of that kind with that name.
          InUse: the workspace already has `most` objects of that kind.
        """
        require_name(name, _noun(kind))
        counting = select(func.count()).select_from(EntityTable).where(_of(kind), _in(workspace_id))
        if int(await self._database.fetch_value(counting)) >= most:
            raise InUse(f"a workspace may have at most {most} {_noun(kind)}s; remove one first")
        now = datetime.now(UTC)
        made = StoredObject(f"{kind[:3]}-{secrets.token_hex(8)}", workspace_id, name, content, now)
        values: dict[str, Any] = {**row_values(made), "kind": kind, "namespace": "", "updated_at": now}
        try:
            await self._database.change_rows(insert(EntityTable).values(**values))
        except IntegrityError as error:
            raise NameTaken(
                f"there is already a {_noun(kind)} named {name}; remove it first, or choose another name"
            ) from error
        return made

    async def list_objects(self, kind: str, workspace_id: str | None = None) -> list[StoredObject]:
        """Return the objects of a kind, sorted by name, in one workspace or in all."""
        query = _objects().where(_of(kind)).order_by(EntityTable.name, EntityTable.id)
        if workspace_id is not None:
            query = query.where(_in(workspace_id))
        return [StoredObject(*row) for row in await self._database.fetch_all(query)]

    async def list_every(self, kind: str) -> list[StoredObject]:
        """Return the objects of a kind in all workspaces, sorted by name.

        An object that has not changed is not read again: the same Python object is returned, so that a caller can also
        keep what it has derived from the object.
        """
        mark = self._database.mark()
        before, held = self._every.get(kind, (None, []))
        if mark is None or mark != before:
            known = {(one.id, changed): one for changed, one in held}
            query = select(EntityTable.id, EntityTable.updated_at).where(_of(kind)).order_by(EntityTable.name)
            every = [(row[0], row[1]) for row in await self._database.fetch_all(query.order_by(EntityTable.id))]
            known |= await self._read_objects([one for one, changed in every if (one, changed) not in known])
            held = [(key[1], known[key]) for key in every if key in known]
            self._every[kind] = mark, held
        return [one for _, one in held]

    async def _read_objects(self, ids: Sequence[str]) -> dict[tuple[str, datetime], StoredObject]:
        """Return the objects with these ids, keyed by id and time of the last change."""
        found = dict[tuple[str, datetime], StoredObject]()
        for first in range(0, len(ids), _READ_AT_ONCE):
            some = EntityTable.id.in_(ids[first : first + _READ_AT_ONCE])
            for *row, changed in await self._database.fetch_all(
                _objects().add_columns(EntityTable.updated_at).where(some)
            ):
                found[row[0], changed] = StoredObject(*row)
        return found

    async def get_object(self, kind: str, workspace_id: str, name: str) -> StoredObject:
        query = _objects().where(_of(kind), _in(workspace_id), EntityTable.name == name)
        found = await self._database.fetch_first(query)
        if found is None:
            names = select(EntityTable.name).where(_of(kind), _in(workspace_id))
            listed = f"`evaluator-host {_noun(kind)}s list` lists the names"
            raise await self._not_found(_noun(kind), name, names, otherwise=listed)
        return StoredObject(*found)

    async def swap_object(self, before: StoredObject, content: str) -> bool:
        """Replace an object's content if it has not changed since `before`. Return whether it was replaced."""
        same = (EntityTable.id == before.id) & (EntityTable.content == before.content)
        values = {"content": content, "updated_at": datetime.now(UTC)}
        return await self._database.change_rows(update(EntityTable).where(same).values(**values)) == 1

    async def change_object(
        self, kind: str, workspace_id: str, name: str, change: Callable[[str], str]
    ) -> StoredObject:
        """Replace an object's content with `change(content)`, and return the object.

        If another host changes the object at the same time, `change` is called again.

        Raises:
          InUse: others changed the object at each of several attempts.
        """
        for _ in range(_TRIES):
            before = await self.get_object(kind, workspace_id, name)
            if await self.swap_object(before, change(before.content)):
                return await self.get_object(kind, workspace_id, name)
        raise InUse(f"somebody else is changing the {_noun(kind)} right now; try again")

    async def now(self) -> datetime:
        """Return the time of the database's clock."""
        return await self._database.now()

    async def delete_object(self, kind: str, workspace_id: str, name: str) -> None:
        found = await self.get_object(kind, workspace_id, name)
        await self._database.change_rows(delete(EntityTable).where(EntityTable.id == found.id))


def _noun(kind: str) -> str:
    return kind.rpartition(" ")[2]  # the last word of the kind, such as "model" in "registered model"


def _objects() -> Select[Any]:
    return select(*columns_of(EntityTable, StoredObject))


def _of(kind: str) -> ColumnElement[bool]:
    return (EntityTable.kind == kind) & (EntityTable.namespace == "")


def _in(workspace_id: str) -> ColumnElement[bool]:
    return EntityTable.workspace_id == workspace_id
