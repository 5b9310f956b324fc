"""Secrets of workspaces.

Secrets have names, and are encrypted in the database. A secret is decrypted only for a request that needs it.

The encryption is AES-256-GCM, with a key that is not in the database: a setting, or a file in the data directory. An
encrypted secret is bound to its workspace and name, so that a copy under another name cannot be decrypted.
"""

import asyncio
import base64
import binascii
import hashlib
import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import ColumnElement, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from evaluator_host.engine.system.files import replace_file, write_once
from evaluator_host.platform.store.database import Database, Repository, insert_unless_there
from evaluator_host.platform.store.tables import SecretTable, WorkspaceTable
from evaluator_host.platform.store.workspaces import NAME, require_name
from evaluator_host.types.errors import (
    InUse,
    InvalidRequest,
    MachineExhausted,
    Misconfigured,
    NameTaken,
    NotFound,
    refusal_of,
)
from evaluator_host.types.redaction import SHORTEST
from evaluator_host.types.stored import SecretReport

LONGEST: Final = 8192
_MOST: Final = 1000  # maximum number of secrets in a workspace
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_VERSION: Final = b"\x01"
_MARK_BYTES: Final = 4  # bytes of the key's hash in each stored secret, to distinguish a wrong key from damage
_SETTING: Final = "EVALUATOR_HOST_SECRETS_KEY"
_MAKE_ONE: Final = "`evaluator-host secrets set NAME` makes one"
_MAKE: Final = "`openssl rand -base64 32` makes one"


class SecretBox:
    """Encrypts secrets with the host's newest key, and decrypts them with any of its keys.

    Only `seal` creates the key file.

    Args:
      given: Keys from the host's settings, newest first, separated by commas or spaces, each 32 bytes in base64. None
        for the keys in the key file, one in each line.
      data_dir: Folder of the key file.
    """

    def __init__(self, given: str | None, data_dir: Path) -> None:
        self._given = given
        self._file = data_dir / "secrets.key"

    def seal(self, text: str, *, workspace_id: str, name: str) -> bytes:
        """Return a value, encrypted for one workspace and name. Blocking.

        Raises:
          Misconfigured: the key cannot be read, or is not valid.
        """
        if self._given is None and not self._file.exists():
            self._write(write_once, [_new_key()])
        key = self._keys()[0]
        nonce = os.urandom(_NONCE_BYTES)
        sealed = AESGCM(key).encrypt(nonce, text.encode(), _bound(workspace_id, name))
        return _VERSION + _mark(key) + nonce + sealed

    def open(self, sealed: bytes, *, workspace_id: str, name: str) -> str:
        """Decrypt a value that was encrypted for this workspace and name. Blocking.

        Raises:
          Misconfigured: the value was encrypted with a key that this host does not have, or is damaged.
        """
        mark, nonce, rest = sealed[1:5], sealed[5 : 5 + _NONCE_BYTES], sealed[5 + _NONCE_BYTES :]
        key = next((one for one in self._keys() if _mark(one) == mark), None)
        if sealed[:1] != _VERSION or key is None:
            raise Misconfigured(
                f"the secret {name} was encrypted with a key that this host does not have in {self._source}. Give this "
                f"host that key ({_SETTING}, or the file secrets.key in the data directory of the host that "
                f"encrypted the secret), or set the secret again: evaluator-host secrets set {name}"
            )
        try:
            return AESGCM(key).decrypt(nonce, rest, _bound(workspace_id, name)).decode()
        except (InvalidTag, ValueError) as error:
            raise Misconfigured(
                f"the secret {name} is damaged in the database; set it again: evaluator-host secrets set {name}"
            ) from error

    def is_newest(self, sealed: bytes) -> bool:
        """Return whether an encrypted secret was encrypted with the newest key. Blocking.

        Raises:
          Misconfigured: the key cannot be read, or is not valid.
        """
        return sealed[1:5] == _mark(self._keys()[0])

    def marks(self) -> frozenset[bytes]:
        """Return the marks of this host's keys: the 4 bytes in an encrypted secret that identify its key. Blocking.

        Raises:
          Misconfigured: a key cannot be read, or is not valid.
        """
        there = self._given is not None or os.path.lexists(self._file)
        return frozenset(map(_mark, self._keys())) if there else frozenset()

    def add_key(self) -> bool:
        """Add a new key at the beginning of the key file. Return False if the keys are in the settings. Blocking.

        Raises:
          Misconfigured: the key file cannot be read or written.
        """
        if self._given is not None:
            return False
        held = self._keys() if self._file.exists() else []
        self._write(replace_file, [_new_key(), *held])
        return True

    def drop_old_keys(self) -> int:
        """Leave only the newest key in the key file. Return how many keys were dropped. Blocking.

        Raises:
          Misconfigured: the key file cannot be read or written, or the keys are in the settings.
        """
        if self._given is not None:
            raise Misconfigured(f"the keys are in {_SETTING}: remove all keys but the first there")
        newest, *old = self._keys()
        if old:
            self._write(replace_file, [newest])
        return len(old)

    @property
    def _source(self) -> str:
        return _SETTING if self._given is not None else str(self._file)

    def _keys(self) -> list[bytes]:
        """Return the keys, newest first. Read the file each time, since another process may have added a key."""
        text = self._given if self._given is not None else _read(self._file)
        return [_decoded(one, self._source) for one in re.split(r"[,\s]+", text.strip())]

    def _write(self, write: Callable[[Path, bytes], None], keys: list[bytes]) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write(self._file, b"".join(base64.b64encode(key) + b"\n" for key in keys))
        except OSError as error:
            reason = f"{self._file}: {error.strerror}; make room, or set {_SETTING}"
            raise Misconfigured(f"the key of the secrets cannot be written: {reason}") from error


