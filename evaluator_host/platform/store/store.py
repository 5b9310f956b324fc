"""The store of one host: its database, and the records in it that all resources share."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import select

from evaluator_host.engine.config.settings import WorkspaceLimits
from evaluator_host.platform.store.audit import Audit
from evaluator_host.platform.store.database import Database
from evaluator_host.platform.store.database import address as address_of
from evaluator_host.platform.store.keys import Keys
from evaluator_host.platform.store.objects import Objects
from evaluator_host.platform.store.schema import is_current, migrate
from evaluator_host.platform.store.secrets import SecretBox, Secrets
from evaluator_host.platform.store.tables import IdentityTable
from evaluator_host.platform.store.usage import Quota, StorageUsage
from evaluator_host.platform.store.watch import DatabaseWatch, require_not_emptied
from evaluator_host.platform.store.workspace_limits import LimitsOfWorkspaces
from evaluator_host.platform.store.workspaces import PackageSetUses, Workspaces

_NO_QUOTA: Final = Quota()
_NO_LIMITS: Final[Mapping[str, WorkspaceLimits]] = {}


class Store:
    """The database of a host, and what its resources share.

    This includes workspaces, keys, the audit log, secrets, storage limits, and named objects.

    A resource creates its own repositories, which use `database`. Use the store in one event loop only. Every method of
    a repository raises `StoreUnavailable` if the database does not answer, or cannot write.
    """

    def __init__(
        self,
        database: Database,
        seal: SecretBox,
        quota: Quota = _NO_QUOTA,
        limits: Mapping[str, WorkspaceLimits] = _NO_LIMITS,
    ) -> None:
        self.database = database
        self.usage = StorageUsage(database, quota)
        self._kept = database.with_kept_connections()
        self.watch = DatabaseWatch(database, self._kept)
        self.workspaces = Workspaces(database)
        self.limits = LimitsOfWorkspaces(limits, self.workspaces)
        self.keys = Keys(self._kept)
        self.audit = Audit(database)
        self.package_sets = PackageSetUses(database)
        self.secrets = Secrets(database, seal)
        self.objects = Objects(database)

    async def close(self) -> None:
        """Close every connection."""
        await self.database.close()
        await self._kept.close()

    async def identity(self) -> str:
        """Return the random name of this database. Only copies of the database have the same name."""
        return str(await self.database.fetch_value(select(IdentityTable.id)))


@asynccontextmanager
async def open_store(
    database_url: str | None,
    data_dir: Path,
    *,
    secrets_key: str | None = None,
    quota: Quota = _NO_QUOTA,
    limits: Mapping[str, WorkspaceLimits] = _NO_LIMITS,
) -> AsyncIterator[Store]:
    """Migrate the database of a host, and yield its store.

    Args:
      database_url: `postgresql://…` or `sqlite:///file`; None for SQLite in the data directory.
      data_dir: Data directory of the host.
      secrets_key: Keys that encrypt secrets, newest first, in base64; None for the key file in the data directory.
      quota: Storage limits.
      limits: Other limits of single workspaces, by name or id.

    Raises:
      Misconfigured: the URL is not valid, or a newer version has used the database.
      StoreUnavailable: the database does not answer, or cannot write.
    """
    address = address_of(database_url, data_dir)
    await asyncio.to_thread(require_not_emptied, address, data_dir)
    await asyncio.to_thread(migrate, address)
    store = Store(Database(address), SecretBox(secrets_key, data_dir), quota, limits)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def open_read_only(database_url: str | None, data_dir: Path) -> AsyncIterator[Store | None]:
    """Yield a host's store without changing the database, or None if it lacks tables of this version.

    Raises:
      Misconfigured: the URL is not valid, or a newer version has used the database.
      StoreUnavailable: the database does not answer, or cannot write.
    """
    address = address_of(database_url, data_dir)
    # this is checked first, since connecting would create the file
    if address.file is not None and not address.file.exists():
        yield None
        return
    database = Database(address)
    try:
        await database.require_writable()
        async with database.reading() as connection:
            current = await connection.run_sync(is_current, address)
        yield Store(database, SecretBox(None, data_dir)) if current else None
    finally:
        await database.close()
