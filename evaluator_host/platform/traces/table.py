"""Stores scored traces of live traffic."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, case, func, insert, select
from sqlalchemy.orm import Mapped, mapped_column

from evaluator_host.platform.evaluators.table import LISTED, EvaluatorTable, named
from evaluator_host.platform.store.database import Repository, columns_of, row_values
from evaluator_host.platform.store.tables import Size, Table
from evaluator_host.types.errors import TooLarge
from evaluator_host.types.jobs import JobScore
from evaluator_host.types.warnings import all_doubtful

_PRUNED_AT_ONCE: Final = 1000
_PAGE_BYTES: Final = 16 << 20
_LARGE, _SCALE = 1e280, 1e20  # scores from `_LARGE` on are summed in units of `_SCALE`, so that no sum overflows


class TraceTable(Table):
    """Scored traces of live traffic. `result` and `trace` are JSON. `doubt` is why the score is doubtful."""

    __tablename__ = "traces"
    __table_args__ = (
        Index("ix_traces_evaluator_id_id", "evaluator_id", "id"),  # for pages of traces, newest first
        Index("ix_traces_evaluator_id_received_at", "evaluator_id", "received_at"),
        Index("ix_traces_evaluator_id_stored_bytes", "evaluator_id", "stored_bytes"),  # for sums of sizes
    )

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    evaluator_id: Mapped[str] = mapped_column(ForeignKey(EvaluatorTable.id, ondelete="CASCADE"))
    version: Mapped[int]
    trace_id: Mapped[str]
    received_at: Mapped[datetime]
    status: Mapped[str]
    score: Mapped[float | None]
    passed: Mapped[bool | None]
    error_code: Mapped[str | None]
    result: Mapped[str]
    trace: Mapped[str]
    doubt: Mapped[str | None]
    stored_bytes: Mapped[int] = mapped_column(server_default="0")

    @classmethod
    def sizes(cls) -> Iterable[Size]:
        """Yield the query that adds up the sizes of traces and results."""
        yield Size("traces", EvaluatorTable.workspace_id, select(func.sum(cls.stored_bytes)).join(EvaluatorTable))


@dataclass(frozen=True, slots=True)
class ScoredTrace:
    """A trace of live traffic and its `EvaluationResult`, both as JSON."""

    evaluator_id: str
    version: int
    trace_id: str
    received_at: datetime
    status: str
    score: float | None
    passed: bool | None
    error_code: str | None
    result: str
    trace: str
    doubt: str | None = None  # message of the warning that makes the score doubtful; None if the score is reliable


class Traces(Repository):
    """The scored traces in the database."""

    async def add_traces(self, traces: Sequence[ScoredTrace]) -> None:
        """Store scored traces. Skip traces of evaluators that were deleted meanwhile."""
        async with self._database.transaction() as connection:
            wanted = {trace.evaluator_id for trace in traces}
            known = set(await connection.scalars(select(EvaluatorTable.id).where(EvaluatorTable.id.in_(wanted))))
            values = [
                {**row_values(one), "stored_bytes": len(one.result.encode()) + len(one.trace.encode())}
                for one in traces
                if one.evaluator_id in known
            ]
            if values:
                await connection.execute(insert(TraceTable), values)

    async def list_traces(
        self, workspace_id: str, name: str, *, limit: int, before: int | None = None, status: str | None = None
    ) -> list[tuple[int, ScoredTrace]]:
        """Return a page of an evaluator's traces with their numbers, newest first: at most `limit`, and about 16 MB.

        `before` is the last number of the previous page; None for the first page.
        """
        table = TraceTable
        query: Any = (
            select(table.id, *columns_of(table, ScoredTrace))
            .join(EvaluatorTable, EvaluatorTable.id == table.evaluator_id)
            .where(named(workspace_id, name))
        )
        if before is not None:
            query = query.where(table.id < before)
        if status is not None:
            query = query.where(table.status == status)
        rows = await self._database.fetch_part(query.order_by(table.id.desc()).limit(limit), most_bytes=_PAGE_BYTES)
        return [(row[0], ScoredTrace(*row[1:])) for row in rows]

    async def get_traces(self, workspace_id: str, name: str, numbers: Sequence[int]) -> dict[int, str]:
        """Return `{number: OTLP/JSON}` for an evaluator's traces with these numbers.

        Raises:
          TooLarge: several traces have over 16 MB in total.
        """
        query: Any = select(TraceTable.id, TraceTable.trace).join(
            EvaluatorTable, EvaluatorTable.id == TraceTable.evaluator_id
        )
        query = query.where(named(workspace_id, name), TraceTable.id.in_(numbers)).order_by(TraceTable.id)
        rows = await self._database.fetch_part(query, most_bytes=_PAGE_BYTES)
        if sum(len(row[1]) for row in rows) >= _PAGE_BYTES and len({*numbers}) > 1:
            raise TooLarge(f"these traces have over {_PAGE_BYTES >> 20} MB in total; request fewer at a time")
        return {row[0]: row[1] for row in rows}

    async def live_statistics(self, workspace_id: str, name: str, *, since: datetime) -> JobScore:
        """Return an evaluator's row counts, mean score and pass rate for the live traces that arrived after `since`."""
        table = TraceTable
        is_large = func.abs(table.score) >= _LARGE
        query = select(
            func.count(),
            func.count(case((table.status == "scored", 1))),
            func.count(case((table.status == "failed", 1))),
            func.sum(case((is_large, 0.0), else_=table.score)),
            func.sum(case((is_large, table.score / _SCALE), else_=0.0)),
            func.count(table.score),
            func.count(table.passed),
            func.count(case((table.passed.is_(True), 1))),
            func.count(table.doubt),
            func.max(table.doubt),
            func.count(func.coalesce(table.score, case((table.passed.is_not(None), 0)))),
        )
        query = query.join(EvaluatorTable, EvaluatorTable.id == table.evaluator_id).where(
            named(workspace_id, name), table.received_at > since
        )
        found = await self._database.fetch_first(query)
        rows, scored, failed, small, large, scores, judged, passed, doubted, why, numbers = found
        return JobScore(
            evaluator=name,
            rows=rows,
            scored=scored,
            failed=failed,
            skipped=rows - scored - failed,
            mean=_mean(small, large, scores) if scores else None,
            pass_rate=passed / judged if judged else None,
            previous=None,
            change=None,
            mean_rows=scores,
            judged=judged,
            doubt=all_doubtful(numbers, why) if 0 < numbers <= doubted else None,
        )

    async def require_evaluator(self, workspace_id: str, name: str) -> None:
        """Check that there is an evaluator with this name.

        Raises:
          NotFound: there is no evaluator with this name.
        """
        query = select(EvaluatorTable.id).where(named(workspace_id, name))
        if await self._database.fetch_value(query) is None:
            names = select(EvaluatorTable.name).where(EvaluatorTable.workspace_id == workspace_id)
            raise await self._not_found("evaluator", name, names, otherwise=LISTED)

    async def delete_before(self, before: datetime) -> int:
        """Delete traces that were received before this time, and return their number."""
        old = TraceTable.received_at < before
        return await self._database.delete_rows(TraceTable.__table__, old, at_once=_PRUNED_AT_ONCE)


def _mean(small: float, large: float, count: int) -> float:
    """Return the mean of scores, from the sums of small and large ones. Its 12 digits are equal on all databases."""
    return float(f"{small / count + large / count * _SCALE:.12g}")
