"""Stores workspaces, the owners of every other resource."""

import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from evaluator_host.model.errors import InvalidRequest
from evaluator_host.store.database import Database, insert_unless_there
from evaluator_host.store.tables import WorkspaceTable

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class Workspace:
    """One tenant. Other resources refer to its `id`, which never changes."""

    id: str
    name: str
    created_at: datetime


class Workspaces:
    """The workspaces in the store. `default` is there from the start."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_workspaces(self) -> list[Workspace]:
        """Return all workspaces, by name."""
        query = select(WorkspaceTable.id, WorkspaceTable.name, WorkspaceTable.created_at).order_by(WorkspaceTable.name)
        async with self._database.reading() as connection:
            return [Workspace(*row) for row in await connection.execute(query)]

    async def ensure_workspace(self, name: str) -> Workspace:
        """Return the workspace of a name; create it if there is none.

        Raises:
          InvalidRequest: the name is not valid.
        """
        async with self._database.transaction() as connection:
            return await ensure_workspace(connection, name)


async def ensure_workspace(connection: AsyncConnection, name: str) -> Workspace:
    """Do what `Workspaces.ensure_workspace` does, within a transaction."""
    require_name(name, "workspace")
    query = select(WorkspaceTable.id, WorkspaceTable.name, WorkspaceTable.created_at).where(WorkspaceTable.name == name)
    row = (await connection.execute(query)).first()
    if row is None:
        made = {"id": f"ws-{secrets.token_hex(8)}", "name": name, "created_at": datetime.now(UTC)}
        await connection.execute(insert_unless_there(connection, WorkspaceTable), made)
        row = (await connection.execute(query)).one()  # it may be another process's
    return Workspace(*row)


def require_name(name: str, what: str) -> None:
    """Check a name that a caller chose.

    Raises:
      InvalidRequest: the name is not valid; the message has the rule.
    """
    if NAME.fullmatch(name) is None:
        raise InvalidRequest(
            f"{name[:80]!r} is no name for a {what}: take letters, digits, dots, dashes and underscores, at most 63, "
            "a letter or digit first"
        )
