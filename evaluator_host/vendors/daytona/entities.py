"""Daytona's sandboxes on this host: records in the database, with labels, environment and packages.

A record is only data: each script runs in a warm sandbox of the host that gets the request. All hosts that share a
database therefore know the same sandboxes, and a restart loses none. A record is deleted a day after its last use, or
when its workspace has too many records. The environment, which may contain providers' keys, is encrypted in the same
way as secrets.

A process that runs a second script in a sandbox leases the sandbox's record, and marks it as leased. From then on, the
process reads the record at most every quarter of a second, not for each script. A request that changes or deletes a
leased record is answered only when every lease has ended, so that afterwards no process starts a script with the old
record.
"""

import asyncio
import base64
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import ColumnElement, delete, func, insert, select, update

from evaluator_host.platform.store.database import Database, Repository
from evaluator_host.platform.store.secrets import SecretBox
from evaluator_host.platform.store.tables import EntityTable
from evaluator_host.types.errors import Misconfigured, NotFound
from evaluator_host.types.evaluator import Json
from evaluator_host.types.json_values import decode_json, encode_json

LANGUAGE: Final = "code-toolbox-language"
_KIND: Final = "daytona sandbox"
_MOST: Final = 500  # maximum number of records in one workspace
_FORGOTTEN: Final = timedelta(days=1)
_NOTED: Final = timedelta(minutes=10)  # the stored time of a record's last use is updated at most this often
_LEASE_S: Final = 0.25
_LEASES_END_S: Final = _LEASE_S + 0.05  # seconds after which all earlier leases have ended
_LEASES: Final = 500  # maximum number of leases that a process remembers
_LEASED: Final = "leased"  # key in a record's content; its value says whether the record is leased
_NONE: Final = "Sandbox with ID or name {} not found"
# content with fewer characters, and without an environment, is decoded in the event loop instead of a thread
_SMALL: Final = 4096
_TEXT_CHARS: Final = 64 << 10  # maximum number of characters in the environment and labels together
_INTERVALS: Final = ("autoStopInterval", "autoArchiveInterval", "autoDeleteInterval", "autoPauseInterval")


@dataclass(slots=True)
class SandboxRecord:
    """The record of one Daytona sandbox.

    Attributes:
      workspace: Id of the workspace that owns the sandbox.
      env: Environment variables for scripts in the sandbox.
      labels: Labels that were set when the sandbox was created; `code-toolbox-language` is the language of its scripts.
      asked: Other fields of the request that created the sandbox, which responses repeat.
      packages: Exact package versions installed in the sandbox, by language (`python` or `javascript`).
    """

    workspace: str
    env: dict[str, str]
    labels: dict[str, str]
    asked: dict[str, Json]
    id: str = field(default_factory=lambda: str(uuid4()))
    packages: dict[str, tuple[str, ...]] = field(default_factory=dict)
    made_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat())

    def told(self, toolbox: str) -> dict[str, Json]:
        """Describe the sandbox in Daytona's format, with all fields that new clients need.

        `toolbox` is the URL to which clients send scripts.
        """
        return {
            "id": self.id,
            "organizationId": self.workspace,
            "name": str(self.asked.get("name") or self.id),
            "snapshot": self.asked.get("snapshot"),
            "user": "daytona",
            "env": self.env,
            "labels": self.labels,
            "public": False,
            "networkBlockAll": True,
            "kvm": False,
            "target": str(self.asked.get("target") or "eu"),
            "cpu": 1,
            "gpu": 0,
            "spot": False,
            "memory": 1,
            "disk": 1,
            "state": "started",
            "desiredState": "started",
            "recoverable": False,
            "backupState": "None",
            "volumes": [],
            **{name: self.asked[name] for name in _INTERVALS if self.asked.get(name) is not None},
            "createdAt": self.made_at,
            "updatedAt": self.made_at,
            "sandboxClass": "small",
            "toolboxProxyUrl": toolbox,
        }


