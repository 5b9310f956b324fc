"""The database tables."""

import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, NamedTuple

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Text,
    TypeDecorator,
    UniqueConstraint,
    cast,
    event,
    func,
    insert,
    select,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import DeclarativeBase, InstrumentedAttribute, Mapped, mapped_column
from sqlalchemy.sql.functions import FunctionElement

_DEFAULT: Final = "default"
# the type on SQLite is text, because a cast to the type JSON would turn the value into a number there
_JSON: Final = JSON().with_variant(Text(), "sqlite")


class UtcTime(TypeDecorator[datetime]):
    """A column type for times, stored in UTC.

    A time without a zone raises ValueError. Returned times have a zone.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time to store; SQLite has no time zones."""
        if value is None:
            return None
        moment = value.astimezone(UTC) if value.tzinfo is not None else _refuse()
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _refuse() -> datetime:
    raise ValueError("the time has no time zone")


class ByteCount(FunctionElement[int]):
    """An SQL expression for the size of a text in bytes. The function `length` of databases counts characters."""

    inherit_cache = True
    type = BigInteger()


@compiles(ByteCount)
def _of_sqlite(element: Any, compiler: Any, **more: Any) -> str:
    return f"length(CAST({compiler.process(element.clauses, **more)} AS BLOB))"


@compiles(ByteCount, "postgresql")
def _of_postgresql(element: Any, compiler: Any, **more: Any) -> str:
    return f"octet_length({compiler.process(element.clauses, **more)})"


class Size(NamedTuple):
    """A query that returns how many bytes of one kind each workspace stores; `owner` is the column of workspace ids."""

    kind: str
    owner: InstrumentedAttribute[str]
    query: Select[Any]


class Table(DeclarativeBase):
    """Base of every table. Constraints get names, so that a migration can refer to them on every database."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {datetime: UtcTime, str: Text}

    @classmethod
    def referring(cls) -> list[Column[Any]]:
        """Return the columns of all tables that refer to this table. The tables must have been imported."""
        own: Any = cls.__table__
        every = cls.metadata.tables.values()
        return [key.parent for table in every for key in table.foreign_keys if key.references(own)]

    @classmethod
    def sizes(cls) -> Iterable[Size]:
        """Yield the queries for the storage that workspaces use in this table.

        Tables that stay small have no such queries.
        """
        return ()


class IdentityTable(Table):
    """A table with one row: a random name for this database, created with the table."""

    __tablename__ = "database_identity"

    id: Mapped[str] = mapped_column(primary_key=True)


class WorkspaceTable(Table):
    """Workspaces. Every object that a caller stores belongs to a workspace."""

    __tablename__ = "workspaces"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[datetime]


@event.listens_for(IdentityTable.__table__, "after_create")
def _name_database(_: Any, connection: Connection, **__: Any) -> None:
    connection.execute(insert(IdentityTable).values(id=f"db-{secrets.token_hex(12)}"))


@event.listens_for(WorkspaceTable.__table__, "after_create")
def _make_default(_: Any, connection: Connection, **__: Any) -> None:
    """Create the workspace `default`, which owns all objects on a host without keys."""
    connection.execute(insert(WorkspaceTable).values(id=_DEFAULT, name=_DEFAULT, created_at=datetime.now(UTC)))


class ApiKeyTable(Table):
    """API keys. Revoked keys stay, since audit entries refer to them. `id` is the public part of the key itself."""

    __tablename__ = "api_keys"
    __table_args__ = (
        Index(  # unique among keys that are not revoked: a revoked key's name may be used again
            "uq_api_keys_active_name",
            "workspace_id",
            "name",
            unique=True,
            sqlite_where=text("revoked_at IS NULL"),
            postgresql_where=text("revoked_at IS NULL"),
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id))
    name: Mapped[str]
    token_hash: Mapped[str]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class SecretTable(Table):
    """Secrets with their names, encrypted with the host's key."""

    __tablename__ = "secrets"

    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    @classmethod
    def sizes(cls) -> Iterable[Size]:
        """Yield the query that adds up the sizes of the encrypted secrets."""
        yield Size("files", cls.workspace_id, select(func.sum(func.length(cls.sealed))))


class AuditTable(Table):
    """The audit log, which does not contain row data."""

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_workspace_id_at", "workspace_id", "at"), Index("ix_audit_at", "at"))

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    at: Mapped[datetime]
    workspace_id: Mapped[str]
    key_id: Mapped[str | None]
    verb: Mapped[str]
    subject: Mapped[str | None]
    evaluator: Mapped[str | None]
    rows: Mapped[int]
    failed: Mapped[int]
    outcome: Mapped[str]
    duration_ms: Mapped[float]
    grants: Mapped[str | None]


class PackageSetUseTable(Table):
    """The package sets that each workspace requested. `name` is the key or the digest of the set."""

    __tablename__ = "package_set_uses"

    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    asked_at: Mapped[datetime]


class EntityTable(Table):
    """JSON objects (`content`), each with a kind and a name. Each belongs to a namespace of a workspace."""

    __tablename__ = "entities"
    __table_args__ = (
        UniqueConstraint("workspace_id", "kind", "namespace", "name"),
        Index("ix_entities_kind_namespace", "kind", "namespace"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id))
    kind: Mapped[str]
    namespace: Mapped[str]
    name: Mapped[str]
    content: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    @classmethod
    def sizes(cls) -> Iterable[Size]:
        """Yield the queries for the size of the objects, and of the files that some of them describe."""
        on_disk = cast(cast(cls.content, _JSON)["size"].as_string(), BigInteger)
        yield Size("files", cls.workspace_id, select(func.sum(on_disk)).where(cls.kind == "file"))
        yield Size("files", cls.workspace_id, select(func.sum(ByteCount(cls.content))))
