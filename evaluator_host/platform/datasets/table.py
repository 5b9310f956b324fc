"""Stores the names and sizes of data sets; their rows are files, see `datasets.files`."""

import asyncio
import dataclasses
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Index,
    Select,
    UniqueConstraint,
    delete,
    exists,
    false,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Mapped, aliased, mapped_column

from evaluator_host.platform.store.database import Repository, row_values
from evaluator_host.platform.store.tables import ByteCount, Size, Table, WorkspaceTable
from evaluator_host.platform.store.workspaces import require_name
from evaluator_host.types.errors import NameTaken
from evaluator_host.types.stored import BadLine, DatasetFacts

# maximum number of characters to read at once; the column names of each data set may have 200 KB
_PART_BYTES: Final = 2 << 20
_FORGOTTEN_AT_ONCE: Final = 1000  # data sets to delete at once, so that no writer waits long
VERSIONS_KEPT: Final = 10  # versions of a data set to keep, besides those that jobs use
# columns that are not facts about the rows
_OWN: Final = ("id", "workspace_id", "name", "created_at", "title", "version")
_JSON: Final = ("bad_lines", "columns", "notes")  # facts about the rows that are stored as JSON


class DatasetTable(Table):
    """Data sets. Their rows are files. A data set without a name came with a job, or is still used by jobs only.

    `columns`, `bad_lines` (the first bad lines) and `notes` are JSON. `title` is the data set's name, too, but an older
    version keeps its `title` when it loses its `name`.
    """

    __tablename__ = "datasets"
    __table_args__ = (
        UniqueConstraint("workspace_id", "name"),
        Index("ix_datasets_workspace_id_digest", "workspace_id", "digest"),
        Index("ix_datasets_workspace_id_title", "workspace_id", "title", "version"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id))
    name: Mapped[str | None]
    format: Mapped[str]
    rows: Mapped[int]
    bad_rows: Mapped[int]
    bad_lines: Mapped[str]
    columns: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    digest: Mapped[str]
    notes: Mapped[str] = mapped_column(server_default="[]")
    title: Mapped[str | None]
    version: Mapped[int] = mapped_column(server_default="1")
    created_at: Mapped[datetime]

    @classmethod
    def sizes(cls) -> Iterable[Size]:
        """Yield the query that adds up the sizes of the row files."""
        yield Size("datasets", cls.workspace_id, select(func.sum(cls.size_bytes)))


@dataclass(frozen=True, slots=True)
class Dataset:
    """A version of a data set, without its rows."""

    id: str
    workspace_id: str
    name: str | None  # None for rows that came with a job, for older versions, and once the name was released
    facts: DatasetFacts
    created_at: datetime
    # name that all versions share; None for rows that came with a job, and once the name was released
    title: str | None = None
    version: int = 1  # number of the version, from 1

    @property
    def label(self) -> str:
        """Return the data set's name, for an older version with its number (`qa@2`), or the id if there is no name."""
        return self.name or (f"{self.title}@{self.version}" if self.title else self.id)


def new_dataset_id() -> str:
    """Return a random id for a data set; the folder of its rows has this name."""
    return f"ds_{secrets.token_hex(8)}"


def name_taken(name: str) -> NameTaken:
    """Return the error for a name that another data set in the workspace already has."""
    return NameTaken(f"there is a data set named {name}; choose another name, or replace its rows (`?replace=true`)")


