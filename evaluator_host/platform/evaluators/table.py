"""Stores named evaluators and their versions. A version never changes; an update adds the next version."""

import json
import secrets
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, ForeignKey, Select, UniqueConstraint, delete, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import Mapped, mapped_column

from evaluator_host.platform.store.database import Repository, columns_of, row_values
from evaluator_host.platform.store.tables import ApiKeyTable, ByteCount, Size, Table, WorkspaceTable
from evaluator_host.platform.store.workspaces import require_name
from evaluator_host.types.errors import HostError, InvalidRequest, NameTaken, NotFound, Problem

_DELETED_AT_ONCE: Final = 200  # versions or traces to delete at once; each may have a megabyte
LISTED: Final = "`evaluator-host evaluators list` lists the names"


class EvaluatorTable(Table):
    """Named evaluators. If an evaluator is deleted, its versions are deleted, too.

    `tags` is JSON, and `sampling` is the fraction of live traces to score.
    """

    __tablename__ = "evaluators"
    __table_args__ = (UniqueConstraint("workspace_id", "name"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id))
    name: Mapped[str]
    description: Mapped[str]
    sampling: Mapped[float]
    newest: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    tags: Mapped[str] = mapped_column(server_default="[]")


class EvaluatorVersionTable(Table):
    """Evaluator versions, which never change.

    `content` (as in the API), `problem`, `lock`, `packages`, `origin` and `cases` are JSON.
    """

    __tablename__ = "evaluator_versions"

    evaluator_id: Mapped[str] = mapped_column(ForeignKey(EvaluatorTable.id, ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[str]
    content: Mapped[str]
    contract: Mapped[str | None]
    contract_source: Mapped[str | None]
    problem: Mapped[str | None]
    environment: Mapped[str | None]
    lock: Mapped[str | None]
    packages: Mapped[str]
    created_at: Mapped[datetime]
    created_by: Mapped[str | None]
    origin: Mapped[str | None]
    cases: Mapped[str] = mapped_column(server_default="[]")
    message: Mapped[str] = mapped_column(server_default=text("''"))

    @classmethod
    def sizes(cls) -> Iterable[Size]:
        """Yield the query that adds up the sizes of versions, test cases and package locks."""
        lock = func.coalesce(ByteCount(cls.lock), 0)
        query = select(func.sum(ByteCount(cls.content) + ByteCount(cls.cases) + lock))
        yield Size("evaluators", EvaluatorTable.workspace_id, query.join(EvaluatorTable))


@dataclass(frozen=True, slots=True)
class VersionContent:
    """The content of an evaluator's version. `content`, `problem`, `lock`, `packages`, `origin`, `cases` are JSON."""

    digest: str  # `sha256:…` of the content
    content: str  # the evaluator, without name and version
    contract: str | None  # the contract that the sandbox found; None if the evaluator did not load
    contract_source: str | None  # `declared` or `inferred`
    problem: str | None  # the reason why the evaluator did not load; None if it loads
    environment: str | None  # digest of the installed package set; None if the evaluator pins no packages
    lock: str | None  # lock of the package set, so that the version always runs on the same packages
    # the installed package set: digest, runtime, and every package, requested or not; `null` without pins
    packages: str
    created_by: str | None  # id of the key that created the version; None on a host without keys
    origin: str | None = None  # version before a migration, and the proof; None for other versions
    cases: str = "[]"  # rows, each with the expected result
    message: str = ""  # the author's message: why the version was created


@dataclass(frozen=True, slots=True)
class NameFacts:
    """Fields that all versions of an evaluator share.

    A field that is None keeps its value, or gets its default in a new evaluator.
    """

    description: str | None = None  # description, shown to users; empty for a new evaluator
    sampling: float | None = None  # fraction of live traces to score, 0 to 1; 1 for a new evaluator
    tags: Sequence[str] | None = None  # tags; None keeps the present tags; a new evaluator has no tags

    def columns(self) -> dict[str, Any]:
        """Return the fields that are not None, as columns of the evaluators' table."""
        tags = None if self.tags is None else json.dumps(sorted(set(self.tags)), ensure_ascii=False)
        given = {"description": self.description, "sampling": self.sampling, "tags": tags}
        return {name: value for name, value in given.items() if value is not None}


NO_CHANGE: Final = NameFacts()


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """One version of a named evaluator; all versions share `description`, `sampling` and `tags` (a JSON list)."""

    evaluator_id: str
    name: str
    description: str
    sampling: float
    tags: str
    version: int
    newest: int
    created_at: datetime
    author: str | None  # name of the key that created the version; None on a host without keys
    content: VersionContent


class Evaluators(Repository):
    """The named evaluators in the database.

    Every method for a stored evaluator raises `NotFound` if there is no evaluator with that name.
    """

    async def create_evaluator(
        self, workspace_id: str, name: str, content: VersionContent, about: NameFacts = NO_CHANGE
    ) -> StoredVersion:
        """Store an evaluator under a name as version 1, and return this version.

        Raises:
          InvalidRequest: the name is not valid.
          NameTaken: there is an evaluator with that name.
        """
        require_name(name, "evaluator")
        evaluator_id, now = f"ev_{secrets.token_hex(8)}", datetime.now(UTC)
        values = {"workspace_id": workspace_id, "name": name, "description": "", "sampling": 1.0, **about.columns()}
        times = {"created_at": now, "updated_at": now}
        try:
            async with self._database.transaction() as connection:
                await connection.execute(insert(EvaluatorTable).values(id=evaluator_id, newest=1, **values, **times))
                await _insert(connection, evaluator_id, 1, content, now)
        except IntegrityError as error:
            raise NameTaken(
                f"there is an evaluator named {name}; create its next version (PUT, `evaluators update`), "
                "or choose another name"
            ) from error
        return await self.get_version(workspace_id, name, 1)

    async def add_version(
        self, workspace_id: str, name: str, content: VersionContent, about: NameFacts = NO_CHANGE
    ) -> StoredVersion:
        """Store and return the next version. If the newest version has the same content, return the newest version."""
        this = named(workspace_id, name)
        now = datetime.now(UTC)
        async with self._database.transaction() as connection:
            bump = update(EvaluatorTable).where(this).values(newest=EvaluatorTable.newest + 1, updated_at=now)
            await connection.execute(bump)  # this update also locks the row against other updates
            row = (await connection.execute(_versions(workspace_id, name, newest_but=1))).first()
            number = None
            if row is not None:
                newest = _version(row)
                number = newest.version if _is_same(newest.content, content) else newest.version + 1
                await connection.execute(update(EvaluatorTable).where(this).values(newest=number, **about.columns()))
                if number != newest.version:
                    await _insert(connection, newest.evaluator_id, number, content, now)
        if number is None:
            raise await self._missing(workspace_id, name)
        return await self.get_version(workspace_id, name, number)

    async def describe_evaluator(self, workspace_id: str, name: str, about: NameFacts) -> StoredVersion:
        """Change description, sampling or tags, which all versions share, and return the newest version."""
        this = named(workspace_id, name)
        if changes := about.columns():
            await self._database.change_rows(update(EvaluatorTable).where(this).values(**changes))
        return await self.get_version(workspace_id, name)

    async def get_version(self, workspace_id: str, name: str, version: int | None = None) -> StoredVersion:
        """Return a version of an evaluator, by default the newest.

        Raises:
          NotFound: there is no such evaluator or version.
        """
        found = await self._database.fetch_first(_versions(workspace_id, name, version))
        if found is None:
            raise await self._missing(workspace_id, name, version)
        return _version(found)

    async def versions(self, workspace_id: str, name: str) -> AsyncGenerator[list[StoredVersion], None]:
        """Yield every version of an evaluator, the newest first, in parts of a few MB."""
        version = EvaluatorVersionTable.version
        query = _selected().where(named(workspace_id, name)).order_by(version.desc())
        found = await self._part(query)
        if not found:
            raise await self._missing(workspace_id, name)
        while found:
            yield found
            found = await self._part(query.where(version < found[-1].version))

    async def newest_versions(self, workspace_id: str) -> AsyncGenerator[list[StoredVersion], None]:
        """Yield the newest version of each evaluator, sorted by name, in parts of a few MB."""
        here = (EvaluatorTable.workspace_id == workspace_id) & (EvaluatorVersionTable.version == EvaluatorTable.newest)
        query = _selected().where(here).order_by(EvaluatorTable.name)
        found = await self._part(query)
        while found:
            yield found
            found = await self._part(query.where(EvaluatorTable.name > found[-1].name))

    async def names(self, workspace_id: str) -> list[str]:
        query = select(EvaluatorTable.name).where(EvaluatorTable.workspace_id == workspace_id)
        return list(await self._database.fetch_values(query.order_by(EvaluatorTable.name)))

    async def _part(self, query: Select[Any]) -> list[StoredVersion]:
        return [_version(row) for row in await self._database.fetch_part(query)]

    async def delete_evaluator(self, workspace_id: str, name: str) -> None:
        """Delete an evaluator, all its versions and its traces; jobs keep copies of their evaluators.

        The newest version is deleted last, so that the evaluator can be deleted again if the host stops.
        """
        found = await self._database.fetch_first(
            select(EvaluatorTable.id, EvaluatorTable.newest).where(named(workspace_id, name))
        )
        if found is None:
            raise await self._missing(workspace_id, name)
        for column in EvaluatorTable.referring():
            chosen = column == found.id
            if column.table is EvaluatorVersionTable.__table__:
                chosen &= EvaluatorVersionTable.version < found.newest
            await self._database.delete_rows(column.table, chosen, at_once=_DELETED_AT_ONCE)
        await self._database.change_rows(delete(EvaluatorTable).where(EvaluatorTable.id == found.id))

    async def _missing(self, workspace_id: str, name: str, version: int | None = None) -> HostError:
        if "\n" in name or "(" in name:
            return InvalidRequest(
                "the evaluator is a string, which is read as the name of a stored evaluator, but this string is code",
                problems=(Problem("evaluator", "is code", 'put the code into an object: {"code": "…"}'),),
            )
        names = select(EvaluatorTable.name).where(EvaluatorTable.workspace_id == workspace_id)
        newest = select(EvaluatorTable.newest).where(named(workspace_id, name))
        if version is not None and (last := await self._database.fetch_value(newest)) is not None:
            return NotFound(f"there is no {name[:80]}@{version}; its newest version is {name[:80]}@{last}")
        sought = name if version is None else f"{name}@{version}"
        return await self._not_found("evaluator", sought, names, otherwise=LISTED)


def named(workspace_id: str, name: str) -> ColumnElement[bool]:
    """Return the SQL condition that an evaluator has this name and belongs to this workspace."""
    return (EvaluatorTable.workspace_id == workspace_id) & (EvaluatorTable.name == name)


def _is_same(one: VersionContent, other: VersionContent) -> bool:
    same = one.digest == other.digest and one.lock == other.lock
    return same and one.problem == other.problem and one.cases == other.cases


async def _insert(
    connection: AsyncConnection, evaluator_id: str, version: int, content: VersionContent, now: datetime
) -> None:
    made = {"evaluator_id": evaluator_id, "version": version, "created_at": now, **row_values(content)}
    await connection.execute(insert(EvaluatorVersionTable).values(**made))


def _selected() -> Select[Any]:
    evaluator, version = EvaluatorTable, EvaluatorVersionTable
    columns: Any = (
        *(evaluator.id, evaluator.name, evaluator.description, evaluator.sampling, evaluator.tags),
        *(version.version, evaluator.newest, version.created_at, ApiKeyTable.name),
        *columns_of(version, VersionContent),
    )
    made = select(*columns).join(version, version.evaluator_id == evaluator.id)
    return made.outerjoin(ApiKeyTable, ApiKeyTable.id == version.created_by)


def _versions(workspace_id: str, name: str, version: int | None = None, *, newest_but: int = 0) -> Select[Any]:
    wanted = EvaluatorTable.newest - newest_but if version is None else version
    return _selected().where(named(workspace_id, name), EvaluatorVersionTable.version == wanted)


def _version(row: Any) -> StoredVersion:
    evaluator_id, name, description, sampling, tags, version, newest, created_at, author, *content = row
    of_the_name = (evaluator_id, name, description, sampling, tags)
    return StoredVersion(*of_the_name, version, newest, created_at, author, VersionContent(*content))
