"""Measures the storage of each workspace. Refuses uploads if a quota is reached, or if too little disk is free."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Final

from sqlalchemy import literal, select, union_all

from evaluator_host.engine.system.disk import lacks_disk
from evaluator_host.platform.store.database import Database
from evaluator_host.platform.store.schema import load_tables
from evaluator_host.platform.store.tables import Size, Table, WorkspaceTable
from evaluator_host.types.errors import OverQuota
from evaluator_host.types.stored import UsageReport

_KINDS: Final = [one.name for one in fields(UsageReport) if one.name.endswith("_bytes") and one.default == 0][1:]
_MEASURED_S: Final = 5.0  # seconds for which a measurement is reused; a workspace may exceed its quota in this time
_REFUSED_S: Final = 0.5  # seconds until a workspace over its quota is measured again, since it may have deleted data
# bytes of an upload after which the disk is checked again; between two checks, even 32 uploads together write less than
# the free space that EVALUATOR_HOST_FREE_DISK_MB keeps by default
_CHECKED_BYTES: Final = 4 << 20
_MB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Quota:
    """The operator's limits on storage."""

    workspace_bytes: int = 0  # maximum number of bytes that one workspace may store; 0 for no limit
    reserve_bytes: int = 0  # bytes that must stay free on the disk of the data directory
    data_dir: Path = Path()  # data directory of the host
    own_bytes: Mapping[str, int] = field(default_factory=dict)  # other limits of single workspaces, keyed by name or id

    def bytes_of(self, workspace_id: str, name: str) -> int:
        """Return the maximum number of bytes that a workspace may store; 0 for no limit."""
        return self.own_bytes.get(name, self.own_bytes.get(workspace_id, self.workspace_bytes))

    def require_disk(self, more_bytes: int = 0) -> None:
        """Check that the disk of the data directory has room for more bytes and for its reserve. Blocking.

        Raises:
          MachineExhausted: the disk has too little room.
        """
        if (error := lacks_disk(self.data_dir, self.reserve_bytes, more_bytes)) is not None:
            raise error


@dataclass(frozen=True, slots=True)
class _Measured:
    at: float  # monotonic time
    held: int  # bytes that the workspace stored at that time, plus the bytes that it was allowed to store since then
    most: int  # maximum number of bytes that the workspace may store; 0 for no limit

    def fits(self, more_bytes: int) -> bool:
        return not self.most or self.held + more_bytes <= self.most


