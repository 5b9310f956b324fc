"""Stores secrets of workspaces by name: encrypted in the database, decrypted only for the request that needs one."""

import asyncio
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import ColumnElement, delete, select, update

from evaluator_host.model.errors import InvalidRequest, NotFound
from evaluator_host.schemas.secrets import SecretReport
from evaluator_host.store.database import Database, insert_unless_there
from evaluator_host.store.secret_box import SecretBox
from evaluator_host.store.tables import SecretTable
from evaluator_host.store.workspaces import NAME, require_name

SHORTEST: Final = 8  # a shorter one would mask ordinary words
LONGEST: Final = 8192


class Secrets:
    """The secrets in the store."""

    def __init__(self, database: Database, seal: SecretBox) -> None:
        self._database = database
        self._seal = seal

    async def set_secret(self, workspace_id: str, name: str, value: str) -> SecretReport:
        """Store a secret under a name, and replace the one of that name.

        Raises:
          InvalidRequest: the name or the value is not valid.
          Misconfigured: this host's key cannot be read.
        """
        require_name(name, "secret")
        _require_value(value)
        sealed = await asyncio.to_thread(self._seal.seal, value, workspace_id=workspace_id, name=name)
        now = datetime.now(UTC)
        async with self._database.transaction() as connection:
            key = {"workspace_id": workspace_id, "name": name}
            new = {**key, "sealed": sealed, "created_at": now, "updated_at": now}
            await connection.execute(insert_unless_there(connection, SecretTable), new)
            change = update(SecretTable).where(_this(workspace_id, name)).values(sealed=sealed, updated_at=now)
            await connection.execute(change)
            query = select(SecretTable.created_at).where(_this(workspace_id, name))
            created_at = (await connection.execute(query)).scalar_one()
        return SecretReport(name, created_at, now)

    async def list_secrets(self, workspace_id: str) -> list[SecretReport]:
        """Return names and times of the secrets by name, never values."""
        table = SecretTable
        query = select(table.name, table.created_at, table.updated_at).where(table.workspace_id == workspace_id)
        async with self._database.reading() as connection:
            return [SecretReport(*row) for row in await connection.execute(query.order_by(table.name))]

    async def get_secret(self, workspace_id: str, name: str) -> SecretReport:
        """Return name and times of a secret, never its value.

        Raises:
          NotFound: there is no secret of that name.
        """
        found = next((one for one in await self.list_secrets(workspace_id) if one.name == name), None)
        if found is None:
            raise _not_found(name)
        return found

    async def reveal(self, workspace_id: str, name: str) -> str:
        """Return the value of a secret, for the request that needs it.

        Raises:
          NotFound: there is no secret of that name.
          Misconfigured: it was sealed with another key.
        """
        _require_possible(name)
        query = select(SecretTable.sealed).where(_this(workspace_id, name))
        async with self._database.reading() as connection:
            sealed = await connection.scalar(query)
        if sealed is None:
            raise _not_found(name)
        return await asyncio.to_thread(self._seal.open, sealed, workspace_id=workspace_id, name=name)

    async def delete_secret(self, workspace_id: str, name: str) -> None:
        """Delete a secret.

        Raises:
          NotFound: there is no secret of that name.
        """
        _require_possible(name)
        async with self._database.transaction() as connection:
            gone = await connection.execute(delete(SecretTable).where(_this(workspace_id, name)))
            if not gone.rowcount:
                raise _not_found(name)


def _this(workspace_id: str, name: str) -> ColumnElement[bool]:
    return (SecretTable.workspace_id == workspace_id) & (SecretTable.name == name)


def _require_possible(name: str) -> None:
    """Raise NotFound for a text that is no name, since not every database takes every text."""
    if NAME.fullmatch(name) is None:
        raise _not_found(name)


def _require_value(value: str) -> None:
    """Check a value without repeating it in a message: it goes into a header, and is masked in answers."""
    if not SHORTEST <= len(value) <= LONGEST:
        raise InvalidRequest(f"a secret has {SHORTEST} to {LONGEST} characters, not {len(value)}")
    if not (value.isascii() and value.isprintable()) or value != value.strip():
        raise InvalidRequest("a secret has letters, digits and signs of ASCII only, on one line, no space at its ends")


def _not_found(name: str) -> NotFound:
    return NotFound(f"there is no secret {name[:80]!r}; `evaluator-host secrets set NAME` makes one")
