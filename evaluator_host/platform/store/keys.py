"""API keys: creates, lists, revokes and looks them up by id. The key itself is never stored.

A key is `eh_<id>_<secret>`. The id is public. With the id, the host finds the stored record, which contains a hash of
the whole key. The secret has 256 random bits, so the hash needs no salt.
"""

import hashlib
import re
import secrets
import string
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Select, delete, exists, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from evaluator_host.engine.service.caller import DEFAULT_WORKSPACE
from evaluator_host.platform.store.database import Repository
from evaluator_host.platform.store.tables import ApiKeyTable, WorkspaceTable
from evaluator_host.platform.store.workspaces import ensure_workspace, require_name
from evaluator_host.types.errors import InvalidRequest, NameTaken, NotFound

_AT_ONCE: Final = 500  # maximum number of ids in one query
_ALPHABET: Final = string.ascii_lowercase + string.digits
_ID_LENGTH: Final = 12
_TOKEN: Final = re.compile(rf"eh_([a-z0-9]{{{_ID_LENGTH}}})_[A-Za-z0-9_-]{{43}}")


@dataclass(frozen=True, slots=True)
class GeneratedKey:
    """A new API key. `text` is shown once to its owner, and never in a repr."""

    id: str
    text: str = field(repr=False)

    @property
    def hash(self) -> str:
        """The hash of the key. Only this hash is stored."""
        return token_hash(self.text)


def generate_key() -> GeneratedKey:
    """Create a random API key."""
    key_id = "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
    return GeneratedKey(key_id, f"eh_{key_id}_{secrets.token_urlsafe(32)}")


def key_id_of(text: str) -> str | None:
    match = _TOKEN.fullmatch(text)
    return match.group(1) if match else None


def token_hash(text: str) -> str:
    """Return the hash of a key, to store it or to compare it."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """The facts about a stored API key, but not the key itself."""

    id: str
    name: str
    workspace: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    def usable(self, now: datetime) -> bool:
        """Whether requests with this key are accepted: it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Credential:
    """The stored hash with which a request's key is compared, and the key's workspace."""

    id: str
    workspace_id: str
    token_hash: str
    expires_at: datetime | None


class Keys(Repository):
    """The API keys in the database."""

    async def create_key(self, name: str, workspace: str, *, expires_at: datetime | None = None) -> tuple[ApiKey, str]:
        """Create a key, and its workspace if there is none. Return the key with its text, which is never shown again.

        Raises:
          InvalidRequest: a name is not valid.
          NameTaken: the workspace has a key with that name.
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
                f"workspace {workspace} has a key named {name}; choose another name, or revoke that key first"
            ) from error
        return ApiKey(token.id, name, owner.name, now, expires_at, None, None), token.text

    async def list_keys(self, *, workspace: str | None = None) -> list[ApiKey]:
        """Return all keys, or the keys of one workspace, newest first."""
        query = _keys().order_by(ApiKeyTable.created_at.desc(), ApiKeyTable.id)
        if workspace is not None:
            query = query.where(WorkspaceTable.name == workspace)
        return [ApiKey(*row) for row in await self._database.fetch_all(query)]

    async def revoke(self, name: str, *, workspace: str | None = None) -> ApiKey:
        """Revoke a key by id or name, and return it. Running hosts notice within about a second.

        Raises:
          NotFound: there is no such key, or it is already revoked.
          InvalidRequest: several workspaces have a key with that name.
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
                raise NotFound(
                    f"there is no key with the id or name {name[:80]}, or it is already revoked; "
                    "`keys list` shows all of them"
                )
            if len(found) > 1:
                owners = ", ".join(f"{key.id} of {key.workspace}" for key in found)
                raise InvalidRequest(f"several keys are named {name}: {owners}; revoke one by its id")
            await connection.execute(
                update(ApiKeyTable).where(ApiKeyTable.id == found[0].id, active).values(revoked_at=now)
            )
        key = found[0]
        return replace(key, revoked_at=now)

    async def delete_all(self) -> int:
        """Delete every key, and return how many there were. Requests then need no key. The audit log keeps the ids."""
        return await self._database.change_rows(delete(ApiKeyTable))

    async def any_made(self) -> bool:
        """Whether a key was ever created, even if it was revoked since. If so, every request needs a key."""
        return bool(await self._database.fetch_value(select(exists(select(ApiKeyTable.id)))))

    async def any_of_teams(self) -> bool:
        """Whether a key was ever created for a workspace other than `default`."""
        teams = select(ApiKeyTable.id).where(ApiKeyTable.workspace_id != DEFAULT_WORKSPACE)
        return bool(await self._database.fetch_value(select(exists(teams))))

    async def any_usable(self) -> bool:
        """Whether there is a key that is neither revoked nor expired."""
        now = datetime.now(UTC)
        usable = select(ApiKeyTable.id).where(
            ApiKeyTable.revoked_at.is_(None), or_(ApiKeyTable.expires_at.is_(None), ApiKeyTable.expires_at > now)
        )
        return bool(await self._database.fetch_value(select(exists(usable))))

    def mark(self) -> tuple[object, ...] | None:
        """Return a value that changes when keys change. None if the database has no such value."""
        return self._database.mark()

    async def credentials(self, ids: Collection[str]) -> dict[str, Credential]:
        """Return the stored hashes of keys, keyed by id. Unknown and revoked keys are left out."""
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
        """Store when keys were last used. `moments` maps the ids of keys to these times."""
        async with self._database.transaction() as connection:
            for key_id, moment in sorted(moments.items()):  # sorted, so that two hosts never deadlock
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
