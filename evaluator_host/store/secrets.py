"""Secrets of workspaces by name: encrypted in the database, decrypted only for the request that needs one.

They are encrypted with AES-256-GCM under a key that is not in the database: a setting, or a file in the data directory.
A sealed secret is bound to its workspace and name: it does not open in another row.
"""

import asyncio
import base64
import binascii
import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import ColumnElement, delete, select, update

from evaluator_host.model.errors import InvalidRequest, Misconfigured, NotFound
from evaluator_host.schemas.stored import SecretReport
from evaluator_host.store.database import Database, Repository, insert_unless_there
from evaluator_host.store.tables import SecretTable
from evaluator_host.store.workspaces import NAME, require_name
from evaluator_host.system.files import write_once

SHORTEST: Final = 8  # a shorter one would mask ordinary words
LONGEST: Final = 8192
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_VERSION: Final = b"\x01"
_MARK_BYTES: Final = 4  # of the key's hash, to tell a wrong key from a damaged row
_SETTING: Final = "EVALUATOR_HOST_SECRETS_KEY"
_MAKE: Final = "`openssl rand -base64 32` makes one"


class SecretBox:
    """Encrypts and decrypts secrets. Reads the host's key when first needed; only `seal` creates the key file.

    Args:
      given: The key of the settings: 32 bytes as base64. None for the key file.
      data_dir: Folder of the key file.
    """

    def __init__(self, given: str | None, data_dir: Path) -> None:
        self._given = given
        self._file = data_dir / "secrets.key"
        self._key: bytes | None = None

    def seal(self, text: str, *, workspace_id: str, name: str) -> bytes:
        """Encrypt a text for one workspace and name. Blocking.

        Raises:
          Misconfigured: the key cannot be read, or is not valid.
        """
        key = self._own_key(make=True)
        nonce = os.urandom(_NONCE_BYTES)
        sealed = AESGCM(key).encrypt(nonce, text.encode(), _bound(workspace_id, name))
        return _VERSION + _mark(key) + nonce + sealed

    def open(self, sealed: bytes, *, workspace_id: str, name: str) -> str:
        """Decrypt a text that was encrypted for this workspace and name. Blocking.

        Raises:
          Misconfigured: it was sealed with another key, or is damaged.
        """
        key = self._own_key(make=False)
        mark, nonce, rest = sealed[1:5], sealed[5 : 5 + _NONCE_BYTES], sealed[5 + _NONCE_BYTES :]
        if sealed[:1] != _VERSION or mark != _mark(key):
            raise Misconfigured(
                f"the secret {name} was sealed with another key than this host's ({self._source}). Give this host the "
                f"key that it was set with ({_SETTING}, or the file secrets.key of that host's data directory), or set "
                f"the secret again: evaluator-host secrets set {name}"
            )
        try:
            return AESGCM(key).decrypt(nonce, rest, _bound(workspace_id, name)).decode()
        except (InvalidTag, ValueError) as error:
            raise Misconfigured(
                f"the secret {name} is damaged in the database; set it again: evaluator-host secrets set {name}"
            ) from error

    @property
    def _source(self) -> str:
        return _SETTING if self._given is not None else str(self._file)

    def _own_key(self, *, make: bool) -> bytes:
        if self._key is None:
            text = self._given
            if text is None:
                if make and not self._file.exists():
                    _make(self._file)
                text = _read(self._file)
            self._key = _decoded(text, self._source)
        return self._key


def _decoded(text: str, source: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), altchars=b"-_" if {"-", "_"} & set(text) else None, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise Misconfigured(f"{source} is no key: it must be {_KEY_BYTES} bytes as base64; {_MAKE}")
    return key


def _read(file: Path) -> str:
    try:
        mode = file.stat().st_mode
        text = file.read_text("ascii")
    except FileNotFoundError as error:
        raise Misconfigured(
            f"this host has no key to open secrets with: there is no {file}, and {_SETTING} is not set. Give it the "
            "key that they were sealed with, or set the secrets again"
        ) from error
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is no text"
        raise Misconfigured(f"the key of the secrets cannot be read: {file}: {reason}") from error
    if mode & 0o077:
        raise Misconfigured(f"{file} can be read by other users; chmod 600 it, or set {_SETTING}")
    return text


def _make(file: Path) -> None:
    """Write a new key file, unless another process just did."""
    try:
        write_once(file, base64.b64encode(os.urandom(_KEY_BYTES)) + b"\n")
    except OSError as error:
        raise Misconfigured(
            f"the key of the secrets cannot be written: {file}: {error.strerror}; make room, or set {_SETTING}"
        ) from error


def _mark(key: bytes) -> bytes:
    return hashlib.sha256(b"evaluator-host secrets " + key).digest()[:_MARK_BYTES]


def _bound(workspace_id: str, name: str) -> bytes:
    return f"{len(workspace_id)} {workspace_id} {name}".encode()


class Secrets(Repository):
    """The secrets in the database."""

    def __init__(self, database: Database, seal: SecretBox) -> None:
        super().__init__(database)
        self._seal = seal

    async def set_secret(self, workspace_id: str, name: str, value: str) -> SecretReport:
        """Store a secret under a name; an existing one is replaced.

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
        """Return the names and times of the secrets, by name; never values."""
        table = SecretTable
        query = select(table.name, table.created_at, table.updated_at).where(table.workspace_id == workspace_id)
        return [SecretReport(*row) for row in await self._database.fetch_all(query.order_by(table.name))]

    async def get_secret(self, workspace_id: str, name: str) -> SecretReport:
        """Return the name and times of a secret; never its value.

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
        sealed = await self._database.fetch_value(query)
        if sealed is None:
            raise _not_found(name)
        return await asyncio.to_thread(self._seal.open, sealed, workspace_id=workspace_id, name=name)

    async def delete_secret(self, workspace_id: str, name: str) -> None:
        """Delete a secret.

        Raises:
          NotFound: there is no secret of that name.
        """
        _require_possible(name)
        if not await self._database.change_rows(delete(SecretTable).where(_this(workspace_id, name))):
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
