"""The audit log: who called which operation and evaluator, with how many rows and which outcome; never row data.

An operator's commands that change keys write an entry, too.

A running host collects entries in memory and writes them in batches, so that no call waits for them. If the host is
killed, the entries of its last second are lost. While the database does not answer, the newest `KEPT` entries are kept.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import insert, select

from evaluator_host.engine.service.caller import DEFAULT_WORKSPACE
from evaluator_host.platform.store.database import Repository, insert_many, row_values
from evaluator_host.platform.store.tables import ApiKeyTable, AuditTable, WorkspaceTable
from evaluator_host.platform.store.workspaces import ensure_workspace
from evaluator_host.types.errors import StoreUnavailable

KEPT: Final = 20_000  # maximum number of entries in memory, a few megabytes
_BATCH: Final = 1_000

_PRUNED_AT_ONCE: Final = 1000  # entries to remove at once, so that no writer waits long

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry of the audit log: who called what, when, and how it ended."""

    at: datetime  # when the call began, in UTC
    workspace_id: str  # the caller's workspace
    key_id: str | None  # the caller's key; None on a host without keys, and for an operator's command
    verb: str  # such as `evaluate` or `jobs.create`
    evaluator: str | None  # digest of the evaluator; None for verbs without one
    rows: int  # number of rows in the call
    failed: int  # number of failed rows
    outcome: str  # `scored`, or the most frequent error code
    duration_ms: float  # milliseconds of the whole call
    # grants of the call's evaluators, as in `Evaluator.grants`, separated by spaces; None if there are none
    grants: str | None = None
    # name or id of the object that was created, changed or deleted; None for calls that run evaluators
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class AuditLine:
    """An audit entry as an operator reads it: with the names of workspace and key."""

    at: datetime
    workspace: str
    key: str | None
    key_id: str | None
    verb: str
    subject: str | None
    evaluator: str | None
    rows: int
    failed: int
    outcome: str
    duration_ms: float
    grants: str | None


class Audit(Repository):
    """The audit log in the database."""

    async def append_entries(self, entries: Sequence[AuditEntry]) -> None:
        """Append all of these audit entries. If this fails, none is appended."""
        if entries:
            async with self._database.transaction() as connection:
                await insert_many(connection, AuditTable, entries)

    async def note_command(self, verb: str, *, workspace: str = DEFAULT_WORKSPACE, subject: str | None = None) -> None:
        """Append the entry of an operator's command that changed something in the workspace with this name."""
        async with self._database.transaction() as connection:
            owner = await ensure_workspace(connection, workspace)
            entry = AuditEntry(
                at=datetime.now(UTC),
                workspace_id=owner.id,
                key_id=None,
                verb=verb,
                evaluator=None,
                rows=0,
                failed=0,
                outcome="ok",
                duration_ms=0.0,
                subject=subject,
            )
            await connection.execute(insert(AuditTable), row_values(entry))

    async def list_entries(
        self, *, limit: int, workspace: str | None = None, key: str | None = None, since: datetime | None = None
    ) -> list[AuditLine]:
        """Return the newest audit entries, newest first. `workspace` is a name, `key` a name or an id."""
        query = (
            select(
                AuditTable.at,
                WorkspaceTable.name.label("workspace"),
                ApiKeyTable.name.label("key"),
                AuditTable.key_id,
                AuditTable.verb,
                AuditTable.subject,
                AuditTable.evaluator,
                AuditTable.rows,
                AuditTable.failed,
                AuditTable.outcome,
                AuditTable.duration_ms,
                AuditTable.grants,
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
        return [AuditLine(**row._asdict()) for row in await self._database.fetch_all(query)]

    async def delete_before(self, before: datetime) -> int:
        """Delete audit entries from before this time, and return how many were deleted."""
        return await self._database.delete_rows(AuditTable.__table__, AuditTable.at < before, at_once=_PRUNED_AT_ONCE)


class AuditLog:
    """Writes audit entries in batches. Use it in one event loop only."""

    def __init__(self, audit: Audit) -> None:
        self.dropped = 0  # entries lost because the database did not accept them, or did not answer for too long
        self._audit = audit
        self._waiting: deque[AuditEntry] = deque()
        self._writing: asyncio.Task[None] | None = None

    def note(self, entry: AuditEntry) -> None:
        """Add an audit entry to the next batch, without waiting for the database."""
        if len(self._waiting) >= KEPT:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(_storable(entry))

    async def write(self) -> None:
        """Write the waiting audit entries.

        Only an entry that the database does not accept is dropped, not the entries in the same batch. If the caller is
        cancelled, the work goes on, because nobody would know whether the present batch was stored. The next call joins
        it.

        Raises:
          StoreUnavailable: the database does not answer; the entries will be written at the next attempt.
        """
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        await asyncio.shield(self._writing)

    async def _write(self) -> None:
        size = _BATCH
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(size, len(self._waiting)))]
            try:
                await self._audit.append_entries(batch)
            except BaseException as error:
                refused = isinstance(error, Exception) and not isinstance(error, StoreUnavailable)
                if refused and len(batch) == 1:
                    _log.error("an audit entry of %s is lost", batch[0].workspace_id, exc_info=error)
                    self.dropped += 1
                    continue
                self._waiting.extendleft(reversed(batch))
                if not refused:
                    raise
                size = len(batch) // 2
            else:
                size = min(2 * size, _BATCH)


def _storable(entry: AuditEntry) -> AuditEntry:
    """Return an entry that every database accepts. PostgreSQL would refuse the whole batch because of a NUL character.

    Callers choose the texts of subject and grants.
    """
    subject, grants = entry.subject or "", entry.grants or ""
    if "\0" not in subject and "\0" not in grants:
        return entry
    subject, grants = subject.replace("\0", "\ufffd"), grants.replace("\0", "\ufffd")
    return replace(entry, subject=subject or None, grants=grants or None)