class Records(Repository):
    """The records of sandboxes in the database, by workspace.

    Args:
      database: Database of the host, which other hosts may share.
      box: Encrypts environments.
    """

    def __init__(self, database: Database, box: SecretBox) -> None:
        super().__init__(database)
        self._box = box
        # known records by workspace and by id or name, each with the time at which its lease ends (0.0 before the first
        # lease)
        self._leases: dict[tuple[str, str], tuple[float, SandboxRecord]] = {}

    async def create(self, workspace: str, body: dict[str, Any]) -> SandboxRecord:
        """Create and return a sandbox. If the workspace has too many, delete the least recently used sandboxes.

        Raises:
          ValueError: `env` or `labels` are too large, or are not objects with only strings as values.
          Misconfigured: this host cannot encrypt the environment.
        """
        env, labels = _texts(body.get("env"), "env"), _texts(body.get("labels"), "labels")
        if sum(len(name) + len(text) for name, text in (*env.items(), *labels.items())) > _TEXT_CHARS:
            raise ValueError(f"env and labels have over {_TEXT_CHARS >> 10} KB in total; shorten them")
        asked = {name: body[name] for name in ("name", "snapshot", "target", *_INTERVALS) if _is_small(body.get(name))}
        record = SandboxRecord(workspace, env, labels, asked)
        content = await asyncio.to_thread(self._content, record)
        now = datetime.now(UTC)
        values = {"id": record.id, "workspace_id": workspace, "kind": _KIND, "namespace": "", "name": record.id}
        own, used = _of(workspace), EntityTable.updated_at
        async with self._database.transaction() as connection:
            await connection.execute(delete(EntityTable).where(own, used < now - _FORGOTTEN))
            held = await connection.scalar(select(func.count()).select_from(EntityTable).where(own)) or 0
            if held >= _MOST:
                oldest = select(EntityTable.id).where(own).order_by(used).limit(held - _MOST + 1)
                await connection.execute(delete(EntityTable).where(EntityTable.id.in_(oldest)))
            stored = insert(EntityTable).values(**values, content=content, created_at=now, updated_at=now)
            await connection.execute(stored)
        return record

    async def get(self, workspace: str, id_or_name: str) -> SandboxRecord:
        """Return a sandbox by id or name.

        Raises:
          NotFound: there is no such sandbox.
          Misconfigured: the sandbox's environment was encrypted with a key that this host does not have.
        """
        return await self._opened(workspace, await self._fetch(workspace, id_or_name))

    async def lease(self, workspace: str, id_or_name: str) -> SandboxRecord:
        """Lease a sandbox, given by id or name, for a script that starts now, and return its record.

        The record may be a quarter of a second old.

        Raises:
          NotFound, Misconfigured: see `get`.
        """
        key, now_s = (workspace, id_or_name), time.monotonic()
        held = self._leases.get(key)
        if held is not None and now_s < held[0]:
            return held[1]
        text = await self._fetch(workspace, id_or_name)
        record, ends_s = await self._opened(workspace, text), 0.0
        if held is not None:  # the first script does not take a lease, since most sandboxes run only one script
            if not decode_json(text.encode()).get(_LEASED) and not await self._change(record, _note_lease):
                raise NotFound(_NONE.format(id_or_name[:80]))
            ends_s = now_s + _LEASE_S
        if len(self._leases) >= _LEASES:
            self._leases.clear()
        self._leases[key] = ends_s, record
        return record

    async def _fetch(self, workspace: str, id_or_name: str) -> str:
        columns = (EntityTable.content, EntityTable.updated_at)
        row = await self._database.fetch_first(select(*columns).where(_named(workspace, id_or_name)))
        if row is None:
            named = [one.id for one in await self.find(workspace, {}) if one.asked.get("name") == id_or_name]
            if not named:
                raise NotFound(_NONE.format(id_or_name[:80]))
            return await self._fetch(workspace, named[0])
        now = datetime.now(UTC)
        if now - row.updated_at > _NOTED:
            used = update(EntityTable).where(_named(workspace, id_or_name)).values(updated_at=now)
            await self._database.change_rows(used)
        return str(row.content)

    async def _opened(self, workspace: str, text: str) -> SandboxRecord:
        if len(text) < _SMALL and '"env":null' in text:  # nothing has to be decrypted, so no thread is needed
            return self._record(workspace, text)
        return await asyncio.to_thread(self._record, workspace, text)

    async def find(self, workspace: str, labels: dict[str, Json]) -> list[SandboxRecord]:
        """Return the sandboxes that have all `labels`, newest last. Environments that cannot be decrypted are empty."""
        query = select(EntityTable.content).where(_of(workspace)).order_by(EntityTable.created_at)
        texts = await self._database.fetch_values(query)

        def fitting() -> list[SandboxRecord]:
            found = [self._record(workspace, text, strict=False) for text in texts]
            return [one for one in found if all(one.labels.get(name) == text for name, text in labels.items())]

        return await asyncio.to_thread(fitting)

    async def add_packages(self, record: SandboxRecord, language: str, pins: list[str]) -> None:
        """Add exact package versions to a sandbox, unless the sandbox has been deleted."""

        def add(content: dict[str, Any]) -> None:
            held = content["packages"].get(language, [])
            content["packages"][language] = list(dict.fromkeys([*held, *pins]))

        if (content := await self._change(record, add)) is not None:
            await self._end_leases(record, content)

    async def delete(self, record: SandboxRecord) -> None:
        """Delete a sandbox's record, and wait until all leases on it have ended."""
        gone = delete(EntityTable).where(_named(record.workspace, record.id)).returning(EntityTable.content)
        async with self._database.transaction() as connection:
            text = await connection.scalar(gone)
        if text is not None:
            await self._end_leases(record, decode_json(text.encode()))

    async def _change(self, record: SandboxRecord, change: Callable[[dict[str, Any]], None]) -> dict[str, Any] | None:
        """Apply `change` to the stored content of a sandbox.

        Return the new content, or None if the sandbox has been deleted.
        """
        this = _named(record.workspace, record.id)
        async with self._database.transaction() as connection:
            text = await connection.scalar(select(EntityTable.content).where(this).with_for_update())
            if text is None:
                return None
            content: dict[str, Any] = decode_json(text.encode())
            change(content)
            await connection.execute(update(EntityTable).where(this).values(content=encode_json(content).decode()))
        return content

    async def _end_leases(self, record: SandboxRecord, content: dict[str, Any]) -> None:
        """Wait until all leases that began before a change was stored have ended, in every process."""
        if content.get(_LEASED):
            await asyncio.sleep(_LEASES_END_S)
        self._leases.pop((record.workspace, record.id), None)

    def _content(self, record: SandboxRecord) -> str:
        """Convert a record to the JSON that is stored. Slow if an environment has to be encrypted."""
        sealed = None
        if record.env:
            text = encode_json(record.env).decode()
            sealed = base64.b64encode(self._box.seal(text, workspace_id=record.workspace, name=record.id)).decode()
        told = {"id": record.id, "labels": record.labels, "asked": record.asked, "made_at": record.made_at}
        return encode_json({**told, "packages": record.packages, "env": sealed}).decode()

    def _record(self, workspace: str, text: str, *, strict: bool = True) -> SandboxRecord:
        """Make a record from stored JSON.

        This is slow for long or encrypted JSON, so call it in a thread for such JSON.

        If an environment cannot be decrypted, raise an error (with `strict`), or leave it empty.
        """
        content = decode_json(text.encode())
        content.pop(_LEASED, None)
        sealed, env = content.pop("env"), {}
        try:
            if sealed is not None:
                opened = self._box.open(base64.b64decode(sealed), workspace_id=workspace, name=content["id"])
                env = decode_json(opened.encode())
        except Misconfigured:
            if strict:
                raise
        packages = {language: tuple(pins) for language, pins in content.pop("packages").items()}
        return SandboxRecord(workspace, env, packages=packages, **content)


def _of(workspace: str) -> ColumnElement[bool]:
    return (EntityTable.workspace_id == workspace) & (EntityTable.kind == _KIND)


def _named(workspace: str, record_id: str) -> ColumnElement[bool]:
    return _of(workspace) & (EntityTable.name == record_id)


def _note_lease(content: dict[str, Any]) -> None:
    content[_LEASED] = True


def _texts(given: Any, name: str) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(text, str) and "\0" not in text for text in given.values()):
        raise ValueError(f"{name} must be an object whose values are strings")
    return given


def _is_small(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) <= 255)
