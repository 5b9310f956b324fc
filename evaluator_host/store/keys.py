"""API keys: made, listed, revoked; looked up by the public part of a token. A token itself is never kept."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Select, exists, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from evaluator_host.model.errors import InvalidRequest, NameTaken, NotFound
from evaluator_host.store.database import Database
from evaluator_host.store.key_format import generate_key
from evaluator_host.store.tables import ApiKeyTable, WorkspaceTable
from evaluator_host.store.workspaces import ensure_workspace, require_name

_AT_ONCE: Final = 500  # ids in one query


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as its workspace's operator sees it; nothing of its secret."""

    id: str
    name: str
    workspace: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    def usable(self, now: datetime) -> bool:
        """Whether it opens anything."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Credential:
    """What a token is compared with. A key that is revoked has none."""

    id: str
    workspace_id: str
    token_hash: str
    expires_at: datetime | None


class Keys:
    """The keys of one host."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create_key(self, name: str, workspace: str, *, expires_at: datetime | None = None) -> tuple[ApiKey, str]:
        """Make a key and return it with its token, which nothing can show again. A new workspace is made too.

        Raises:
          InvalidRequest: a name is none.
          NameTaken: the workspace has a key of that name.
        """
        require_name(name, "key")
        token = generate_key()
        now = datetime.now(UTC)
        try:
            async with self._database.transaction() as connection:
                owner = await ensure_workspace(connection, workspace)
                await connection.execute(
                    insert(ApiKeyTable).values(
                        id=token.id,
                        workspace_id=owner.id,
                        name=name,
                        token_hash=token.hash,
                        created_at=now,
                        expires_at=expires_at,
                    )
                )
        except IntegrityError as error:
            raise NameTaken(
                f"workspace {workspace} has a key named {name}; take another name, or revoke that one first"
            ) from error
        return ApiKey(token.id, name, owner.name, now, expires_at, None, None), token.text

    async def list_keys(self, *, workspace: str | None = None) -> list[ApiKey]:
        """Return every key, of one workspace by name when there is one, the newest first."""
        query = _keys().order_by(ApiKeyTable.created_at.desc(), ApiKeyTable.id)
        if workspace is not None:
            query = query.where(WorkspaceTable.name == workspace)
        async with self._database.reading() as connection:
            return [ApiKey(*row) for row in await connection.execute(query)]

    async def revoke(self, name: str, *, workspace: str | None = None) -> ApiKey:
        """Revoke a key by its id or its name. Hosts that run notice within about a second.

        Raises:
          NotFound: there is none that is not revoked already.
          InvalidRequest: several workspaces have a key of that name.
        """
        active = ApiKeyTable.revoked_at.is_(None)
        query = _keys().where(active, or_(ApiKeyTable.id == name, ApiKeyTable.name == name))
        if workspace is not None:
            query = query.where(WorkspaceTable.name == workspace)
        now = datetime.now(UTC)
        async with self._database.transaction() as connection:
            found = [ApiKey(*row) for row in await connection.execute(query)]
            found = [key for key in found if key.id == name] or found
            if not found:
                raise NotFound(f"there is no key {name[:80]}, or it is revoked already; `keys list` shows all of them")
            if len(found) > 1:
                owners = ", ".join(f"{key.id} of {key.workspace}" for key in found)
                raise InvalidRequest(f"several keys are named {name}: {owners}; revoke one by its id")
            await connection.execute(
                update(ApiKeyTable).where(ApiKeyTable.id == found[0].id, active).values(revoked_at=now)
            )
        key = found[0]
        return ApiKey(key.id, key.name, key.workspace, key.created_at, key.expires_at, now, key.last_used_at)

    async def any_made(self) -> bool:
        """Whether a key was ever made, revoked ones included: from the first one on, every request needs one."""
        async with self._database.reading() as connection:
            return bool(await connection.scalar(select(exists(select(ApiKeyTable.id)))))

    async def any_usable(self) -> bool:
        """Whether a key opens anything now."""
        now = datetime.now(UTC)
        usable = select(ApiKeyTable.id).where(
            ApiKeyTable.revoked_at.is_(None), or_(ApiKeyTable.expires_at.is_(None), ApiKeyTable.expires_at > now)
        )
        async with self._database.reading() as connection:
            return bool(await connection.scalar(select(exists(usable))))

    async def credentials(self, ids: Collection[str]) -> dict[str, Credential]:
        """Return what tokens are compared with, by id; a key that is unknown or revoked is not there."""
        wanted, found = list(ids), dict[str, Credential]()
        columns = (ApiKeyTable.id, ApiKeyTable.workspace_id, ApiKeyTable.token_hash, ApiKeyTable.expires_at)
        async with self._database.reading() as connection:
            for at in range(0, len(wanted), _AT_ONCE):
                query = select(*columns).where(
                    ApiKeyTable.id.in_(wanted[at : at + _AT_ONCE]), ApiKeyTable.revoked_at.is_(None)
                )
                found.update((row[0], Credential(*row)) for row in await connection.execute(query))
        return found

    async def used(self, moments: Mapping[str, datetime]) -> None:
        """Note when keys were last used."""
        async with self._database.transaction() as connection:
            for key_id, moment in sorted(moments.items()):  # in one order: two hosts never wait for each other
                await connection.execute(
                    update(ApiKeyTable).where(ApiKeyTable.id == key_id).values(last_used_at=moment)
                )


def _keys() -> "Select[str, str, str, datetime, datetime | None, datetime | None, datetime | None]":
    return select(
        ApiKeyTable.id,
        ApiKeyTable.name,
        WorkspaceTable.name,
        ApiKeyTable.created_at,
        ApiKeyTable.expires_at,
        ApiKeyTable.revoked_at,
        ApiKeyTable.last_used_at,
    ).join(WorkspaceTable, WorkspaceTable.id == ApiKeyTable.workspace_id)