def _new_key() -> bytes:
    return os.urandom(_KEY_BYTES)


def _decoded(text: str, source: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), altchars=b"-_" if {"-", "_"} & set(text) else None, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise Misconfigured(f"{source} is not a key: it must be {_KEY_BYTES} bytes as base64; {_MAKE}")
    return key


def _read(file: Path) -> str:
    try:
        mode = file.stat().st_mode
        text = file.read_text("ascii")
    except FileNotFoundError as error:
        raise Misconfigured(
            f"this host has no key to decrypt its secrets: there is no {file}, and {_SETTING} is not set. Give it "
            "the key that encrypted them, or set the secrets again"
        ) from error
    except (OSError, ValueError) as error:
        if (lacks := MachineExhausted.cause_of(error)) is not None:
            raise lacks from error
        reason = refusal_of(error) if isinstance(error, OSError) else f"{file} is not text; {_MAKE}"
        raise Misconfigured(f"the key of the secrets cannot be read: {reason}") from error
    if mode & 0o077:
        raise Misconfigured(f"{file} can be read by other users; chmod 600 it, or set {_SETTING}")
    return text


def _mark(key: bytes) -> bytes:
    return hashlib.sha256(b"evaluator-host secrets " + key).digest()[:_MARK_BYTES]


def _bound(workspace_id: str, name: str) -> bytes:
    return f"{len(workspace_id)} {workspace_id} {name}".encode()


@dataclass(frozen=True, slots=True)
class KeyRotation:
    """The outcome of encrypting all secrets with a newer key."""

    added: bool  # whether a new key was created in the key file
    resealed: int  # number of secrets that were encrypted with the newest key
    closed: tuple[str, ...]  # `workspace/name` of the secrets that no key can decrypt; they stay as they are
    dropped: int  # number of old keys that were removed from the key file


