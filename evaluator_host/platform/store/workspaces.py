"""Stores workspaces, which own every other resource, and the package sets that each workspace requested."""

import re
import secrets
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import delete, exists, select
from sqlalchemy.ext.asyncio import AsyncConnection

from evaluator_host.platform.store.database import Repository, columns_of, insert_unless_there
from evaluator_host.platform.store.tables import PackageSetUseTable, WorkspaceTable
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.names import what_was_meant

_NAME_CHARS: Final = 63
_COMPARED: Final = 1000  # maximum number of names to compare with a name that does not exist
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class Workspace:
    """One tenant of a host. Other resources refer to its `id`, which never changes."""

    id: str
    name: str
    created_at: datetime


class Workspaces(Repository):
    """The workspaces in the database. `default` always exists."""

    async def ensure_workspace(self, name: str) -> Workspace:
        """Return the workspace with this name. Create it if there is none.

        Raises:
          InvalidRequest: the name is not valid.
        """
        async with self._database.transaction() as connection:
            return await ensure_workspace(connection, name)

    async def name_of(self, workspace_id: str) -> str | None:
        query = select(WorkspaceTable.name).where(WorkspaceTable.id == workspace_id)
        found = await self._database.fetch_value(query)
        return None if found is None else str(found)

    async def advice_on_unknown(self, given: Collection[str]) -> dict[str, str]:
        """Return `{string: advice}` for the given strings that are neither the name nor the id of a workspace."""
        query = select(WorkspaceTable.id, WorkspaceTable.name)
        known = WorkspaceTable.id.in_(given) | WorkspaceTable.name.in_(given)
        there = {word for row in await self._database.fetch_all(query.where(known)) for word in row}
        unknown = sorted(set(given) - there)
        names = [str(row.name) for row in await self._database.fetch_all(query.limit(_COMPARED))] if unknown else []
        return {
            one: what_was_meant(one, names, otherwise=f"`evaluator-host keys create NAME --workspace {one}` creates it")
            for one in unknown
        }


async def ensure_workspace(connection: AsyncConnection, name: str) -> Workspace:
    """Return the workspace with this name, or create it, in the transaction of `connection`."""
    require_name(name, "workspace")
    query = select(*columns_of(WorkspaceTable, Workspace)).where(WorkspaceTable.name == name)
    row = (await connection.execute(query)).first()
    if row is None:
        made = {"id": f"ws-{secrets.token_hex(8)}", "name": name, "created_at": datetime.now(UTC)}
        await connection.execute(insert_unless_there(connection, WorkspaceTable), made)
        # read it again, since another process may have created the workspace
        row = (await connection.execute(query)).one()
    return Workspace(*row)


def require_name(name: str, what: str) -> None:
    """Check a name that a caller has chosen. `what` is the kind of object in the message, such as `workspace`.

    Raises:
      InvalidRequest: the name is not valid; the message gives the rule.
    """
    if NAME.fullmatch(name) is None:
        article = "an" if what[0] in "aeiou" else "a"
        near = _near_name(name)
        raise InvalidRequest(
            f"{name[:80]!r} is not a name for {article} {what}: use at most 63 letters, digits, dots, dashes and "
            f"underscores, and begin with a letter or digit{f', such as {near}' if near else ''}"
        )


def _near_name(name: str) -> str:
    """Return a similar valid name, such as `my-data-v1` for `my data (v1)`; `""` if no character is valid."""
    plain = unicodedata.normalize("NFKD", name[:200].replace("ß", "ss")).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", plain).lstrip("._-")[:_NAME_CHARS].rstrip("-")


class PackageSetUses(Repository):
    """The package sets that each workspace requested. Workspaces share the files of a set, but see only their own sets.

    In these methods, `names` are the key of a package set and the digest of its packages.
    """

    async def asked(self, workspace_id: str, names: Collection[str]) -> None:
        """Record that a workspace requested the package set with these names. Repeating this changes nothing."""
        values = [{"workspace_id": workspace_id, "name": name, "asked_at": datetime.now(UTC)} for name in sorted(names)]
        async with self._database.transaction() as connection:
            await connection.execute(insert_unless_there(connection, PackageSetUseTable), values)

    async def names(self, workspace_id: str) -> frozenset[str]:
        """Return the names (keys and digests) of all package sets that a workspace requested."""
        query = select(PackageSetUseTable.name).where(PackageSetUseTable.workspace_id == workspace_id)
        return frozenset(await self._database.fetch_values(query))

    async def wanted_by_others(self, workspace_id: str, names: Collection[str]) -> bool:
        """Whether another workspace requested a package set under any of these names."""
        others = select(PackageSetUseTable.name).where(
            PackageSetUseTable.name.in_(names), PackageSetUseTable.workspace_id != workspace_id
        )
        return bool(await self._database.fetch_value(select(exists(others))))

    async def forget_set(self, workspace_id: str, names: Collection[str]) -> None:
        """Record that a workspace no longer needs the package set with these names."""
        mine = PackageSetUseTable.workspace_id == workspace_id
        await self._database.change_rows(delete(PackageSetUseTable).where(mine, PackageSetUseTable.name.in_(names)))
