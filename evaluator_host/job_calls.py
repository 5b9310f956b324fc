"""The verbs of `Client` over jobs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import httpx

from evaluator_host import calls, record_calls
from evaluator_host.calls import Call
from evaluator_host.datasets.format import Format
from evaluator_host.model.evaluator import Evaluator, Isolation, Json
from evaluator_host.resources import Send
from evaluator_host.schemas.jobs import JobReport, JobStatus, Target
from evaluator_host.schemas.results import (
    Comparison,
    FailureGroup,
    JobEvaluatorReport,
    JobFigures,
    JobRow,
    JobRowDetail,
    Pairs,
)

_DATA: Final = "data:"
_PAGE: Final = 500


class JobCalls:
    """Jobs of the key's workspace."""

    def __init__(self, send: Send, http: httpx.Client) -> None:
        self._send = send
        self._http = http

    def create(
        self,
        evaluators: Iterable[Evaluator | str],
        dataset: str | Iterable[dict[str, Json]] | dict[str, Json],
        *,
        mapping: dict[str, str] | None = None,
        target: Target | None = None,
        parallelism: int | None = None,
        limit_samples: int | None = None,
        isolation: Isolation = Isolation.ROW,
        max_failures: int | None = None,
        idempotency_key: str | None = None,
    ) -> JobReport:
        """Queue a job.

        Args:
          evaluators: Pasted ones, and references to stored ones (`exact-match@3`).
          dataset: Name of a data set, rows, or `{"eval_set": {…}, "executions": […]}` (docs/dialects); of an eval
            set, no evaluators are those that it names.
          mapping: Row fields by column or template: `{"outputs": "answer", "correct_answer": "gold"}`.
          target: A model that is asked for the outputs first.
          parallelism: Sandboxes at once.
          limit_samples: Rows to take, from the first on.
          isolation: Of rows from each other.
          max_failures: The job fails when more rows than this have failed.
          idempotency_key: The same again returns the job that it made before.
        """
        config: dict[str, Any] = {"parallelism": parallelism, "limit_samples": limit_samples}
        config |= {"isolation": isolation, "max_failures": max_failures}
        call = record_calls.create_job(
            evaluators, dataset, mapping=mapping or {}, target=target, config=config, idempotency_key=idempotency_key
        )
        return self._send(call)

    def all(
        self, *, status: JobStatus | None = None, limit: int = 100, before: datetime | None = None
    ) -> list[JobReport]:
        """Return jobs, the newest first."""
        return self._send(
            record_calls.jobs(status=status, limit=limit, before=None if before is None else before.isoformat())
        )

    def get(self, job_id: str) -> JobReport:
        """Return a job and how far it is."""
        return self._send(record_calls.job(job_id))

    def watch(self, job_id: str) -> Iterator[JobReport]:
        """Yield the job whenever it has changed, until it has ended. A connection that breaks is made again."""
        while True:
            with suppress(httpx.HTTPError):
                yield from self._events(job_id)
            report = self.get(job_id)
            if report.status.final:
                yield report
                return

    def wait(self, job_id: str, *, on_progress: Callable[[JobReport], None] | None = None) -> JobReport:
        """Return the job when it has ended, however it ended."""
        for report in self.watch(job_id):
            if on_progress is not None:
                on_progress(report)
            if report.status.final:
                return report
        raise AssertionError("unreachable")  # pragma: no cover

    def pause(self, job_id: str) -> JobReport:
        """Stop scoring for now; what was scored is kept."""
        return self._send(record_calls.ask_job(job_id, "pause"))

    def resume(self, job_id: str) -> JobReport:
        """Go on where a paused job was."""
        return self._send(record_calls.ask_job(job_id, "resume"))

    def cancel(self, job_id: str) -> JobReport:
        """Stop for good; what was scored is kept."""
        return self._send(record_calls.ask_job(job_id, "cancel"))

    def delete(self, job_id: str) -> None:
        """Remove a job that has ended, with its results."""
        self._send(record_calls.delete_job(job_id))

    def results(self, job_id: str) -> JobFigures:
        """Return the figures of a job as far as it is."""
        return self._send(record_calls.job_results(job_id))

    def rows(self, job_id: str, **filters: Any) -> Iterator[JobRow]:
        """Yield rows with their results.

        Args:
          job_id: Of the job.
          filters: `evaluator`, `status`, `passed`, `error`, `min_score`, `max_score`, `text`, `sort`, as in the API.
        """
        cursor: str | None = None
        while True:
            page = self._send(record_calls.job_rows(job_id, cursor=cursor, limit=_PAGE, **filters))
            yield from page.rows
            cursor = page.next_cursor
            if cursor is None:
                return

    def row(self, job_id: str, index: int) -> JobRowDetail:
        """Return one row, as its evaluators got it and with what each made of it."""
        return self._send(record_calls.job_row(job_id, index))

    def failures(self, job_id: str, *, evaluator: str | None = None) -> list[FailureGroup]:
        """Return the rows that failed, put together by what went wrong."""
        return self._send(record_calls.job_failures(job_id, evaluator))

    def evaluators(self, job_id: str) -> list[JobEvaluatorReport]:
        """Return what a job runs, as it was when the job was made."""
        return self._send(record_calls.job_evaluators(job_id))

    def pairs(self, job_id: str, other_id: str, *, evaluator: str | None = None, metric: str = "score") -> Pairs:
        """Return a metric row by row in two jobs, as at most 2,000 points."""
        return self._send(record_calls.job_pairs(job_id, other_id, evaluator, metric))

    def first_rows(self, job_id: str, limit: int, **filters: Any) -> list[JobRow]:
        """Return the first rows with their results; filters as in `rows`."""
        return list(islice(self.rows(job_id, **filters), limit))

    def records(self, job_id: str, **filters: Any) -> Iterator[dict[str, Json]]:
        """Return rows one by one as flat records, for `pandas.DataFrame(client.jobs.records(job.id))`.

        Columns: `index`, `evaluator`, `status`, `score`, `passed`, `error`, `run_ms`, `output` where a model was asked,
        each metric as `metrics.<name>`, each column of the data set as `row.<name>`.
        """
        return (row.record() for row in self.rows(job_id, **filters))

    def download(self, job_id: str, file: Path | str, *, evaluator: str | None = None) -> int:
        """Write every row with its result to a file (.jsonl, .csv, .parquet), and return its size.

        Raises:
          InvalidRequest: the suffix is of none of these.
          NotFound: there is no such job.
        """
        path = record_calls.download_path(job_id, Format.of_name(str(file)), evaluator)
        call = Call("GET", path, None, calls.nothing)
        try:
            with self._http.stream("GET", path) as response:
                if not response.is_success:
                    response.read()
                    calls.answer(call, response)
                with Path(file).open("wb") as written:
                    written.writelines(response.iter_bytes())
                    return written.tell()
        except httpx.HTTPError as error:
            raise calls.unreachable(error, self._http.base_url) from error

    def compare(self, job_id: str, other_id: str, *, evaluator: str | None = None) -> list[Comparison]:
        """Compare a job with a later one over the same rows."""
        return self._send(record_calls.compare_jobs(job_id, other_id, evaluator))

    def _events(self, job_id: str) -> Iterator[JobReport]:
        with self._http.stream("GET", f"/v1/jobs/{job_id}/events") as response:
            if not response.is_success:
                return
            for line in response.iter_lines():
                if line.startswith(_DATA):
                    report = record_calls.read_job(line.removeprefix(_DATA))
                    if not report.status.final:
                        yield report
