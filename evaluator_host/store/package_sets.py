"""Stores which workspace asked for which package set: workspaces share the files of a set, but see only their own."""

from collections.abc import Collection
from datetime import UTC, datetime

from sqlalchemy import delete, exists, select

from evaluator_host.store.database import Database, insert_unless_there
from evaluator_host.store.tables import PackageSetUseTable


class PackageSetUses:
    """The package sets that workspaces asked for. A set has two names: its key, and the digest of its packages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def asked(self, workspace_id: str, names: Collection[str]) -> None:
        """Record that a workspace asked for a set of these names; a second time changes nothing."""
        values = [{"workspace_id": workspace_id, "name": name, "asked_at": datetime.now(UTC)} for name in sorted(names)]
        async with self._database.transaction() as connection:
            await connection.execute(insert_unless_there(connection, PackageSetUseTable), values)

    async def names(self, workspace_id: str) -> frozenset[str]:
        """Return the names under which a workspace asked for sets."""
        query = select(PackageSetUseTable.name).where(PackageSetUseTable.workspace_id == workspace_id)
        async with self._database.reading() as connection:
            return frozenset(await connection.scalars(query))

    async def wanted_by_others(self, workspace_id: str, names: Collection[str]) -> bool:
        """Whether another workspace asked for a set under any of these names."""
        others = select(PackageSetUseTable.name).where(
            PackageSetUseTable.name.in_(names), PackageSetUseTable.workspace_id != workspace_id
        )
        async with self._database.reading() as connection:
            return bool(await connection.scalar(select(exists(others))))

    async def forget_set(self, workspace_id: str, names: Collection[str]) -> None:
        """Record that a workspace no longer needs a set."""
        mine = PackageSetUseTable.workspace_id == workspace_id
        async with self._database.transaction() as connection:
            await connection.execute(delete(PackageSetUseTable).where(mine, PackageSetUseTable.name.in_(names)))