class Datasets(Repository):
    """The data sets in the database."""

    async def add_dataset(
        self, dataset_id: str, workspace_id: str, name: str | None, facts: DatasetFacts, *, replace: bool | str = False
    ) -> Dataset:
        """Add a data set and return it. The rows must already be stored.

        Args:
          dataset_id: A new id, from `new_dataset_id`.
          workspace_id: Owner of the data set.
          name: Name of the data set; None for rows that come with a job.
          facts: Facts about the rows, found when they were stored.
          replace: Whether a data set that already has this name becomes an older version of the new data set. If
            `replace` is an id, only the data set with this id may become an older version.

        Raises:
          InvalidRequest: the name is not valid.
          NameTaken: there is a data set with that name, and `replace` is not set.
        """
        made = Dataset(dataset_id, workspace_id, name, facts, datetime.now(UTC), title=name)
        if name is not None:
            require_name(name, "data set")
        mine = DatasetTable.workspace_id == workspace_id
        named = mine & (DatasetTable.name == name)
        if isinstance(replace, str):
            named &= DatasetTable.id == replace
        try:
            async with self._database.transaction() as connection:
                if replace and name is not None:
                    await connection.execute(update(DatasetTable).where(named).values(name=None))
                    newest = select(func.max(DatasetTable.version)).where(mine, DatasetTable.title == name)
                    made = dataclasses.replace(made, version=(await connection.scalar(newest) or 0) + 1)
                await connection.execute(insert(DatasetTable).values(**_values(made)))
        except IntegrityError as error:
            raise name_taken(name or "") from error
        return made

    async def get_dataset(self, workspace_id: str, name: str) -> Dataset:
        """Return a data set by its name, its name and version (`qa@2`), or its id.

        Raises:
          NotFound: the workspace has no such data set.
        """
        named = (DatasetTable.name == name) | (DatasetTable.id == name)
        title, _, version = name.rpartition("@")
        if title and len(version) < 9 and version.isdecimal():
            named = (DatasetTable.title == title) & (DatasetTable.version == int(version))
        row = await self._database.fetch_first(_datasets().where(DatasetTable.workspace_id == workspace_id, named))
        if row is None:
            names = select(DatasetTable.name).where(
                DatasetTable.workspace_id == workspace_id, DatasetTable.name.is_not(None)
            )
            raise await self._not_found(
                "data set", name, names, otherwise="`evaluator-host datasets list` lists the names"
            )
        return _dataset(row)

    async def list_datasets(self, workspace_id: str) -> AsyncGenerator[list[Dataset], None]:
        """Yield the named data sets of a workspace, the newest first, in parts of a few MB."""
        table = DatasetTable
        size = ByteCount(table.columns) + ByteCount(table.bad_lines) + ByteCount(table.notes)
        order: Any = select(table.id, size)
        order = order.where(table.workspace_id == workspace_id, table.name.is_not(None))
        order = order.order_by(table.created_at.desc(), table.id)
        async with aclosing(self._database.fetch_parts(order, _datasets(), table.id, most_bytes=_PART_BYTES)) as parts:
            async for rows in parts:
                yield await asyncio.to_thread(lambda: [_dataset(row) for row in rows])  # noqa: B023

    async def names(self, workspace_id: str) -> list[str]:
        """Return the names of the data sets of a workspace."""
        query = select(DatasetTable.name).where(DatasetTable.workspace_id == workspace_id)
        return list(await self._database.fetch_values(query.where(DatasetTable.name.is_not(None))))

    async def list_versions(self, workspace_id: str, name: str) -> list[Dataset]:
        """Return the versions of a data set that are kept, the newest first."""
        query = _datasets().where(DatasetTable.workspace_id == workspace_id, DatasetTable.title == name)
        return await self._fetch(query.order_by(DatasetTable.version.desc()))

    async def _fetch(self, query: Select[Any]) -> list[Dataset]:
        """Return the data sets that a query finds. A thread decodes them: each may have 200 KB of column names."""
        rows = await self._database.fetch_all(query)
        return await asyncio.to_thread(lambda: [_dataset(row) for row in rows])

    async def has_dataset(self, workspace_id: str, name: str) -> bool:
        """Return whether a data set of a workspace has this name."""
        named = (DatasetTable.workspace_id == workspace_id) & (DatasetTable.name == name)
        return await self._database.fetch_value(select(DatasetTable.id).where(named)) is not None

    async def release(self, workspace_id: str, name: str) -> None:
        """Remove the name of a data set and of its older versions. Rows stay while jobs or label queues use them.

        Raises:
          NotFound: the workspace has no such data set.
        """
        dataset = await self.get_dataset(workspace_id, name)
        gone = DatasetTable.id == dataset.id
        if dataset.name is not None:
            gone = (DatasetTable.workspace_id == workspace_id) & (DatasetTable.title == dataset.title)
        await self._database.change_rows(update(DatasetTable).where(gone).values(name=None, title=None))

    async def forget_unused(self, workspace_id: str | None = None, *, remove: Callable[[str], object]) -> None:
        """Delete data sets that have no name and are used by no other table. Call `remove` with their ids, in a thread.

        Only the data sets of one workspace are deleted, or those of all workspaces if `workspace_id` is None. The
        newest `VERSIONS_KEPT` versions of a name stay. If a new job begins to use one of these data sets while this
        runs, it is deleted later.
        """
        used = or_(false(), *(exists().where(user == DatasetTable.id) for user in DatasetTable.referring()))
        later = aliased(DatasetTable)
        same = (later.workspace_id == DatasetTable.workspace_id) & (later.title == DatasetTable.title)
        newest = select(func.max(later.version)).where(same).scalar_subquery()
        old = DatasetTable.title.is_(None) | (DatasetTable.version <= newest - VERSIONS_KEPT)
        unused = DatasetTable.name.is_(None) & old & ~used
        if workspace_id is not None:
            unused &= DatasetTable.workspace_id == workspace_id
        while True:
            # most callers find nothing, and a transaction for writing would have to wait for its turn
            some = await self._database.fetch_values(select(DatasetTable.id).where(unused).limit(_FORGOTTEN_AT_ONCE))
            if not some:
                return
            deletion = delete(DatasetTable).where(DatasetTable.id.in_(some), unused).returning(DatasetTable.id)
            try:
                async with self._database.transaction() as connection:
                    gone = list(await connection.scalars(deletion))
            except IntegrityError:
                return
            # before the next statement, since nothing would remove these rows if that failed
            await asyncio.to_thread(lambda: [remove(one) for one in gone])  # noqa: B023

    async def ids(self) -> frozenset[str]:
        """Return the ids of all data sets of all workspaces; folders of rows with other ids can be removed."""
        return frozenset(await self._database.fetch_values(select(DatasetTable.id)))


def _datasets() -> Select[Any]:
    return select(DatasetTable.__table__)


def _dataset(row: Any) -> Dataset:
    columns = row._mapping  # noqa: SLF001 - its public name for columns by name
    facts = {field.name: columns[field.name] for field in dataclasses.fields(DatasetFacts)}
    facts |= {name: tuple(orjson.loads(facts[name])) for name in _JSON}
    facts["bad_lines"] = tuple(BadLine(**line) for line in facts["bad_lines"])
    return Dataset(**{name: columns[name] for name in _OWN}, facts=DatasetFacts(**facts))


def _values(dataset: Dataset) -> dict[str, object]:
    facts = row_values(dataset.facts)
    facts |= {name: orjson.dumps(facts[name]).decode() for name in _JSON}
    return {**{name: getattr(dataset, name) for name in _OWN}, **facts}
