"""Reads stored job results and model answers: in pages, all of them, or only the values for statistics."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, replace
from enum import StrEnum
from itertools import groupby
from typing import Any, Final

import orjson
from sqlalchemy import ColumnElement, case, desc, false, func, literal, select, true, tuple_, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from evaluator_host.platform.jobs.queue import StoredResult
from evaluator_host.platform.jobs.results.aggregate import as_float
from evaluator_host.platform.jobs.schema import JobEvaluatorTable, ResultTable, SharedPartTable, TogetherTable
from evaluator_host.platform.store.database import DatabaseKind, Repository, columns_of
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.outcome import Status

_AT_ONCE: Final = 500
_BETWEEN_BYTES: Final = 32 << 10  # number of bytes of values to read before other tasks may run
_OF_ROW_BYTES: Final = 1 << 10  # bytes that are counted for a row, besides its metrics
_LONG: Final = 16 << 10  # number of characters above which a text is read alone
PAGE_BYTES: Final = 16 << 20


class Sort(StrEnum):
    """The order of results: by a value, then by row.

    Results without the value are last. `STATUS` puts failed results first.
    """

    ROW = "row"
    SCORE = "score"
    SCORE_DOWN = "-score"
    RUN_MS = "run_ms"
    RUN_MS_DOWN = "-run_ms"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter for results; a field that is None matches everything.

    `position` is the evaluator's position in the job, `rows` contains row numbers.
    """

    position: int | None = None
    status: str | None = None
    passed: bool | None = None
    error_code: str | None = None
    min_score: float | None = None
    max_score: float | None = None
    rows: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class ResultValues:
    """The values of a result from which statistics are computed. `metrics` is JSON: `{name: number}`."""

    row: int
    status: str
    passed: bool | None
    score: float | None
    error_code: str | None
    run_ms: float
    metrics: str

    def score_with(self, *, zero: bool) -> float | None:
        """Return the score. With `zero`, the score of a failed row is 0."""
        return 0.0 if zero and self.status == Status.FAILED else self.score

    def metrics_with(self, *, zero: bool) -> dict[str, float]:
        """Return the metrics. The score has the name `score`; a metric has this name only in a row without a score.

        With `zero`, a row that failed has a score of 0.
        """
        if zero and self.status == Status.FAILED:
            return {"score": 0.0}
        own = {} if self.score is None else {"score": self.score}
        found: dict[str, Any] = own | orjson.loads(self.metrics) | own
        return {name: as_float(value) for name, value in found.items()}

    def value_of(self, metric: str, *, zero: bool) -> float | None:
        """Return the metric that has this name in `metrics_with`; None if the row does not have it."""
        return self.metrics_with(zero=zero).get(metric)