class StorageUsage:
    """The storage of all workspaces: rows of data sets, files, evaluators, jobs with results, traces, labels.

    Package sets are not counted, since workspaces share package sets and the host removes unused sets.
    """

    def __init__(self, database: Database, quota: Quota) -> None:
        self._database = database
        self._quota = quota
        self._measuring = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._measured: dict[str, _Measured] = {}  # the last measurement of each workspace, keyed by workspace id
        # bytes that are being stored but are not in the database yet, keyed by workspace id
        self._arriving = Counter[str]()

    @property
    def reserve_bytes(self) -> int:
        """Bytes that must stay free on the disk of the data directory."""
        return self._quota.reserve_bytes

    async def get_usage(self, workspace_id: str) -> UsageReport:
        """Return the storage of one workspace. All numbers are 0 if the workspace has stored nothing."""
        (report,) = await self.list_usage(workspace_id)
        return report

    async def list_usage(self, workspace_id: str | None = None) -> list[UsageReport]:
        """Return the storage of every workspace that stores anything, or of one workspace, the largest first."""
        parts: dict[str, Counter[str]] = defaultdict(Counter)
        if workspace_id is not None:
            parts[workspace_id] = Counter()
        sums = [
            (query if workspace_id is None else query.where(owner == workspace_id))
            .add_columns(owner, literal(f"{kind}_bytes"))
            .group_by(owner)
            for kind, owner, query in self._sizes()
        ]
        async with self._database.reading() as connection:
            for size, found, kind in await connection.execute(union_all(*sums)):
                parts[found][kind] += int(size or 0)
            named = select(WorkspaceTable.id, WorkspaceTable.name)
            if workspace_id is not None:
                named = named.where(WorkspaceTable.id == workspace_id)
            rows = await connection.execute(named)
            names: dict[str, str] = {row[0]: row[1] for row in rows}
        reports = [
            UsageReport(
                names.get(one, one),
                self._quota.bytes_of(one, names.get(one, one)),
                total_bytes=sizes.total(),
                **{kind: sizes[kind] for kind in _KINDS if kind in sizes},
            )
            for one, sizes in parts.items()
        ]
        return sorted(reports, key=lambda report: (-report.total_bytes, report.workspace))

    async def require_room(self, workspace_id: str, more_bytes: int = 0) -> None:
        """Check that a workspace may store `more_bytes` more, and count these bytes as stored.

        Raises:
          OverQuota: the workspace has reached its quota.
          MachineExhausted: the data directory has too little free disk.
        """
        await self.check_room(workspace_id, more_bytes)
        self._count_stored(workspace_id, more_bytes)

    async def check_room(self, workspace_id: str, more_bytes: int) -> None:
        """Check that a workspace may store `more_bytes` more, as `require_room` does, without counting them.

        Raises:
          OverQuota: the workspace has reached its quota.
          MachineExhausted: the data directory has too little free disk.
        """
        await asyncio.to_thread(self._quota.require_disk, more_bytes)
        last = await self._measure(workspace_id, more_bytes)
        if last is not None and not last.fits(self._arriving[workspace_id] + more_bytes):
            held = last.held + self._arriving[workspace_id]
            more = f", and {more_bytes / _MB:.1f} MB more do not fit" if more_bytes else ""
            raise OverQuota(
                f"the workspace stores {held / _MB:.1f} MB of at most {last.most / _MB:g} MB{more}; delete jobs, "
                "data sets or files that nobody needs (`evaluator-host usage` shows how much each kind takes), or ask "
                "the operator to raise the limit (EVALUATOR_HOST_WORKSPACE_MB or EVALUATOR_HOST_WORKSPACE_LIMITS)"
            )

    async def room_bytes(self, workspace_id: str) -> int | None:
        """Return how many more bytes a workspace may store; None if it has no quota."""
        last = await self._measure(workspace_id, 0)
        if last is None or not last.most:
            return None
        return max(0, last.most - last.held - self._arriving[workspace_id])

    async def _measure(self, workspace_id: str, more_bytes: int) -> _Measured | None:
        """Return the last measurement of a workspace, or a new one if the last is too old. None if there are no quotas.

        If the last measurement leaves no room for `more_bytes`, it is replaced sooner.
        """
        if not self._quota.workspace_bytes and not self._quota.own_bytes:
            return None
        # only one caller measures at a time, so that one long query serves all callers that wait
        async with self._measuring[workspace_id]:
            last = self._measured.get(workspace_id)
            fits = last is not None and last.fits(self._arriving[workspace_id] + more_bytes)
            if last is None or time.monotonic() - last.at > (_MEASURED_S if fits else _REFUSED_S):
                at, report = time.monotonic(), await self.get_usage(workspace_id)
                last = self._measured[workspace_id] = _Measured(at, report.total_bytes, report.quota_bytes)
        return last

    def _count_stored(self, workspace_id: str, more_bytes: int) -> None:
        if (last := self._measured.get(workspace_id)) is not None:
            self._measured[workspace_id] = replace(last, held=last.held + more_bytes)

    @contextmanager
    def storing(self, workspace_id: str) -> Iterator["Storing"]:
        """Count what a workspace stores during the block, before it is in the database.

        Measurements of the database do not include these bytes until the block has ended.
        """
        storing = Storing(self, workspace_id, self._arriving)
        try:
            yield storing
            self._count_stored(workspace_id, storing.size_bytes)
        finally:
            self._arriving[workspace_id] -= storing.size_bytes

    def _sizes(self) -> list[Size]:
        load_tables()
        return [size for mapper in Table.registry.mappers for size in mapper.class_.sizes()]


class Storing:
    """Bytes that a workspace is storing, in a block of `StorageUsage.storing`.

    Attributes:
      size_bytes: Number of bytes that currently count as stored.
    """

    def __init__(self, usage: StorageUsage, workspace_id: str, arriving: Counter[str]) -> None:
        self.workspace_id = workspace_id
        self.size_bytes = 0
        self._usage = usage
        self._arriving = arriving

    async def resize(self, size_bytes: int) -> None:
        """Count `size_bytes` from now on, instead of the bytes that counted before.

        Raises:
          OverQuota: the workspace reaches its quota.
          MachineExhausted: the data directory has too little free disk.
        """
        more_bytes = size_bytes - self.size_bytes
        if more_bytes > 0:
            await self._usage.check_room(self.workspace_id, more_bytes)
        self.size_bytes += more_bytes
        self._arriving[self.workspace_id] += more_bytes

    async def metered(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield an upload's chunks, and count them. At first, and after every 4 MB, check that there is room.

        Raises:
          OverQuota: the workspace reaches its quota.
          MachineExhausted: the data directory has too little free disk.
        """
        unchecked = 0
        await self._usage.require_room(self.workspace_id)
        async for chunk in chunks:
            unchecked += len(chunk)
            if unchecked >= _CHECKED_BYTES:
                await self.resize(self.size_bytes + unchecked)
                unchecked = 0
            yield chunk
        await self.resize(self.size_bytes + unchecked)

    async def room_bytes(self) -> int | None:
        """Return the largest size that fits into the quota, for `resize`; None if the workspace has no quota."""
        room = await self._usage.room_bytes(self.workspace_id)
        return None if room is None else room + self.size_bytes
