"""Who ran what: key, workspace, verb, digest of the evaluator, rows, outcome, duration. Never the data."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final

from sqlalchemy import delete, insert, select

from evaluator_host.store.database import Database
from evaluator_host.store.tables import ApiKeyTable, AuditTable, WorkspaceTable

_PRUNED_AT_ONCE: Final = 10_000  # so that a writer never waits long


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One call. `outcome` is `scored`, or the most frequent reason why not; `workspace_id` and `key_id` say whose."""

    at: datetime
    workspace_id: str
    key_id: str | None
    verb: str
    evaluator: str | None
    rows: int
    failed: int
    outcome: str
    duration_ms: float


_COLUMNS: Final = tuple(field.name for field in fields(AuditEntry))  # `asdict` would copy every value deeply


@dataclass(frozen=True, slots=True)
class AuditLine:
    """An entry as an operator reads it: with the names that ids stand for."""

    at: datetime
    workspace: str
    key: str | None
    key_id: str | None
    verb: str
    evaluator: str | None
    rows: int
    failed: int
    outcome: str
    duration_ms: float


class Audit:
    """The audit log of one host."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append_entries(self, entries: Sequence[AuditEntry]) -> None:
        """Append entries, all or none."""
        if entries:
            async with self._database.transaction() as connection:
                await connection.execute(
                    insert(AuditTable), [{name: getattr(entry, name) for name in _COLUMNS} for entry in entries]
                )

    async def list_entries(
        self, *, limit: int, workspace: str | None = None, key: str | None = None, since: datetime | None = None
    ) -> list[AuditLine]:
        """Return the newest entries, the newest first.

        Args:
          limit: How many, at most.
          workspace: Only this one's, by name.
          key: Only those of one key, by name or id.
          since: Only those from this moment on.
        """
        query = (
            select(
                AuditTable.at,
                WorkspaceTable.name.label("workspace"),
                ApiKeyTable.name.label("key"),
                AuditTable.key_id,
                AuditTable.verb,
                AuditTable.evaluator,
                AuditTable.rows,
                AuditTable.failed,
                AuditTable.outcome,
                AuditTable.duration_ms,
            )
            .join(WorkspaceTable, WorkspaceTable.id == AuditTable.workspace_id)
            .outerjoin(ApiKeyTable, ApiKeyTable.id == AuditTable.key_id)
            .order_by(AuditTable.at.desc(), AuditTable.id.desc())
            .limit(limit)
        )
        if workspace is not None:
            query = query.where(WorkspaceTable.name == workspace)
        if key is not None:
            query = query.where((ApiKeyTable.name == key) | (AuditTable.key_id == key))
        if since is not None:
            query = query.where(AuditTable.at >= since)
        async with self._database.reading() as connection:
            return [AuditLine(**row._asdict()) for row in await connection.execute(query)]

    async def delete_before(self, before: datetime) -> int:
        """Remove entries from before a moment; returns how many."""
        old = select(AuditTable.id).where(AuditTable.at < before).limit(_PRUNED_AT_ONCE)
        removed = 0
        while True:
            async with self._database.transaction() as connection:
                count = (await connection.execute(delete(AuditTable).where(AuditTable.id.in_(old)))).rowcount
            removed += count
            if count < _PRUNED_AT_ONCE:
                return removed
