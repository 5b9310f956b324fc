"""The rows of a job together with their results: in pages, or all of them for a download."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

from evaluator_host.datasets.files import RowsFolder
from evaluator_host.errors import InvalidRequest, NotFound
from evaluator_host.jobs.order import request_from_json
from evaluator_host.jobs.outputs import answered, request_log
from evaluator_host.jobs.rows import JobRows, Portion
from evaluator_host.model import Row
from evaluator_host.protocol import decode_json
from evaluator_host.reports.results import JobRow, JobRowPage
from evaluator_host.store.datasets import Datasets
from evaluator_host.store.job import Job, JobEvaluator
from evaluator_host.store.job_work import StoredOutput, StoredResult
from evaluator_host.store.jobs import Jobs
from evaluator_host.store.outputs import Outputs
from evaluator_host.store.results import Filter, Results, Sort


class JobRowsRead:
    """Reads the rows of jobs with their results."""

    def __init__(
        self, jobs: Jobs, results: Results, datasets: Datasets, folder: RowsFolder, *, outputs: Outputs | None = None
    ) -> None:
        self._jobs = jobs
        self._datasets = datasets
        self._results = results
        self._folder = folder
        self._outputs = outputs

    async def page(
        self,
        workspace_id: str,
        job_id: str,
        which: Filter,
        *,
        evaluator: str | None = None,
        sort: Sort = Sort.ROW,
        cursor: str | None = None,
        limit: int = 100,
    ) -> JobRowPage:
        """Return a page of rows.

        Args:
          workspace_id: Whose job it is.
          job_id: Its id.
          which: Which results; its position is worked out from `evaluator`.
          evaluator: Label or name of one of the job's evaluators; None for all of them.
          sort: Their order.
          cursor: `next_cursor` of the page before.
          limit: Rows of the page, at most.

        Raises:
          NotFound: there is no such job, or it has no such evaluator.
          InvalidRequest: the cursor is not of this query.
        """
        job = await self._jobs.get(workspace_id, job_id)
        evaluators = await self._jobs.evaluators(job_id)
        found, next_cursor = await self._results.page(
            job_id, _at(which, evaluators, evaluator), sort=sort, cursor=cursor, limit=limit
        )
        return JobRowPage(tuple(await self._rows(job, evaluators, found)), next_cursor)

    async def every(
        self, workspace_id: str, job_id: str, which: Filter, *, evaluator: str | None = None
    ) -> AsyncGenerator[list[JobRow], None]:
        """Yield all rows by number, in portions, whatever their number.

        Raises:
          NotFound: there is no such job, or it has no such evaluator.
        """
        job = await self._jobs.get(workspace_id, job_id)
        evaluators = await self._jobs.evaluators(job_id)
        which = _at(which, evaluators, evaluator)
        cursor: str | None = None
        while True:
            found, cursor = await self._results.page(job_id, which, cursor=cursor, limit=500)
            yield await self._rows(job, evaluators, found)
            if cursor is None:
                return

    async def given(self, workspace_id: str, job_id: str, *, limit: int) -> list[Row]:
        """Return the first rows of a job as its evaluators were given them, a model's outputs and traces included.

        Rows that could not be made, or that the model has not answered, are left out.

        Raises:
          NotFound: there is no such job.
        """
        job = await self._jobs.get(workspace_id, job_id)
        mapping = request_from_json(job.request).sources()
        rows = JobRows(self._folder, job.dataset_id, mapping=mapping, count=min(limit, job.rows))
        portion = await asyncio.to_thread(lambda: next(rows.portions(bytearray()), Portion([], [])))
        found = list(portion.rows)
        if portion.numbers and self._outputs is not None and self._asks(job):
            found = [row async for part in answered(portion, self._outputs, job_id) for row in part.rows]
        return [row for row in found if isinstance(row, Row)]

    async def columns(self, workspace_id: str, job_id: str) -> tuple[str, ...]:
        """Return the columns of a job's data set.

        Raises:
          NotFound: there is no such job.
        """
        job = await self._jobs.get(workspace_id, job_id)
        return (await self._datasets.get(workspace_id, job.dataset_id)).facts.columns

    async def has_outputs(self, workspace_id: str, job_id: str) -> bool:
        """Return whether a job asks a model for the outputs.

        Raises:
          NotFound: there is no such job.
        """
        return self._asks(await self._jobs.get(workspace_id, job_id))

    def _asks(self, job: Job) -> bool:
        return self._outputs is not None and request_from_json(job.request).target is not None

    async def _rows(self, job: Job, evaluators: list[JobEvaluator], results: list[StoredResult]) -> list[JobRow]:
        numbers = sorted({result.row for result in results})
        records = await asyncio.to_thread(self._folder.some, job.dataset_id, numbers)
        labels = {one.position: one.label for one in evaluators}
        rows = [
            JobRow(one.row, labels[one.position], records[one.row], decode_json(one.result.encode())) for one in results
        ]
        if self._outputs is None or not self._asks(job):
            return rows
        answers = await self._outputs.of_rows(job.id, numbers)
        return [_with_answer(row, answers.get(row.index)) for row in rows]


def _with_answer(row: JobRow, stored: StoredOutput | None) -> JobRow:
    if stored is None:
        return row
    output = decode_json(stored.output.encode()) if stored.output is not None else None
    return replace(row, output=output, request=request_log(stored))


def _at(which: Filter, evaluators: list[JobEvaluator], wanted: str | None) -> Filter:
    if wanted is None:
        return which
    found = [one.position for one in evaluators if wanted in (one.label, one.name)]
    if not found:
        labels = ", ".join(one.label for one in evaluators)
        raise NotFound(f"the job has no evaluator {wanted[:80]}; it has {labels}")
    if len(found) > 1:
        raise InvalidRequest(f"the job has several evaluators {wanted[:80]}; name one with its version")
    return Filter(
        found[0], which.status, which.passed, which.error_code, min_score=which.min_score, max_score=which.max_score
    )
