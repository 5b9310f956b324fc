"""Stores workspaces' use of registered models by day, and recorded answers of models."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import accumulate
from typing import Final

from sqlalchemy import BigInteger, Index, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import Mapped, mapped_column

from evaluator_host.platform.store.database import Database, Repository, columns_of, insert_unless_there
from evaluator_host.platform.store.tables import Table
from evaluator_host.types.errors import InUse, NotFound
from evaluator_host.types.models import DayUsage

PART_BYTES: Final = 4 << 20  # size of a part of recorded answers; the answer that reaches it is the last in the part
_PAGE: Final = 200
# sizes are summed again whenever the answers have grown by a sixteenth of the limit
_MEASURED_EACH: Final = 16
_COUNTS: Final = ("requests", "replayed", "input_tokens", "output_tokens", "cost", "unpriced")


class ModelUsageTable(Table):
    """Use of registered models by workspace and day (UTC, `2026-01-31`)."""

    __tablename__ = "model_usage"

    workspace_id: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    requests: Mapped[int] = mapped_column(BigInteger)
    replayed: Mapped[int] = mapped_column(BigInteger)
    input_tokens: Mapped[int] = mapped_column(BigInteger)
    output_tokens: Mapped[int] = mapped_column(BigInteger)
    cost: Mapped[float]
    unpriced: Mapped[int] = mapped_column(BigInteger, server_default="0")


class ModelDayTable(Table):
    """How many requests hosts have taken from a workspace's budget for a day (UTC). Some may still be unused."""

    __tablename__ = "model_days"

    workspace_id: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[str] = mapped_column(primary_key=True)
    requests: Mapped[int] = mapped_column(BigInteger)


class ModelHostTable(Table):
    """Hosts (`api.example.com:443`) on which the user of this machine lets evaluators call models."""

    __tablename__ = "model_hosts"

    host: Mapped[str] = mapped_column(primary_key=True)


class ModelAnswerTable(Table):
    """Recorded answers of models. `digest` is the request's digest; `content` is JSON with request and answer."""

    __tablename__ = "model_answers"
    __table_args__ = (Index("ix_model_answers_workspace_id_created_at", "workspace_id", "created_at"),)

    workspace_id: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str]
    content: Mapped[str]
    stored_bytes: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime]


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """A model's recorded answer. `digest` is the request's digest; `content` is JSON with request and answer."""

    digest: str
    model: str
    content: str
    created_at: datetime


