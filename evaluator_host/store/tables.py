"""The tables as the newest migration leaves them; a test holds the two together."""

from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import BigInteger, DateTime, Dialect, ForeignKey, Index, Integer, MetaData, Text, TypeDecorator, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class UtcTime(TypeDecorator[datetime]):
    """A moment. Stored in UTC, refused without a time zone, never returned without one."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return what is stored; SQLite has no time zones."""
        if value is None:
            return None
        moment = value.astimezone(UTC) if value.tzinfo is not None else _refuse()
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Return what was stored, in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _refuse() -> datetime:
    raise ValueError("a moment without a time zone")


class Table(DeclarativeBase):
    """Base of every table. Constraints have names, so that a migration can name them on every database."""

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


class IdentityTable(Table):
    """One row: a name that no other database has, made with the table."""

    __tablename__ = "database_identity"

    id: Mapped[str] = mapped_column(primary_key=True)


class WorkspaceTable(Table):
    """Whose something is; everything that belongs to a tenant refers to one."""

    __tablename__ = "workspaces"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[datetime]


class ApiKeyTable(Table):
    """Keys; never removed, so that an audit entry always leads to one. `id` is the public part of the token."""

    __tablename__ = "api_keys"
    __table_args__ = (
        Index(  # a revoked key's name is free again
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


class AuditTable(Table):
    """Who ran what; never the data."""

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_workspace_id_at", "workspace_id", "at"), Index("ix_audit_at", "at"))

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    at: Mapped[datetime]
    workspace_id: Mapped[str]
    key_id: Mapped[str | None]
    verb: Mapped[str]
    evaluator: Mapped[str | None]
    rows: Mapped[int]
    failed: Mapped[int]
    outcome: Mapped[str]
    duration_ms: Mapped[float]


class PackageSetUseTable(Table):
    """Which workspace asked for which package set, by the set's key or digest."""

    __tablename__ = "package_set_uses"

    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    asked_at: Mapped[datetime]
