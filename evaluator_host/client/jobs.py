"""Client methods for jobs: `client.jobs`."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing, suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from types import NoneType
from typing import Any, Final

from ..types.errors import HostError, InvalidRequest
from ..types.evaluator import Evaluator, Isolation, Json, ModelBudget, Replay
from ..types.formats import Format
from ..types.jobs import Executor, Failures, JobEstimate, JobReport, JobStatus, Target
from ..types.line_buffer import LineBuffer
from ..types.results import (
    Agreement,
    Change,
    ChangePage,
    ColumnStatistics,
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
from .calls import Call, decode, encode, evaluator_body, path_part, query
from .kept_rows import KeptRows, kept_rows
from .transport import TransportT, Verbs, stream, verb

_EVENT_DATA: Final = b"data:"
_AGAIN_S: Final = 1.0  # seconds between two requests for a job whose events cannot be read
_PAGE_ROWS: Final = 500
_FILES: Final = (Format.JSONL, Format.CSV, Format.PARQUET)


class JobVerbs(Verbs[TransportT]):
    """Methods for the jobs in your key's workspace.

    For every method that takes a `job_id`:

    Args:
      job_id: Id of the job.

    Raises:
      NotFound: there is no such job.
      InUse: the method pauses, resumes or cancels a job that has ended (a failed job can be resumed), or deletes a job
        that has not ended.
      InvalidRequest: a filter does not exist, or its value is not valid.
    """

    @verb
    async def create(
        self,
        evaluators: Iterable[Evaluator | str],
        dataset: str | Iterable[dict[str, Json]] | dict[str, Json],
        *,
        mapping: dict[str, str] | None = None,
        target: Target | None = None,
        parallelism: int | None = None,
        limit_samples: int | None = None,
        shard: str | None = None,
        executor: Executor = Executor.LOCAL,
        isolation: Isolation = Isolation.ROW,
        max_failures: int | None = None,
        replay: Replay = Replay.OFF,
        budget: ModelBudget | None = None,
        failures: Failures = Failures.EXCLUDE,
        name: str | None = None,
        idempotency_key: str | None = None,
    ) -> JobReport:
        """Queue a job.

        Args:
          evaluators: Evaluators with their code, and names of stored evaluators (`exact-match@3`).
          dataset: Name of a data set, rows, or `{"eval_set": {…}, "executions": […]}` (docs/dialects); with an eval set
            and no evaluators, the job runs the evaluators in the eval set.
          mapping: Which column or template fills each field of a row:
            `{"outputs": "answer", "correct_answer": "gold"}`.
          target: A model that first produces the outputs.
          parallelism: Number of sandboxes that run at once.
          limit_samples: How many rows to score, starting with the first.
          shard: The part of these rows to score: `3/16` stands for the rows with index modulo 16 equal to 3.
          executor: `RAY` evaluates the rows on the nodes of the host's Ray cluster.
          isolation: `BATCH` lets rows share a process, for speed.
          max_failures: The job fails when more results (rows times evaluators) than this have failed.
          replay: Whether to record and reuse the answers of granted models.
          budget: Limits for the whole job's use of granted models; None for no limit.
          failures: Whether failed rows are left out of mean and pass rate, or count as 0 and as not passed.
          name: Name of the job, shown in lists and found by `search`.
          idempotency_key: A repeated call with the same key returns the job that the first call made.

        Raises:
          NotFound: there is no such evaluator, data set or secret.
          InvalidRequest: an evaluator, the mapping or the target is not valid; `problems` says why.
        """
        body = job_body(
            evaluators,
            dataset,
            mapping=mapping,
            target=target,
            parallelism=parallelism,
            limit_samples=limit_samples,
            shard=shard,
            executor=executor,
            isolation=isolation,
            max_failures=max_failures,
            replay=replay,
            budget=budget,
            failures=failures,
            name=name,
        )
        headers = () if idempotency_key is None else (("Idempotency-Key", idempotency_key),)
        return await self._transport.send(Call("POST", "/v1/jobs", JobReport, encode(body), headers))

    @verb
    async def estimate(
        self,
        evaluators: Iterable[Evaluator | str],
        dataset: str | Iterable[dict[str, Json]] | dict[str, Json],
        *,
        mapping: dict[str, str] | None = None,
        target: Target | None = None,
        limit_samples: int | None = None,
        shard: str | None = None,
        isolation: Isolation = Isolation.ROW,
        replay: Replay = Replay.OFF,
        budget: ModelBudget | None = None,
        rows: int = 3,
    ) -> JobEstimate:
        """Score the first `rows` rows of a job, and estimate how much the whole job will use models.

        With `replay=Replay.PREFER`, the job itself uses the models' answers again. This method raises the same errors
        as `create`.

        Args:
          evaluators: Evaluators with their code, and names of stored evaluators (`exact-match@3`).
          dataset: Name of a data set, rows, or an eval set, as in `create`.
          mapping: Which column or template fills each field of a row:
            `{"outputs": "answer", "correct_answer": "gold"}`.
          target: A model that first produces the outputs.
          limit_samples: How many rows the job scores, starting with the first.
          shard: The part of these rows that the job scores, as in `create`; the rows that are scored now are the first
            rows of the data set.
          isolation: `BATCH` lets rows share a process, for speed.
          replay: Whether to record and reuse the answers of granted models.
          budget: Limits for the whole job's use of granted models.
          rows: Number of rows to score now.
        """
        config: dict[str, Any] = {
            "isolation": isolation,
            "limit_samples": limit_samples,
            "shard": shard,
            "replay": replay,
            "budget": budget,
        }
        body = job_body(evaluators, dataset, mapping=mapping, target=target, **config)
        return await self._transport.send(
            Call("POST", f"/v1/jobs/estimate{query(rows=rows)}", JobEstimate, encode(body))
        )

    @verb
    async def all(
        self,
        *,
        status: JobStatus | None = None,
        limit: int = 100,
        before: datetime | None = None,
        search: str | None = None,
    ) -> list[JobReport]:
        """Return jobs and their evaluators' scores so far, the newest job first.

        Args:
          status: Only jobs in this status.
          limit: Maximum number of jobs.
          before: `created_at` of the last job on the previous page.
          search: Only jobs with this text in their name, data set or evaluators.
        """
        at = None if before is None else before.isoformat()
        asked = query(status=status, limit=limit, before=at, search=search)
        return await self._get(f"/v1/jobs{asked}", list[JobReport])

    @verb
    async def get(self, job_id: str) -> JobReport:
        """Return a job and its progress."""
        return await self._report(job_id)

    @verb
    async def rename(self, job_id: str, name: str | None) -> JobReport:
        """Give a job another name, and return the job.

        Args:
          job_id: Id of the job.
          name: The new name; None removes the name.
        """
        return await self._transport.send(Call("PATCH", _path(job_id), JobReport, encode({"name": name})))

    @stream
    def watch(self, job_id: str) -> AsyncGenerator[JobReport, None]:
        """Yield the job whenever it changes, until it ends. A broken connection is opened again."""
        return self._changes(job_id)

    @verb
    async def wait(self, job_id: str, *, on_progress: Callable[[JobReport], None] | None = None) -> JobReport:
        """Return the job once it is completed, failed or cancelled.

        Args:
          job_id: Id of the job.
          on_progress: Called with the job whenever it changes.
        """
        async with aclosing(self._changes(job_id)) as reports:
            async for report in reports:
                if on_progress is not None:
                    on_progress(report)
                if report.status.final:
                    return report
        raise AssertionError("unreachable")  # pragma: no cover

    @verb
    async def pause(self, job_id: str) -> JobReport:
        """Pause a job; its results so far are kept."""
        return await self._control(job_id, "pause")

    @verb
    async def resume(self, job_id: str) -> JobReport:
        """Continue a paused job where it stopped, or continue a failed job."""
        return await self._control(job_id, "resume")

    @verb
    async def cancel(self, job_id: str) -> JobReport:
        """Cancel a job, which then cannot be resumed; its results so far are kept."""
        return await self._control(job_id, "cancel")

    @verb
    async def delete(self, job_id: str, *, force: bool = False) -> None:
        """Remove a job that has ended, and its results.

        Args:
          job_id: Id of the job.
          force: Whether to remove the job even if an alert or a label queue uses it.

        Raises:
          InUse: the job has not ended, or something uses it; the message says which.
        """
        await self._transport.send(Call("DELETE", _path(job_id) + query(force=force), NoneType))

    @verb
    async def results(self, job_id: str) -> JobStatistics:
        """Return the results of a job so far, for each evaluator and metric."""
        return await self._get(_path(job_id, "results"), JobStatistics)

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
        return await self._get(_path(job_id, "groups") + query(by=by, evaluator=evaluator), list[ColumnStatistics])

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
        return await self._get(_path(job_id, f"rows/{index}"), JobRowDetail)

    @verb
    async def failures(self, job_id: str, *, evaluator: str | None = None) -> list[FailureGroup]:
        """Return the rows that failed, grouped by code, type, line and message, the largest group first.

        Args:
          job_id: Id of the job.
          evaluator: Label of one of the job's evaluators; None for all evaluators.

        Raises:
          NotFound: the job has no such evaluator.
        """
        return await self._get(_path(job_id, "failures") + query(evaluator=evaluator), list[FailureGroup])

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
        path = _path(job_id, "agreement") + query(label=label, queue=queue, evaluator=evaluator)
        return await self._get(path, list[Agreement])

    @verb
    async def evaluators(self, job_id: str) -> list[JobEvaluatorReport]:
        """Return the evaluators of a job, as they were when the job was created."""
        return await self._get(_path(job_id, "evaluators"), list[JobEvaluatorReport])

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
        path = _path(job_id, f"compare/{path_part(other_id)}/pairs") + query(
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
        path = _path(job_id, "rows") + query(total=True, limit=1, brief=True, **filters)
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
        path = _path(job_id, f"rows.{format_}")
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
        path = _path(job_id, f"compare/{path_part(other_id)}") + query(evaluator=evaluator, by_place=by_place)
        return await self._get(path, list[Comparison])

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
            page = await self._get(_path(job_id, f"compare/{path_part(other_id)}/changes") + asked, ChangePage)
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
        path = _path(job_id, f"compare/{path_part(other_id)}/rows/{index}") + query(
            evaluator=evaluator, by_place=by_place
        )
        return await self._get(path, RowDiff)

    async def _report(self, job_id: str) -> JobReport:
        return await self._get(_path(job_id), JobReport)

    async def _control(self, job_id: str, action: str) -> JobReport:
        return await self._transport.send(Call("POST", _path(job_id, action), JobReport))

    async def _rows(self, job_id: str, filters: dict[str, Any]) -> AsyncGenerator[JobRow, None]:
        cursor: str | None = None
        while True:
            path = _path(job_id, "rows") + query(cursor=cursor, limit=_PAGE_ROWS, **filters)
            page = await self._get(path, JobRowPage)
            for row in page.rows:
                yield row
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _changes(self, job_id: str) -> AsyncGenerator[JobReport, None]:
        """Yield the job whenever it changes; the last report has its final state."""
        last: JobReport | None = None
        while True:
            came = False
            with suppress(HostError):  # the request below will raise the error again, unless only the connection broke
                async with aclosing(self._events(job_id)) as reports:
                    async for report in reports:
                        came, last = True, report
                        yield report
            report = await self._report(job_id)
            if report != last:
                yield report
            if report.status.final:
                return
            last = report
            if not came:
                await self._transport.sleep(_AGAIN_S)

    async def _events(self, job_id: str) -> AsyncGenerator[JobReport, None]:
        """Yield a report of the job at each event of the server, until the job or the connection ends.

        Skip the final report.
        """
        call, buffer = Call("GET", _path(job_id, "events"), JobReport), LineBuffer()
        async with aclosing(self._transport.download(call)) as pieces:
            async for piece in pieces:
                for line in buffer.feed(piece):
                    if line.startswith(_EVENT_DATA):
                        report = decode(JobReport, line.removeprefix(_EVENT_DATA))
                        if not report.status.final:
                            yield report


def job_body(
    evaluators: Iterable[Evaluator | str],
    dataset: str | Iterable[dict[str, Json]] | dict[str, Json],
    *,
    mapping: dict[str, str] | None = None,
    target: Target | None = None,
    name: str | None = None,
    **config: Any,
) -> dict[str, Any]:
    """Return the request body that creates a job; leave out the fields of `config` that have their defaults."""
    defaults = {None, Executor.LOCAL, Replay.OFF, Failures.EXCLUDE}
    body = {
        "evaluators": [evaluator_body(one) for one in evaluators],
        "dataset": dataset if isinstance(dataset, str | dict) else {"rows": list(dataset)},
        "mapping": mapping or {},
        "config": {field: value for field, value in config.items() if value not in defaults},
        "target": _target_body(target),
    }
    return body if name is None else {**body, "name": name}


def _path(job_id: str, rest: str = "") -> str:
    return f"/v1/jobs/{path_part(job_id)}{rest and '/'}{rest}"


def _noted(file: Path) -> str | None:
    return file.read_text() if file.exists() else None


def _target_body(target: Target | None) -> dict[str, Any] | None:
    if target is None:
        return None
    key = None if target.api_key is None else {"secret": target.api_key}
    return {**asdict(target), "api_key": key, "messages": list(target.messages) or None}