class Results(Repository):
    """The results of all jobs in the database."""

    async def page(
        self,
        job_id: str,
        which: Filter,
        *,
        sort: Sort = Sort.ROW,
        cursor: str | None = None,
        limit: int = 100,
        brief: bool = False,
        most_bytes: int = PAGE_BYTES,
    ) -> tuple[list[StoredResult], str | None]:
        """Return a page of results, and the cursor of the next page, or None.

        With `brief`, only the beginning of a result's JSON is read if it has over 16 KB. A page has at most
        `most_bytes`, or only one result.

        Raises:
          InvalidRequest: the cursor comes from another query.
        """
        order = _Order(sort)
        last = None if cursor is None else order.place(cursor)
        async with self._database.reading() as connection:
            look = await self._look(connection, job_id, which, order, brief=brief)
            rows = await look.page(limit + 1, last)
        found: list[StoredResult] = []
        held = 0
        async with aclosing(self._whole(job_id, rows[:limit])) as results:
            async for one in results:
                held += len(one.result)
                if found and held > most_bytes:
                    return found, order.cursor(found[-1])
                found.append(one)
        return found, order.cursor(found[-1]) if len(rows) > limit and found else None

    async def _look(
        self, connection: AsyncConnection, job_id: str, which: Filter, order: "_Order", *, brief: bool = False
    ) -> "_Look":
        evaluators = select(JobEvaluatorTable.position).where(JobEvaluatorTable.job_id == job_id)
        every = [which.position] if which.position is not None else (await connection.scalars(evaluators)).all()
        bounded = self._database.address.engine is DatabaseKind.POSTGRESQL
        return _Look(connection, job_id, which, tuple(every), order, columns=_light(brief=brief), bounded=bounded)

    async def _whole(self, job_id: str, rows: Sequence[Any]) -> AsyncGenerator[StoredResult, None]:
        """Yield results from database rows that lack long texts. Results with long texts are read again, one by one."""
        parts = await self._parts(job_id, {one.shared for one in rows})
        for row in rows:
            one = row
            if None in (one.metrics, one.result):
                one = await self._database.fetch_first(_of_key(job_id, row))  # None if the result was deleted meanwhile
            if one is not None and one.shared in parts:
                yield _joined(one, parts[one.shared])

    def after(self, result: StoredResult, sort: Sort) -> str:
        """Return the cursor for the page that starts after this result."""
        return _Order(sort).cursor(result)

    def after_row(self, row: int) -> str:
        """Return the cursor for the page that starts after the last result of this row, when sorted by row."""
        return _Order(Sort.ROW).cursor(_Place(row, sys.maxsize))

    async def count(self, job_id: str, which: Filter) -> int:
        """Return the number of results that match the filter.

        If the filter has only a status, the number comes from the job's counters.
        """
        if which == Filter(which.position, which.status):
            statuses = [status for status in Status if which.status in (None, status)]
            tallied = sum((getattr(JobEvaluatorTable, status.value) for status in statuses), start=literal(0))
            query = select(func.coalesce(func.sum(tallied), 0)).where(JobEvaluatorTable.job_id == job_id)
            if which.position is not None:
                query = query.where(JobEvaluatorTable.position == which.position)
        else:
            query = select(func.count()).select_from(_selected(job_id, which).subquery())
        return int(await self._database.fetch_value(query))

    async def of_row(self, job_id: str, row: int) -> list[StoredResult]:
        """Return a row's results, in the order of the evaluators. After the first 16 MB, long results are truncated."""
        async with self._database.reading() as connection:
            look = await self._look(connection, job_id, Filter(), _Order(Sort.ROW), brief=True)
            rows = await look.of_row(row)
        found: list[StoredResult] = []
        held = 0
        for brief in rows:
            cut = held > PAGE_BYTES
            stored = brief if cut else await self._database.fetch_first(_of_key(job_id, brief))
            async for one in self._whole(job_id, [] if stored is None else [stored]):
                held += len(one.result)
                found.append(one)
        return found

    async def rows(self, job_id: str, which: Filter) -> Sequence[int]:
        """Return the numbers of the rows with a result that matches the filter, which names an evaluator, in order."""
        rows = _selected(job_id, which).with_only_columns(ResultTable.row)
        return await self._database.fetch_numbers(rows, ResultTable.row)

    async def every(self, job_id: str, which: Filter) -> AsyncGenerator[StoredResult, None]:
        """Yield all results of a job that match the filter, sorted by row. Read a few MB at a time."""
        cursor: str | None = None
        while True:
            page, cursor = await self.page(job_id, which, cursor=cursor, limit=_AT_ONCE)
            since = 0
            for result in page:
                if since >= _BETWEEN_BYTES:
                    await asyncio.sleep(0)  # let other tasks run, because the reader works on the event loop
                    since = 0
                since += len(result.result)
                yield result
            if cursor is None:
                return

    async def values(
        self, job_id: str, position: int, *, after: int = -1, last: int | None = None
    ) -> AsyncGenerator[ResultValues, None]:
        """Yield the values in an evaluator's results, sorted by row, from the row after `after` to row `last`."""
        table = ResultTable
        chosen = (table.job_id == job_id) & (table.position == position)
        chosen &= true() if last is None else table.row <= last
        columns = [
            _unless_long(column) if column is table.metrics else column for column in columns_of(table, ResultValues)
        ]
        query = select(*columns).where(chosen).order_by(table.row)
        read = after
        while True:
            rows = await self._database.fetch_all(query.where(table.row > read).limit(_AT_ONCE))
            page = [ResultValues(*row) for row in rows]
            since = _BETWEEN_BYTES
            for one in page:
                if since >= _BETWEEN_BYTES:
                    await asyncio.sleep(0)  # let other tasks run, as in `every`
                    since = 0
                if one.metrics is None:
                    long = await self._database.fetch_value(select(table.metrics).where(chosen, table.row == one.row))
                    one = replace(one, metrics=long)  # noqa: PLW2901 - the same result, with its metrics
                since += _OF_ROW_BYTES + len(one.metrics)
                yield one
            if len(page) < _AT_ONCE:
                return
            read = page[-1].row

    async def one(self, job_id: str, position: int, row: int) -> StoredResult | None:
        """Return the result of the evaluator at `position` for a row, or None."""
        stored = await self._database.fetch_all(_selected(job_id, Filter(position)).where(ResultTable.row == row))
        found = [one async for one in self._whole(job_id, stored)]
        return found[0] if found else None

    async def together(self, job_id: str, position: int) -> str | None:
        """Return an evaluator's score over all rows together as JSON, or None."""
        table = TogetherTable
        query = select(table.result).where(table.job_id == job_id, table.position == position)
        found: str | None = await self._database.fetch_value(query)
        return found

    async def _parts(self, job_id: str, ids: set[int | None]) -> dict[int | None, str]:
        """Return the parts that results of a job share, keyed by id.

        The key None has an empty part, for results that are stored as a whole.
        """
        if not ids - {None}:
            return {None: ""}
        table = SharedPartTable
        query = select(table.id, table.content).where(table.job_id == job_id, table.id.in_(ids - {None}))
        return {None: "", **{row[0]: row[1] for row in await self._database.fetch_all(query)}}