class Secrets(Repository):
    """The secrets in the database; `box` encrypts them.

    Every method for a stored secret raises `NotFound` if there is no secret with that name.
    """

    def __init__(self, database: Database, box: SecretBox) -> None:
        super().__init__(database)
        self.box = box

    async def set_secret(self, workspace_id: str, name: str, value: str, *, shortest: int = SHORTEST) -> SecretReport:
        """Store or replace a secret of at least `shortest` characters. Results mask only secrets of `SHORTEST` or more.

        Raises:
          InvalidRequest: the name or the value is not valid.
          InUse: the workspace has too many secrets.
          Misconfigured: this host's key cannot be read.
        """
        sealed = await self._seal(workspace_id, name, value, shortest=shortest)
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

    async def add_secret(self, workspace_id: str, name: str, value: str) -> SecretReport:
        """Store a new secret.

        Raises:
          InvalidRequest: the name or the value is not valid.
          NameTaken: there is a secret with that name.
          InUse: the workspace has too many secrets.
          Misconfigured: this host's key cannot be read.
        """
        sealed = await self._seal(workspace_id, name, value)
        now = datetime.now(UTC)
        new = {"workspace_id": workspace_id, "name": name, "sealed": sealed, "created_at": now, "updated_at": now}
        try:
            await self._database.change_rows(insert(SecretTable).values(**new))
        except IntegrityError as error:
            raise NameTaken(f"there is already a secret named {name}") from error
        return SecretReport(name, now, now)

    async def _seal(self, workspace_id: str, name: str, value: str, *, shortest: int = SHORTEST) -> bytes:
        """Check that a workspace may store a secret, and encrypt it. Raises the same errors as `set_secret`."""
        require_name(name, "secret")
        _require_value(value, shortest)
        names = {one.name for one in await self.list_secrets(workspace_id)}
        if name not in names and len(names) >= _MOST:
            raise InUse(f"a workspace may have at most {_MOST} secrets; delete one first")
        return await asyncio.to_thread(self.box.seal, value, workspace_id=workspace_id, name=name)

    async def take_back(self, workspace_id: str, added: SecretReport) -> None:
        """Delete a secret that `add_secret` stored, unless it was replaced since then."""
        unchanged = _this(workspace_id, added.name) & (SecretTable.updated_at == added.updated_at)
        await self._database.change_rows(delete(SecretTable).where(unchanged))

    async def list_secrets(self, workspace_id: str) -> list[SecretReport]:
        """Return the names and times of the secrets, sorted by name, without their values."""
        table = SecretTable
        query = select(table.name, table.created_at, table.updated_at).where(table.workspace_id == workspace_id)
        return [SecretReport(*row) for row in await self._database.fetch_all(query.order_by(table.name))]

    async def get_secret(self, workspace_id: str, name: str) -> SecretReport:
        """Return the name and times of a secret, without its value."""
        found = next((one for one in await self.list_secrets(workspace_id) if one.name == name), None)
        if found is None:
            raise await self._missing(workspace_id, name)
        return found

    async def reveal(self, workspace_id: str, name: str) -> str:
        """Return the value of a secret. Call this only for a request that needs the value.

        Raises:
          Misconfigured: the secret was encrypted with a key that this host does not have.
        """
        _require_possible(name)
        query = select(SecretTable.sealed).where(_this(workspace_id, name))
        sealed = await self._database.fetch_value(query)
        if sealed is None:
            raise await self._missing(workspace_id, name)
        return await asyncio.to_thread(self.box.open, sealed, workspace_id=workspace_id, name=name)

    async def _reseal_all(self) -> tuple[int, list[str]]:
        """Encrypt every secret of every workspace with the newest key.

        Returns:
          How many secrets were encrypted again, and `workspace/name` of the secrets that no key of this host can
          decrypt.

        Raises:
          Misconfigured: a key cannot be read, or is not valid.
        """
        table, done, closed = SecretTable, 0, list[str]()
        query = select(table.workspace_id, table.name, table.sealed, WorkspaceTable.name.label("workspace"))
        for row in await self._database.fetch_all(query.join(WorkspaceTable)):
            try:
                fresh = await asyncio.to_thread(self._reseal, row.sealed, row.workspace_id, row.name)
            except Misconfigured:
                closed.append(f"{row.workspace}/{row.name}")
                continue
            if fresh is not None:
                unchanged = _this(row.workspace_id, row.name) & (table.sealed == row.sealed)
                done += await self._database.change_rows(update(table).where(unchanged).values(sealed=fresh))
        return done, closed

    def _reseal(self, sealed: bytes, workspace_id: str, name: str) -> bytes | None:
        if self.box.is_newest(sealed):
            return None
        text = self.box.open(sealed, workspace_id=workspace_id, name=name)
        return self.box.seal(text, workspace_id=workspace_id, name=name)

    async def list_closed(self, marks: Collection[bytes]) -> list[str]:
        """Return `workspace/name` of the secrets that cannot be decrypted by a key with one of these `marks`."""
        table = SecretTable
        query = select(WorkspaceTable.name.label("workspace"), table.name, table.sealed).join(WorkspaceTable)
        found = await self._database.fetch_all(query.order_by(WorkspaceTable.name, table.name))
        return [f"{row.workspace}/{row.name}" for row in found if row.sealed[1 : 1 + _MARK_BYTES] not in marks]

    async def rotate_key(self, *, drop_old: bool = False) -> KeyRotation:
        """Encrypt every secret again, with a new key in the key file or with the first key of the settings.

        Args:
          drop_old: Whether to use the newest key instead of a new key, and then to remove all other keys from the key
            file.

        Raises:
          Misconfigured: the keys cannot be read or written, or a secret needs a key that is to be dropped.
        """
        added = not drop_old and await asyncio.to_thread(self.box.add_key)
        resealed, closed = await self._reseal_all()
        dropped = await asyncio.to_thread(self.box.drop_old_keys) if drop_old else 0
        return KeyRotation(added, resealed, tuple(closed), dropped)

    async def delete_secret(self, workspace_id: str, name: str) -> None:
        _require_possible(name)
        if not await self._database.change_rows(delete(SecretTable).where(_this(workspace_id, name))):
            raise await self._missing(workspace_id, name)

    async def _missing(self, workspace_id: str, name: str) -> NotFound:
        names = select(SecretTable.name).where(SecretTable.workspace_id == workspace_id)
        return await self._not_found("secret", name, names, otherwise=_MAKE_ONE)


def _this(workspace_id: str, name: str) -> ColumnElement[bool]:
    return (SecretTable.workspace_id == workspace_id) & (SecretTable.name == name)


def _require_possible(name: str) -> None:
    """Raise NotFound for a string that is not a valid name, since some databases refuse such strings."""
    if NAME.fullmatch(name) is None:
        raise _not_found(name)


def _require_value(value: str, shortest: int) -> None:
    """Check that a secret can be sent in a header and masked in answers. Error messages never repeat the secret."""
    if not shortest <= len(value) <= LONGEST:
        raise InvalidRequest(f"a secret must have {shortest} to {LONGEST} characters, not {len(value)}")
    if not (value.isascii() and value.isprintable()) or value != value.strip():
        raise InvalidRequest(
            "a secret may only contain printable ASCII characters, on one line, and no space at either end"
        )


def _not_found(name: str) -> NotFound:
    return NotFound(f"there is no secret {name[:80]}; {_MAKE_ONE}")