class ModelTable(Repository):
    """Stores model usage, recorded answers, and the hosts that were allowed with `allow_host`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        # for each workspace, bytes of answers that were added since sizes were last summed
        self._unmeasured: dict[str, int] = {}

    async def list_hosts(self) -> list[str]:
        """Return the hosts that were allowed with `allow_host`, sorted by name."""
        rows = await self._database.fetch_all(select(ModelHostTable.host).order_by(ModelHostTable.host))
        return [str(row[0]) for row in rows]

    async def allow_host(self, host: str, *, most: int) -> None:
        """Allow a host.

        Raises:
          InUse: `most` hosts are already allowed.
        """
        async with self._database.transaction() as connection:
            if int(await connection.scalar(select(func.count()).select_from(ModelHostTable)) or 0) >= most:
                raise InUse(f"{most} hosts are already allowed; remove one first")
            await connection.execute(insert_unless_there(connection, ModelHostTable), {"host": host})

    async def forbid_host(self, host: str) -> None:
        """Forbid a host that was allowed with `allow_host`.

        Raises:
          NotFound: the host was not allowed with `allow_host`.
        """
        if not await self._database.change_rows(delete(ModelHostTable).where(ModelHostTable.host == host)):
            raise NotFound(
                f"{host[:200]!r} was not allowed here; `evaluator-host models hosts` lists the allowed hosts"
            )

    async def add_usage(self, workspace_id: str, day: str, used: Mapping[str, Mapping[str, float]]) -> None:
        """Add to the stored counts of a workspace's use of models on one day.

        Args:
          workspace_id: The workspace that used the models.
          day: Day in UTC, `2026-01-31`.
          used: Counts by model: `{"judge-small": {"requests": 1, "replayed": 0, "input_tokens", "output_tokens",
            "cost", "unpriced"}}`.
        """
        table = ModelUsageTable
        async with self._database.transaction() as connection:
            for model, counts in used.items():
                key = {"workspace_id": workspace_id, "day": day, "model": model}
                await connection.execute(insert_unless_there(connection, table), {**key, **dict.fromkeys(_COUNTS, 0)})
                more = {name: getattr(table, name) + counts[name] for name in _COUNTS}
                this = (table.workspace_id == workspace_id) & (table.day == day) & (table.model == model)
                await connection.execute(update(table).where(this).values(**more))

    async def list_usage(self, workspace_id: str, *, since: str = "") -> list[DayUsage]:
        """Return a workspace's use of models since a day (`2026-01-31`), the newest day first."""
        table = ModelUsageTable
        query = select(*columns_of(table, DayUsage)).where(table.workspace_id == workspace_id, table.day >= since)
        return [DayUsage(*row) for row in await self._database.fetch_all(query.order_by(table.day.desc(), table.model))]

    async def list_usage_of_all(self, *, since: str) -> list[tuple[str, DayUsage]]:
        """Return the use of models by every workspace since a day, with the workspace's id; newest day first."""
        table = ModelUsageTable
        query = select(table.workspace_id, *columns_of(table, DayUsage)).where(table.day >= since)
        query = query.order_by(table.day.desc(), table.workspace_id, table.model)
        return [(row[0], DayUsage(*row[1:])) for row in await self._database.fetch_all(query)]

    async def take_requests(self, workspace_id: str, day: str, *, most: int, wanted: Callable[[int], int]) -> int:
        """Take requests from a workspace's budget of one day, and return how many.

        Args:
          workspace_id: The workspace that has the budget.
          day: Day in UTC, `2026-01-31`.
          most: The budget of the whole day, on all hosts.
          wanted: Function that gets the number of requests that are left, and returns how many to take.
        """
        table = ModelDayTable
        this = (table.workspace_id == workspace_id) & (table.day == day)
        # PostgreSQL locks the row; SQLite never has more than one writer at a time
        known = select(table.requests).where(this).with_for_update()
        async with self._database.transaction() as connection:
            taken = await connection.scalar(known)
            if taken is None:
                await self._begin_day(connection, workspace_id, day)
                taken = int(await connection.scalar(known) or 0)
            if more := wanted(max(0, most - taken)):
                await connection.execute(update(table).where(this).values(requests=taken + more))
        return more

    async def _begin_day(self, connection: AsyncConnection, workspace_id: str, day: str) -> None:
        """Start counting a day's requests against the budget. Requests that were made before on this day count, too."""
        usage = ModelUsageTable
        mine = (usage.workspace_id == workspace_id) & (usage.day == day)
        made = int(await connection.scalar(select(func.sum(usage.requests)).where(mine)) or 0)
        first = {"workspace_id": workspace_id, "day": day, "requests": made}
        await connection.execute(insert_unless_there(connection, ModelDayTable), first)

    async def give_back_requests(self, workspace_id: str, day: str, unused: int) -> None:
        """Give back requests that `take_requests` took but nobody made."""
        table = ModelDayTable
        this = (table.workspace_id == workspace_id) & (table.day == day)
        await self._database.change_rows(update(table).where(this).values(requests=table.requests - unused))

    async def find_answer(self, workspace_id: str, digest: str, *, model: str | None = None) -> str | None:
        """Return the content of the recorded answer to the request with this digest, or None.

        If `model` is given, only an answer that was recorded under this name counts.
        """
        table = ModelAnswerTable
        query = select(table.content).where(table.workspace_id == workspace_id, table.digest == digest)
        if model is not None:
            query = query.where(table.model == model)
        found = await self._database.fetch_value(query)
        return None if found is None else str(found)

    async def add_answers(self, workspace_id: str, answers: Sequence[RecordedAnswer], *, most_bytes: int) -> None:
        """Store or replace recorded answers. If a workspace exceeds `most_bytes`, delete its oldest answers."""
        table = ModelAnswerTable
        known = self._unmeasured.get(workspace_id)
        grown = (known or 0) + sum(len(one.content) for one in answers)
        measures = known is None or grown * _MEASURED_EACH > most_bytes
        async with self._database.transaction() as connection:
            for one in answers:
                this = (table.workspace_id == workspace_id) & (table.digest == one.digest)
                await connection.execute(delete(table).where(this))
                row = {**asdict(one), "workspace_id": workspace_id, "stored_bytes": len(one.content.encode())}
                await connection.execute(insert(table).values(**row))
            mine = table.workspace_id == workspace_id
            self._unmeasured[workspace_id] = 0 if measures else grown
            if not measures:
                return
            held = int(await connection.scalar(select(func.sum(table.stored_bytes)).where(mine)) or 0)
            while held > most_bytes:
                oldest = select(table.digest, table.stored_bytes).where(mine).order_by(table.created_at).limit(_PAGE)
                found = (await connection.execute(oldest)).all()
                gone = []
                for digest, size in found:
                    if held <= most_bytes:
                        break
                    gone.append(digest)
                    held -= size
                if not gone:
                    break
                await connection.execute(delete(table).where(mine, table.digest.in_(gone)))

    async def answers(self, workspace_id: str) -> AsyncIterator[RecordedAnswer]:
        """Yield every recorded answer of a workspace in the order of digests; read a few megabytes at a time."""
        table, after = ModelAnswerTable, ""
        mine = table.workspace_id == workspace_id
        sizes = select(table.digest, table.stored_bytes).where(mine).order_by(table.digest).limit(_PAGE)
        query = select(*columns_of(table, RecordedAnswer)).where(mine).order_by(table.digest)
        while measured := await self._database.fetch_all(sizes.where(table.digest > after)):
            before = accumulate((size for _, size in measured), initial=0)
            *_, last = (one.digest for one, held in zip(measured, before, strict=False) if held < PART_BYTES)
            part = query.where(table.digest > after, table.digest <= last).limit(len(measured))
            for row in await self._database.fetch_all(part):
                yield RecordedAnswer(*row)
            after = last

    async def count_answers(self, workspace_id: str) -> tuple[int, int]:
        """Return the number of a workspace's recorded answers, and their total size in bytes."""
        table = ModelAnswerTable
        query = select(func.count(), func.sum(table.stored_bytes)).where(table.workspace_id == workspace_id)
        row = await self._database.fetch_first(query)
        return int(row[0]), int(row[1] or 0)

    async def delete_answers(self, workspace_id: str, *, model: str | None = None) -> int:
        """Delete the recorded answers of a workspace, or only of one model; return how many there were."""
        chosen = ModelAnswerTable.workspace_id == workspace_id
        if model is not None:
            chosen &= ModelAnswerTable.model == model
        return await self._database.delete_rows(ModelAnswerTable.__table__, chosen, at_once=_PAGE)
