"""Client methods for the results of jobs: rows, means, failures, files and comparisons."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from types import NoneType
from typing import Any, Final

from ..types.errors import InvalidRequest
from ..types.evaluator import Json
from ..types.formats import Format
from ..types.results import (
    Agreement,
    Change,
    ChangePage,
    ColumnStatistics,
    ComparedColumn,
    Comparison,
    FailureGroup,
    JobEvaluatorReport,
    JobRow,
    JobRowDetail,
    JobRowPage,
    JobStatistics,
    Pairs,
    RowDiff,
)
from .calls import Call, path_part, query
from .kept_rows import KeptRows, kept_rows
from .transport import TransportT, Verbs, stream, verb

_PAGE_ROWS: Final = 500
_FILES: Final = (Format.JSONL, Format.CSV, Format.PARQUET)


class JobResultVerbs(Verbs[TransportT]):
    """The part of `JobVerbs` that reads results."""

    @verb
    async def results(self, job_id: str) -> JobStatistics:
        """Return the results of a job so far, for each evaluator and metric."""
        return await self._get(job_path(job_id, "results"), JobStatistics)

    @verb
    async def groups(self, job_id: str, by: str, *, evaluator: str | None = None) -> list[ColumnStatistics]:
        """Return mean, pass rate and counts for each value of a column, over the results so far.

        Args:
          job_id: Id of the job.
          by: Column of the data set.
          evaluator: Label of one of the job's evaluators; None for all evaluators.

        Raises:
          InvalidRequest: no row has a value in that column.
        """
        return await self._get(job_path(job_id, "groups") + query(by=by, evaluator=evaluator), list[ColumnStatistics])

    @stream
    def rows(self, /, job_id: str, **filters: Any) -> AsyncGenerator[JobRow, None]:
        """Yield the rows of a job with their results, fetched a page at a time.

        Args:
          job_id: Id of the job.
          filters: `evaluator`, `status`, `passed`, `error`, `min_score`, `max_score`, `row`, `text`, `where`, `sort`,
            as in the API.
        """
        return self._rows(job_id, filters)

    @verb
    async def row(self, job_id: str, index: int) -> JobRowDetail:
        """Return one row as its evaluators received it, and each evaluator's result.

        Args:
          job_id: Id of the job.
          index: Number of the row in the data set, from 0.

        Raises:
          NotFound: there is no such row.
        """
        return await self._get(job_path(job_id, f"rows/{index}"), JobRowDetail)

    @verb
    async def failures(self, job_id: str, *, evaluator: str | None = None) -> list[FailureGroup]:
        """Return the rows that failed, grouped by code, type, line and message, the largest group first.

        Args:
          job_id: Id of the job.
          evaluator: Label of one of the job's evaluators; None for all evaluators.

        Raises:
          NotFound: the job has no such evaluator.
        """
        return await self._get(job_path(job_id, "failures") + query(evaluator=evaluator), list[FailureGroup])

    @verb
    async def agreement(
        self, job_id: str, *, label: str | None = None, queue: str | None = None, evaluator: str | None = None
    ) -> list[Agreement]:
        """Return how well the evaluators of a job agree with people's labels: accuracy, kappa, confusion matrix.

        Args:
          job_id: Id of the job.
          label: Column of the data set with the labels.
          queue: Name of a label queue; if `label` and `queue` are None, all queues with labels for the job are used.
          evaluator: Label of one of the job's evaluators; None for all evaluators.

        Raises:
          InvalidRequest: there are no such labels.
        """
        path = job_path(job_id, "agreement") + query(label=label, queue=queue, evaluator=evaluator)
        return await self._get(path, list[Agreement])

    @verb
    async def evaluators(self, job_id: str) -> list[JobEvaluatorReport]:
        """Return the evaluators of a job, as they were when the job was created."""
        return await self._get(job_path(job_id, "evaluators"), list[JobEvaluatorReport])

    @verb
    async def pairs(
        self, job_id: str, other_id: str, *, evaluator: str | None = None, metric: str = "score", by_place: bool = False
    ) -> Pairs:
        """Return a scatter plot of a metric's values in two jobs, row by row, with at most 2,000 points.

        Args:
          job_id: Id of the earlier job.
          other_id: Id of the later job.
          evaluator: Name of an evaluator of both jobs; None if they have only one.
          metric: Name of the metric.
          by_place: The same as in `compare`.

        Raises:
          InvalidRequest: the jobs have no evaluator in common, or not the same rows.
        """
        path = job_path(job_id, f"compare/{path_part(other_id)}/pairs") + query(
            evaluator=evaluator, metric=metric, by_place=by_place
        )
        return await self._get(path, Pairs)

    @verb
    async def first_rows(self, /, job_id: str, limit: int, **filters: Any) -> list[JobRow]:
        """Return the first rows of a job with their results.

        Args:
          job_id: Id of the job.
          limit: Maximum number of rows.
          filters: `evaluator`, `status`, `passed`, `error`, `min_score`, … as in `rows`.
        """
        found: list[JobRow] = []
        async with aclosing(self._rows(job_id, filters)) as rows:
            while len(found) < limit and (row := await anext(rows, None)) is not None:
                found.append(row)
        return found

    @verb
    async def count_rows(self, /, job_id: str, **filters: Any) -> int:
        """Return how many results of a job match, without reading them. Each row has a result from each evaluator.

        Args:
          job_id: Id of the job.
          filters: `evaluator`, `status`, `passed`, `error`, `min_score`, `max_score`, `row`, as in `rows`.

        Raises:
          InvalidRequest: rows with a text or a condition cannot be counted without reading them.
        """
        if not_counted := [name for name in ("text", "where") if filters.get(name)]:
            raise InvalidRequest(
                f"rows cannot be counted by `{not_counted[0]}` without reading them: read them with `client.jobs.rows`"
            )
        path = job_path(job_id, "rows") + query(total=True, limit=1, brief=True, **filters)
        return (await self._get(path, JobRowPage)).total or 0

    @stream
    async def records(self, /, job_id: str, **filters: Any) -> AsyncGenerator[dict[str, Json], None]:
        """Yield rows as flat dictionaries, for `pandas.DataFrame(client.jobs.records(job.id))`.

        Columns: `index`, `evaluator`, `status`, `score`, `passed`, `error`, `run_ms`, `output` if the job has a target,
        each metric as `metrics.<name>`, each column of the data set as `row.<name>`.

        Args:
          job_id: Id of the job.
          filters: `evaluator`, `status`, `passed`, `error`, `min_score`, … as in `rows`.
        """
        async with aclosing(self._rows(job_id, filters)) as rows:
            async for row in rows:
                yield row.record()

    @verb
    async def download(self, /, job_id: str, file: Path | str, *, resume: bool = False, **filters: Any) -> int:
        """Write the rows that match, with their results, to a file, and return the size of the file in bytes.

        Args:
          job_id: Id of the job.
          file: Path of the file; its suffix is the format: .jsonl, .csv or .parquet.
          resume: Whether to continue the `<name>.part` of an earlier call with the same arguments.
          filters: `evaluator`, `status`, `passed`, `error`, `min_score`, … as in `rows`, without `sort`. Without
            filters, all rows are written.

        Raises:
          InvalidRequest: there is no such format, or its files cannot be resumed.
          NotFound: there is no such job or evaluator.

        After an error, the file is unchanged. The part that has arrived is in a file in the same folder, `<name>.part`,
        and what was asked for in `<name>.part.query`.
        """
        format_, part, blocking = Format.of_name(str(file)), Path(f"{file}.part"), self._transport.call_blocking
        if format_ not in _FILES:
            raise InvalidRequest(
                f"rows cannot be downloaded as {format_}: give {file} the suffix .jsonl, .csv or .parquet"
            )
        kept = await blocking(kept_rows, part, format_) if resume else KeptRows()
        path = job_path(job_id, f"rows.{format_}")
        noted, asked = Path(f"{part}.query"), path + query(**filters)
        if kept.size and await blocking(_noted, noted) not in (None, asked):
            raise InvalidRequest(
                f"{part} is from a download of another job or with other filters: repeat that download, or remove the "
                "file"
            )
        path += query(first=kept.next_row, **filters)
        async with aclosing(self._transport.download(Call("GET", path, NoneType))) as pieces:
            begun = await anext(pieces, b"")
            while len(begun) < len(kept.header) and (piece := await anext(pieces, b"")):
                begun += piece
            if not begun.startswith(kept.header):
                raise InvalidRequest(
                    f"the rows of the job do not have the same columns as {part}, so the download cannot continue; "
                    "remove that file, then download everything again"
                )
            with await blocking(part.open, "r+b" if kept.size else "wb") as written:
                await blocking(written.truncate, kept.size)
                await blocking(noted.write_text, asked)
                await blocking(written.seek, kept.size)
                await blocking(written.write, begun[len(kept.header) :])
                async for piece in pieces:
                    await blocking(written.write, piece)
                size = written.tell()
            await blocking(part.replace, file)
            await blocking(noted.unlink)
            return size

    @verb
    async def compare(
        self, job_id: str, other_id: str, *, evaluator: str | None = None, by_place: bool = False
    ) -> list[Comparison]:
        """Compare a job with a later job over the same rows.

        Args:
          job_id: Id of the earlier job.
          other_id: Id of the later job.
          evaluator: Name of an evaluator of both jobs; None for all evaluators.
          by_place: Whether to compare evaluators by their position if no name is in both jobs.

        Raises:
          InvalidRequest: the jobs have no evaluator in common, or not the same rows.
        """
        path = job_path(job_id, f"compare/{path_part(other_id)}") + query(evaluator=evaluator, by_place=by_place)
        return await self._get(path, list[Comparison])

    @verb
    async def compare_groups(
        self,
        job_id: str,
        other_id: str,
        by: str,
        *,
        evaluator: str | None = None,
        metric: str = "score",
        by_place: bool = False,
    ) -> list[ComparedColumn]:
        """Compare a metric with a later job over the same rows, for each of the first 50 values of a column.

        Args:
          job_id: Id of the earlier job.
          other_id: Id of the later job.
          by: Name of a column of the data set, or a dotted path in it.
          evaluator: Name of an evaluator of both jobs; None for all evaluators.
          metric: Name of the metric.
          by_place: The same as in `compare`.

        Raises:
          InvalidRequest: no row has a value in that column, or the jobs cannot be compared.
        """
        asked = query(by=by, evaluator=evaluator, metric=metric, by_place=by_place)
        return await self._get(job_path(job_id, f"compare/{path_part(other_id)}/groups") + asked, list[ComparedColumn])

    @stream
    async def changes(
        self,
        job_id: str,
        other_id: str,
        *,
        evaluator: str | None = None,
        better: bool | None = None,
        by_place: bool = False,
    ) -> AsyncGenerator[Change, None]:
        """Yield every row whose score changed in a later job over the same rows, in order.

        Args:
          job_id: Id of the earlier job.
          other_id: Id of the later job.
          evaluator: Name of an evaluator of both jobs; None for the first.
          better: True for rows with a higher score, False for rows with a lower score; None for both.
          by_place: The same as in `compare`.

        Raises:
          InvalidRequest: the jobs have no evaluator in common, or not the same rows.
        """
        after: int | None = -1
        while after is not None:
            asked = query(evaluator=evaluator, better=better, after=after, by_place=by_place)
            page = await self._get(job_path(job_id, f"compare/{path_part(other_id)}/changes") + asked, ChangePage)
            for change in page.changes:
                yield change
            after = page.next

    @verb
    async def row_diff(
        self, job_id: str, other_id: str, index: int, *, evaluator: str | None = None, by_place: bool = False
    ) -> RowDiff:
        """Return how the outputs and results of a row differ in a later job, as unified diffs.

        Args:
          job_id: Id of the earlier job.
          other_id: Id of the later job.
          index: Number of the row.
          evaluator: Name of an evaluator of both jobs; None for the first.
          by_place: The same as in `compare`.

        Raises:
          InvalidRequest: the jobs have no evaluator in common, or not the same rows.
        """
        path = job_path(job_id, f"compare/{path_part(other_id)}/rows/{index}") + query(
            evaluator=evaluator, by_place=by_place
        )
        return await self._get(path, RowDiff)

    async def _rows(self, job_id: str, filters: dict[str, Any]) -> AsyncGenerator[JobRow, None]:
        cursor: str | None = None
        while True:
            path = job_path(job_id, "rows") + query(cursor=cursor, limit=_PAGE_ROWS, **filters)
            page = await self._get(path, JobRowPage)
            for row in page.rows:
                yield row
            cursor = page.next_cursor
            if cursor is None:
                return


def job_path(job_id: str, rest: str = "") -> str:
    """Return the path of a job in the API, or of a part of it."""
    return f"/v1/jobs/{path_part(job_id)}{rest and '/'}{rest}"


def _noted(file: Path) -> str | None:
    return file.read_text() if file.exists() else None