def _joined(stored: Any, part: str) -> StoredResult:
    """Merge a result with its shared part. If both have a field, the result's own field takes precedence."""
    if not part:
        return StoredResult(*stored)
    result = f'{part[:-1]},"metrics":{stored.metrics},{stored.result[1:]}'
    columns = [*stored[:-2], result]
    return StoredResult(*columns)


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a result in an order. `value` is the result's value in the column by which results are sorted."""

    row: int
    position: int
    value: Any = None


class _Order:
    """An order of results, and its cursors; a cursor holds the place of the last result on a page.

    Attributes:
      column: Column by which results are sorted first; None for the order of rows.
      down: Whether large values come first.
      indexed: Whether an index of each evaluator's results has this order.
    """

    def __init__(self, sort: Sort) -> None:
        self._sort = sort
        self._name = sort.removeprefix("-")
        self.down = sort.startswith("-")
        self.indexed = self._name != Sort.RUN_MS
        self.column: Any = None if sort is Sort.ROW else getattr(ResultTable, self._name)

    def value(self, one: Any) -> Any:
        """Return the value by which a result is sorted first."""
        return None if self.column is None else getattr(one, self._name)

    def cursor(self, last: StoredResult | _Place) -> str:
        return orjson.dumps([self._sort, self.value(last), last.row, last.position]).hex()

    def place(self, cursor: str) -> _Place:
        try:
            sort, value, row, position = orjson.loads(bytes.fromhex(cursor))
        except (ValueError, TypeError):
            sort = value = row = position = None
        if sort != self._sort or not isinstance(row, int) or not isinstance(position, int):
            raise InvalidRequest(
                "this cursor belongs to another query; give `next_cursor` of the previous page, or leave it out"
            )
        kind = str if self._sort is Sort.STATUS else int | float
        return _Place(row, position, value if isinstance(value, kind) else None)


