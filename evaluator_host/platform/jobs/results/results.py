"""Reads the results of jobs: statistics by evaluator and column, failures, and agreement with labels."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.files import RowsFolder, line_chunks
from evaluator_host.platform.datasets.table import Datasets
from evaluator_host.platform.jobs.records import Job, JobEvaluator
from evaluator_host.platform.jobs.results.aggregate import NAMES
from evaluator_host.platform.jobs.results.agreement import CLASSES, LabelledRows, agreement
from evaluator_host.platform.jobs.results.column_values import JobColumns, next_values
from evaluator_host.platform.jobs.results.failure_groups import failure_groups
from evaluator_host.platform.jobs.results.statistics import statistics_of
from evaluator_host.platform.jobs.results.table import Filter, Results
from evaluator_host.platform.jobs.row_source import CHUNK_BYTES, CHUNK_ROWS
from evaluator_host.platform.jobs.spec import counts_zero, evaluator_of, spec_from_json
from evaluator_host.platform.jobs.table import Jobs
from evaluator_host.types.errors import InvalidRequest, NotFound
from evaluator_host.types.evaluator import Json
from evaluator_host.types.groups import Groups
from evaluator_host.types.json_values import decode_large
from evaluator_host.types.outcome import Status
from evaluator_host.types.results import (
    Agreement,
    ColumnStatistics,
    EvaluatorStatistics,
    FailureGroup,
    JobEvaluatorReport,
    JobStatistics,
)

_CELLS: Final = 20 * CLASSES**2  # maximum number of cells in the confusion matrices of one response
_REMEMBERED: Final = 64  # number of ended jobs whose statistics are remembered


@runtime_checkable
class HumanLabels(Protocol):
    """Interface through which job results read the labels that people gave."""

    async def labels_of(self, job: Job, queue: str | None) -> dict[int, Json]:
        """Return the labels that people gave to rows of a job, keyed by row number.

        If `queue` is None, use all queues of the job.

        Raises:
          NotFound: there is no such queue.
          InvalidRequest: there are no such labels.
        """


class JobResults:
    """Computes statistics, groups of failures and agreement from the stored results of jobs.

    Every method raises `NotFound` if the workspace has no such job, or the job has no such evaluator.
    """

    def __init__(
        self,
        jobs: Jobs,
        results: Results,
        datasets: Datasets,
        folder: RowsFolder,
        processes: LimitedProcesses,
        *,
        labels: Callable[[], HumanLabels | None],
    ) -> None:
        self._labels = labels
        self._jobs = jobs
        self._results = results
        self._folder = folder
        self._processes = processes
        self._columns = JobColumns(datasets, folder, processes)
        # statistics, keyed by job and by the time at which the job ended: a failed job can be resumed, and then ends
        # again
        self._ended: OrderedDict[tuple[str, datetime | None], JobStatistics] = OrderedDict()

    async def statistics(self, workspace_id: str, job_id: str) -> JobStatistics:
        """Return the statistics of a job's results so far."""
        job = await self._jobs.get_job(workspace_id, job_id)
        end = job_id, job.finished_at
        if (known := self._ended.get(end)) is not None:
            return known
        evaluators = await self._jobs.evaluators(job_id)
        tallies = (await self._jobs.get_overview(workspace_id, job_id)).evaluators
        zero = counts_zero(job)
        made: list[EvaluatorStatistics] = []
        for one, tally in zip(evaluators, tallies, strict=True):
            found = await statistics_of(self._results, job_id, one, most=NAMES - _names(made), zero=zero)
            doubt = tally.doubt() if job.status.final else None
            made.append(replace(found, warnings=tally.tally.counted_warnings(), doubt=doubt))
        if job.status.final:
            self._ended[end] = JobStatistics(tuple(made))
            while len(self._ended) > _REMEMBERED or sum(_names(one.evaluators) for one in self._ended.values()) > NAMES:
                self._ended.popitem(last=False)
        return JobStatistics(tuple(made))

    async def remembered_statistics(self, workspace_id: str, job_id: str) -> JobStatistics | None:
        """Return the statistics of an ended job, or None if they have to be computed."""
        return self._ended.get((job_id, (await self._jobs.get_job(workspace_id, job_id)).finished_at))

    async def groups(
        self, workspace_id: str, job_id: str, column: str, *, evaluator: str | None = None
    ) -> list[ColumnStatistics]:
        """Return the scores so far of each evaluator, or of one evaluator, for each value in a column of the data set.

        Raises:
          InvalidRequest: no row has a value in that column.
        """
        job, evaluators = await self._evaluators(workspace_id, job_id, evaluator)
        gathered = [(one, Groups()) for one in evaluators]
        async with aclosing(self._columns.values(job, column)) as chunks:
            async for values in chunks:
                for one, groups in gathered:
                    await self._gather(job_id, one, values, groups)
        zero = counts_zero(job)
        tallies = (await self._jobs.get_overview(workspace_id, job_id)).evaluators
        doubts = {one.label: one.doubt() if job.status.final else None for one in tallies}
        return [replace(groups.statistics(one.label, zero=zero), doubt=doubts[one.label]) for one, groups in gathered]

    async def _gather(self, job_id: str, evaluator: JobEvaluator, values: dict[int, Json], groups: Groups) -> None:
        """Add an evaluator's results for consecutive rows to `groups`.

        `values` has the value of the column for each row.
        """
        first, last = min(values), max(values)
        async with aclosing(self._results.values(job_id, evaluator.position, after=first - 1, last=last)) as stored:
            async for one in stored:
                groups.add(values[one.row], one.status, one.score, passed=one.passed)

    async def failures(self, workspace_id: str, job_id: str, *, evaluator: str | None = None) -> list[FailureGroup]:
        """Return the failed rows of each evaluator, or of one evaluator, grouped by kind of failure."""
        job, evaluators = await self._evaluators(workspace_id, job_id, evaluator)
        found = []
        for one in evaluators:
            failed = self._results.every(job.id, Filter(one.position, Status.FAILED))
            found += await failure_groups(one.label, failed)
        return found

    async def chosen_rows(
        self, workspace_id: str, job_id: str, *, evaluator: str | None, status: str | None, passed: bool | None
    ) -> Sequence[int]:
        """Return the numbers of rows whose result from `evaluator` has this status and verdict. None means any."""
        _, evaluators = await self._evaluators(workspace_id, job_id, evaluator)
        used = evaluators if evaluator is None else evaluators[:1]
        chosen = [await self._results.rows(job_id, Filter(one.position, status, passed)) for one in used]
        return chosen[0] if len(chosen) == 1 else await asyncio.to_thread(lambda: sorted(set().union(*chosen)))

    async def agreement(
        self,
        workspace_id: str,
        job_id: str,
        *,
        label: str | None = None,
        queue: str | None = None,
        evaluator: str | None = None,
    ) -> list[Agreement]:
        """Return how far each evaluator of a job agrees with labels that people gave.

        The labels are in a column of the rows (`label`) or in a label queue (`queue`). If neither is given, all queues
        that apply to the job are used.

        Raises:
          NotFound: there is no such job, evaluator or queue.
          InvalidRequest: there are no such labels.
        """
        job, evaluators = await self._evaluators(workspace_id, job_id, evaluator)
        labels = None if label is not None else await self._queued_labels(job, queue)
        name = label or ("label queues" if queue is None else f"queue {queue}")
        every: list[Agreement] = []
        for one in evaluators:
            every.append(await self._agreement(job, one, name, labels))
            if sum(len(found.confusion) for found in every) > _CELLS:
                raise InvalidRequest(
                    f"the evaluators and {name!r} have so many labels that their matrices are too large for one "
                    "response; name one evaluator (`evaluator`)"
                )
        if any(one.rows for one in every):
            return every
        raise InvalidRequest(
            f"no row has both a label in {name!r} and a result to compare it with ({every[0].left_out}); "
            "to compare labels that are text, the evaluator must return a `label`"
        )

    async def _evaluators(self, workspace_id: str, job_id: str, wanted: str | None) -> tuple[Job, list[JobEvaluator]]:
        job = await self._jobs.get_job(workspace_id, job_id)
        found = [one for one in await self._jobs.evaluators(job.id) if wanted in (None, one.label, one.name)]
        if not found:
            raise NotFound(
                f"the job has no evaluator {str(wanted)[:80]}; name one of its evaluators, or leave the name out"
            )
        return job, found

    async def _queued_labels(self, job: Job, queue: str | None) -> dict[int, Json]:
        labels = self._labels()
        if labels is None:
            raise InvalidRequest("this host has no label queues; name a column of the data set that has the labels")
        return await labels.labels_of(job, queue)

    async def _agreement(
        self, job: Job, evaluator: JobEvaluator, label: str, labels: dict[int, Json] | None = None
    ) -> Agreement:
        """Return an evaluator's agreement with `labels` (keyed by row), or with the labels in the column `label`."""
        labelled = LabelledRows(passing=evaluator_of(evaluator).passing_score)
        chunks = line_chunks(self._folder.lines(job.dataset_id), CHUNK_ROWS, CHUNK_BYTES)
        values: dict[int, Json] = {}

        async def label_of(row: int) -> Json:
            nonlocal values
            if labels is not None:
                return labels.get(row)
            while row not in values:
                values = await next_values(self._processes, job.workspace_id, chunks, label) or {row: None}
            return values[row]

        every = spec_from_json(job.request).shard.indexes(job.rows)
        rows: Sequence[int] = every if labels is None else sorted(row for row in labels if row in every)
        labelled.unlabelled += len(every) - len(rows)
        async with aclosing(self._results.every(job.id, Filter(evaluator.position))) as results:
            following = await anext(results, None)
            for row in rows:
                result, human = None, await label_of(row)
                while following is not None and following.row < row:
                    following = await anext(results, None)
                if following is not None and following.row == row and human is not None:
                    result = await decode_large(following.result.encode())
                labelled.add(row, human, result)
                if labelled.classes > CLASSES:
                    break
        return agreement(evaluator.label, label, labelled)

    async def evaluators(self, workspace_id: str, job_id: str) -> list[JobEvaluatorReport]:
        """Return the evaluators of a job, as they were when it was created."""
        job = await self._jobs.get_job(workspace_id, job_id)
        found = await self._jobs.evaluators(job.id)
        return await asyncio.to_thread(lambda: [_evaluator_report(one) for one in found])


def _names(evaluators: Iterable[EvaluatorStatistics]) -> int:
    return sum(len(one.metrics) for one in evaluators)


def _evaluator_report(kept: JobEvaluator) -> JobEvaluatorReport:
    return JobEvaluatorReport(kept.label, kept.name, kept.version, kept.digest, evaluator_of(kept))