@dataclass(frozen=True, slots=True)
class _Look:
    """Reads results in order. Each SQL statement searches an index once for each evaluator, and merges the results.

    If no index has the order, each statement reads all results of the job.
    """

    connection: AsyncConnection
    job_id: str
    which: Filter
    positions: tuple[int, ...]
    order: _Order
    _: KW_ONLY
    columns: tuple[Any, ...]
    bounded: bool  # whether each part of a merge needs its own limit, so that the database does not read too much

    async def page(self, limit: int, last: _Place | None) -> list[Any]:
        """Return results after `last`: first those with its value, then those with other values or without one."""
        column, down = self.order.column, self.order.down
        if column is None:
            return await self._first(limit, after=last)
        found: list[Any] = []
        further = column.is_not(None)
        if last is not None and last.value is not None:
            found = await self._first(limit, column == last.value, after=last)
            further = column < last.value if down else column > last.value
        if last is None or last.value is not None:
            more = await self._first(limit - len(found), further, down=down)
            found += await self._upwards(more) if down else more
            last = None
        return found + await self._first(limit - len(found), column.is_(None), after=last)

    async def of_row(self, row: int) -> list[Any]:
        return await self._first(len(self.positions), ResultTable.row == row)

    async def _upwards(self, read: list[Any]) -> list[Any]:
        """Sort each group of equal values by ascending row. The given results have values and rows in descending order.

        The limit of the query may have cut off the last group of equal values, so this group is read again from its
        lowest row.
        """
        if not read:
            return []
        groups = [[*same] for _, same in groupby(read, self.order.value)]
        whole = [one for same in groups[:-1] for one in reversed(same)]
        return whole + await self._first(len(groups[-1]), self.order.column == self.order.value(read[-1]))

    async def _first(
        self, limit: int, *chosen: ColumnElement[bool], after: _Place | None = None, down: bool = False
    ) -> list[Any]:
        if not self.positions or limit <= 0:
            return []
        table, value = ResultTable, self.order.column
        names = [one.key for one in (value, table.row, table.position) if one is not None]
        by: list[Any] = [desc(name) if down else name for name in names]
        parts = []
        for position in self.positions if self.order.indexed else (self.which.position,):
            part = _selected(self.job_id, replace(self.which, position=position)).with_only_columns(*self.columns)
            part = part.where(*chosen)
            if after is not None and position is not None:
                part = part.where(table.row >= after.row + (position <= after.position))
            elif after is not None:
                part = part.where(tuple_(table.row, table.position) > (after.row, after.position))
            parts.append(part)
        if len(parts) > 1:
            if self.bounded:
                parts = [select(part.order_by(*by).limit(limit).subquery()) for part in parts]
            parts = [union_all(*parts)]
        return [*(await self.connection.execute(parts[0].order_by(*by).limit(limit))).all()]


def _light(*, brief: bool) -> tuple[Any, ...]:
    """Return the columns of results, without long texts. With `brief`, the beginning of a long text is included."""
    table = ResultTable
    light: dict[Any, Any] = {column: _unless_long(column) for column in (table.metrics, table.result)}
    if brief:
        light = {
            table.metrics: func.coalesce(light[table.metrics], "{}"),
            table.result: func.substr(table.result, 1, _LONG),
        }
    return tuple(light.get(column, column).label(column.key) for column in columns_of(table, StoredResult))


def _unless_long(column: Any) -> Any:
    """Return an SQL expression for a text column: null if the text is too long to be read together with many others."""
    return case((func.length(column) <= _LONG, column))


def _of_key(job_id: str, key: Any) -> Any:
    table = ResultTable
    return _selected(job_id, Filter(key.position)).where(table.row == key.row)


def _selected(job_id: str, which: Filter) -> Any:
    table = ResultTable
    query: Any = select(*columns_of(table, StoredResult)).where(table.job_id == job_id)
    wanted = {
        table.position: which.position,
        table.status: which.status,
        table.passed: which.passed,
        table.error_code: which.error_code,
    }
    for column, value in wanted.items():
        if value is not None:
            query = query.where(column == value)
    if which.passed is not None:
        query = query.where(table.passed.is_not(None))  # lets the database use the index, which has the same condition
    if which.rows is not None:
        query = query.where(table.row.in_(which.rows))
    if which.min_score is not None:
        query = query.where(table.score >= which.min_score)
    if which.max_score is not None:
        query = query.where(table.score <= which.max_score)
    if which.min_score is not None and which.max_score is not None and which.min_score > which.max_score:
        query = query.where(false())
    return query
