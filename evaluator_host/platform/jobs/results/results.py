"""Reads the results of jobs: statistics by evaluator, groups of failures, and comparisons of two jobs."""

import asyncio
import re
from array import array
from collections import Counter, OrderedDict
from collections.abc import AsyncIterable, Callable, Collection, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from typing import Any, Final, Protocol, runtime_checkable

from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.files import RowsFolder, line_chunks
from evaluator_host.platform.datasets.mapping import column_of
from evaluator_host.platform.datasets.suggestion import listed, nearest
from evaluator_host.platform.datasets.table import Dataset, Datasets
from evaluator_host.platform.jobs.queue import StoredResult
from evaluator_host.platform.jobs.records import Job, JobEvaluator
from evaluator_host.platform.jobs.results.aggregate import (
    NAMES,
    ValuesByName,
    aggregate,
    by_name,
    rubrics_of,
    with_rubrics,
)
from evaluator_host.platform.jobs.results.agreement import CLASSES, LabelledRows, agreement
from evaluator_host.platform.jobs.results.changed import changes_of_evaluators, changes_of_jobs
from evaluator_host.platform.jobs.results.column_values import next_values
from evaluator_host.platform.jobs.results.comparison import ComparedRows, Side
from evaluator_host.platform.jobs.results.same_rows import rows_differ
from evaluator_host.platform.jobs.results.table import Filter, Results, ResultValues
from evaluator_host.platform.jobs.row_source import CHUNK_BYTES, CHUNK_ROWS
from evaluator_host.platform.jobs.spec import evaluator_of, spec_from_json
from evaluator_host.platform.jobs.table import Jobs
from evaluator_host.platform.jobs.tallies import EvaluatorTally
from evaluator_host.types.errors import InvalidRequest, NotFound, Problem
from evaluator_host.types.evaluator import Json
from evaluator_host.types.groups import Groups
from evaluator_host.types.jobs import Failures
from evaluator_host.types.json_values import decode_large
from evaluator_host.types.outcome import EvaluationResult, ModelUsage, Status
from evaluator_host.types.results import (
    Aggregate,
    Agreement,
    ChangePage,
    ColumnStatistics,
    Comparison,
    ErrorCount,
    EvaluatorStatistics,
    FailureGroup,
    JobEvaluatorReport,
    JobStatistics,
    Pairs,
    RunTimes,
)

GROUPS: Final = 200
_EXAMPLES: Final = 5
_MESSAGE: Final = 300
_NUMBERS: Final = re.compile(r"\d+")
_CELLS: Final = 20 * CLASSES**2  # maximum number of cells in the confusion matrices of one response
_REMEMBERED: Final = 64  # number of ended jobs whose statistics are remembered
_read_result: Final = Adapter(EvaluationResult).read_json


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
    """Computes statistics, comparisons and groups of failures from the stored results of jobs.

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
        self._datasets = datasets
        self._results = results
        self._folder = folder
        self._processes = processes
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
        zero = _counts_zero(job)
        made: list[EvaluatorStatistics] = []
        for one, tally in zip(evaluators, tallies, strict=True):
            found = await self._of_evaluator(job_id, one, most=NAMES - _names(made), zero=zero)
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
        lines = takewhile(lambda line: line[0] < job.rows, self._folder.lines(job.dataset_id))
        chunks = line_chunks(lines, CHUNK_ROWS, CHUNK_BYTES)
        some = False
        while values := await next_values(self._processes, workspace_id, chunks, column):
            some = some or any(value is not None for value in values.values())
            for one, groups in gathered:
                await self._gather(job_id, one, values, groups)
        if not some:
            raise await self._no_column(job, column)
        zero = _counts_zero(job)
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

    async def _no_column(self, job: Job, column: str) -> InvalidRequest:
        dataset = await self._datasets.get_dataset(job.workspace_id, job.dataset_id)
        columns = dataset.facts.columns
        meant = nearest(column, columns)
        told = f"no row has a value in the column {column[:80]}"
        told += f"; did you mean {meant}?" if meant not in (None, column) else ""
        return InvalidRequest.of("by", told, f"the data set has {listed(columns)}")

    async def compare(
        self, workspace_id: str, job_id: str, other_id: str, *, evaluator: str | None = None, by_place: bool = False
    ) -> list[Comparison]:
        """Return the comparison of a job with a later job over the same rows, for each evaluator.

        Evaluators with the same name are compared, even if their versions differ; if a job has several versions, each
        is compared with the same version. If the jobs have no such evaluators, `by_place` compares evaluators at the
        same position. If both jobs count failed rows as 0, the comparison does too.

        Raises:
          InvalidRequest: the jobs have different rows, or no evaluator in common.
        """
        before, after, sides = await self._in_common(workspace_id, job_id, other_id, evaluator, by_place=by_place)
        tallies = [await self._tallies(one) for one in (before, after)]
        names = [await self._dataset_name(one) for one in (before, after)]
        of_jobs = changes_of_jobs((before, names[0]), (after, names[1]))
        return [
            await ComparedRows(self._results, _side(before, old, tallies[0]), _side(after, new, tallies[1])).comparison(
                (*changes_of_evaluators(old, new), *of_jobs)
            )
            for old, new in sides
        ]

    async def _rows(self, before: Job, old: JobEvaluator, after: Job, new: JobEvaluator) -> ComparedRows:
        sides = [_side(job, one, await self._tallies(job)) for job, one in ((before, old), (after, new))]
        return ComparedRows(self._results, *sides)

    async def _tallies(self, job: Job) -> Sequence[EvaluatorTally]:
        return (await self._jobs.get_overview(job.workspace_id, job.id)).evaluators

    async def _dataset_name(self, job: Job) -> str:
        with suppress(NotFound):
            return _version_of(await self._datasets.get_dataset(job.workspace_id, job.dataset_id))
        return job.dataset_id

    async def labels_in_common(
        self, workspace_id: str, job_id: str, other_id: str, *, evaluator: str | None = None, by_place: bool = False
    ) -> tuple[str, str]:
        """Return the labels of the first evaluator that both jobs have: its label in the first job and in the second.

        For `by_place`, see `compare`.

        Raises:
          InvalidRequest: for the reasons given at `compare`.
        """
        _, _, [(old, new), *_] = await self._in_common(workspace_id, job_id, other_id, evaluator, by_place=by_place)
        return old.label, new.label

    async def pairs(
        self,
        workspace_id: str,
        job_id: str,
        other_id: str,
        *,
        evaluator: str | None = None,
        metric: str = "score",
        by_place: bool = False,
    ) -> Pairs:
        """Return a scatter plot of one metric in two jobs, for the first evaluator that both jobs have.

        For `by_place`, see `compare`.

        Raises:
          InvalidRequest: for the reasons given at `compare`.
        """
        before, after, [(old, new), *_] = await self._in_common(
            workspace_id, job_id, other_id, evaluator, by_place=by_place
        )
        scatter = await (await self._rows(before, old, after, new)).scatter(metric)
        points, binned = await asyncio.to_thread(scatter.points)
        return Pairs(old.label, new.label, metric, len(scatter), points, binned)

    async def changes(
        self,
        workspace_id: str,
        job_id: str,
        other_id: str,
        *,
        evaluator: str | None = None,
        better: bool | None = None,
        after: int = -1,
        limit: int = 1000,
        by_place: bool = False,
    ) -> ChangePage:
        """Return the rows with a changed score, in order, for the first evaluator that both jobs have.

        `better` selects scores that rose (true) or fell (false). `after` is the last row of the previous page. For
        `by_place`, see `compare`.

        Raises:
          InvalidRequest: for the reasons given at `compare`.
        """
        before, later, [(old, new), *_] = await self._in_common(
            workspace_id, job_id, other_id, evaluator, by_place=by_place
        )
        rows = await self._rows(before, old, later, new)
        return await rows.changes(better=better, after=after, limit=limit)

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
        labelled = LabelledRows()
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

    async def _in_common(
        self, workspace_id: str, job_id: str, other_id: str, evaluator: str | None, *, by_place: bool
    ) -> tuple[Job, Job, list[tuple[JobEvaluator, JobEvaluator]]]:
        """Return two jobs, and the pairs of evaluators that both jobs have. There is at least one pair."""
        before, after = [await self._jobs.get_job(workspace_id, one) for one in (job_id, other_id)]
        await self._require_same_rows(before, after)
        sides = await self._jobs.evaluators(job_id), await self._jobs.evaluators(other_id)
        pairs = _pairs(*sides) or (list(zip(*sides, strict=False)) if by_place else [])
        if not pairs:
            one, other = (", ".join(side.label for side in evaluators) for evaluators in sides)
            hint = "`by_place=true` (--by-place) compares the first evaluators of both jobs, the second ones, and so on"
            why = "evaluators with different names, or with several versions, are compared only if you ask for it"
            problem = Problem("by_place", why, hint)
            raise InvalidRequest(f"the jobs have no evaluator in common: {one}; {other}", problems=(problem,))
        wanted = [(old, new) for old, new in pairs if evaluator in (None, old.label, new.label, old.name)]
        if not wanted:
            raise InvalidRequest("the jobs have no evaluator of this name in common")
        return before, after, wanted

    async def _require_same_rows(self, before: Job, after: Job) -> None:
        if before.dataset_id == after.dataset_id:
            return
        one = await self._datasets.get_dataset(before.workspace_id, before.dataset_id)
        other = await self._datasets.get_dataset(after.workspace_id, after.dataset_id)
        if one.facts.digest == other.facts.digest:
            return
        mapped = [spec_from_json(job.request).mapping.get("outputs", "outputs") for job in (before, after)]
        answers = {"outputs", "output", "trace", *map(column_of, mapped)}
        if (found := await asyncio.to_thread(rows_differ, self._folder, one, other, answers)) is not None:
            raise InvalidRequest(
                f"the jobs have different rows ({_version_of(one)}, {_version_of(other)}): {found}; jobs can be "
                "compared only if their rows are the same, in the same order, except for the answers; if only the "
                "order differs, sort both files by the same column, upload them again, and run both jobs again"
            )

    async def _of_evaluator(
        self, job_id: str, evaluator: JobEvaluator, *, most: int, zero: bool
    ) -> EvaluatorStatistics:
        """Return an evaluator's statistics, for at most `most` metrics.

        With `zero`, a failed row has a score of 0 and did not pass, if other rows have scores or verdicts.
        """
        gathered = _Gathered(zero=zero)

        async def fill(values: ValuesByName) -> None:
            nonlocal gathered
            gathered = _Gathered(zero=zero)
            async for one in self._results.values(job_id, evaluator.position):
                gathered.add(one)
                for name, value in one.metrics_with(zero=False).items():
                    values.add(name, value)
                    # only known metrics are counted, since the metrics of a skipped row may have any names
                    if one.status == Status.SKIPPED and name in values.arrays:
                        gathered.beside_skips[name] += 1
            for _ in range(gathered.zeros):
                values.add("score", 0.0)

        def statistics_of(name: str, values: "array[float]") -> Aggregate:
            rows = gathered.scored + gathered.beside_skips[name] + (gathered.zeros if name == "score" else 0)
            return aggregate(name, values, nan_count=max(0, rows - len(values)))

        metrics = tuple((await by_name(fill, statistics_of, most=most)).values())
        together = await self._results.together(job_id, evaluator.position)
        found = gathered.statistics(evaluator.label, metrics, None if together is None else _read_result(together))
        if evaluator_of(evaluator).connects:
            found = replace(found, usage=await _usage(self._results.every(job_id, Filter(evaluator.position))))
        scored = Filter(evaluator.position, Status.SCORED)
        first, _ = await self._results.page(job_id, scored, limit=1)
        if not first or not (rubrics := await rubrics_of(first[0])):
            return found
        return replace(found, metrics=await with_rubrics(found.metrics, rubrics, self._results.every(job_id, scored)))


def _version_of(dataset: Dataset) -> str:
    return f"{dataset.title}@{dataset.version}" if dataset.title else dataset.id


def _names(evaluators: Iterable[EvaluatorStatistics]) -> int:
    return sum(len(one.metrics) for one in evaluators)


def _side(job: Job, evaluator: JobEvaluator, tallies: Sequence[EvaluatorTally]) -> Side:
    tally = tallies[evaluator.position].tally
    return Side(
        job.id,
        evaluator.position,
        evaluator.label,
        zero=_counts_zero(job),
        gives_scores=tally.scores > 0,
        warnings=tally.counted_warnings(),
    )


def _counts_zero(job: Job) -> bool:
    """Return whether failed rows of a job count as score 0 and as not passed."""
    return spec_from_json(job.request).config.failures is Failures.ZERO


def _evaluator_report(kept: JobEvaluator) -> JobEvaluatorReport:
    return JobEvaluatorReport(kept.label, kept.name, kept.version, kept.digest, evaluator_of(kept))


async def _usage(results: AsyncIterable[StoredResult]) -> ModelUsage:
    """Return the sum of the model use in these results. The total cost is None if the cost of any result is unknown."""
    total = ModelUsage()
    async for one in results:
        used = (await decode_large(one.result.encode())).get("usage")
        if isinstance(used, dict):
            total += ModelUsage(**used)
    return total


class _Gathered:
    """Counts the rows of an evaluator by status, verdict and error, and collects their run times."""

    def __init__(self, *, zero: bool = False) -> None:
        self._zero = zero
        self._statuses: Counter[str] = Counter()
        self._verdicts: Counter[bool | None] = Counter()
        self._has_scores = False
        self._errors: dict[str, tuple[int, int]] = {}
        self._run_times = RunTimes()
        self.beside_skips: Counter[str] = Counter()  # number of values in skipped rows, keyed by metric

    def add(self, one: ResultValues) -> None:
        self._statuses[one.status] += 1
        self._run_times.add(one.status, one.run_ms)
        if one.status == Status.SKIPPED:
            return
        self._verdicts[one.passed] += 1
        self._has_scores = self._has_scores or one.score is not None
        if one.error_code is not None:
            count, example = self._errors.get(one.error_code, (0, one.row))
            self._errors[one.error_code] = (count + 1, example)

    @property
    def scored(self) -> int:
        return self._statuses[Status.SCORED]

    @property
    def failed(self) -> int:
        return self._statuses[Status.FAILED]

    @property
    def zeros(self) -> int:
        """Return the number of failed rows that count as a score of 0."""
        return self.failed if self._zero and self._has_scores else 0

    def statistics(
        self, label: str, metrics: tuple[Aggregate, ...], together: EvaluationResult | None
    ) -> EvaluatorStatistics:
        judged = self._verdicts[True] + self._verdicts[False]
        judged += self.failed if self._zero and judged else 0
        return EvaluatorStatistics(
            evaluator=label,
            rows=self._statuses.total(),
            scored=self.scored,
            failed=self.failed,
            skipped=self._statuses[Status.SKIPPED],
            pass_rate=self._verdicts[True] / judged if judged else None,
            not_passed=self._verdicts[False] if judged else None,
            metrics=metrics,
            errors=tuple(
                ErrorCount(code, count, example)
                for code, (count, example) in sorted(self._errors.items(), key=lambda item: -item[1][0])
            ),
            run_ms=self._run_times.latency(),
            together=together,
            judged=judged,
        )


def _pairs(earlier: list[JobEvaluator], later: list[JobEvaluator]) -> list[tuple[JobEvaluator, JobEvaluator]]:
    """Return pairs of evaluators with the same label, and pairs of two versions of an evaluator.

    Two versions are a pair only if neither job has another version of this evaluator that is not in a pair.
    """
    by_label = {one.label: one for one in later}
    paired = by_label.keys() & {one.label for one in earlier}
    before, after = _by_name(earlier, paired), _by_name(later, paired)
    pairs = {label: by_label[label] for label in paired}
    pairs |= {before[name].label: after[name] for name in before.keys() & after.keys()}
    return [(one, pairs[one.label]) for one in earlier if one.label in pairs]


def _by_name(evaluators: list[JobEvaluator], besides: Collection[str]) -> dict[str | None, JobEvaluator]:
    """Return the evaluators whose name is unique, keyed by name. Evaluators with a label in `besides` are ignored."""
    rest = [one for one in evaluators if one.name is not None and one.label not in besides]
    counts = Counter(one.name for one in rest)
    return {one.name: one for one in rest if counts[one.name] == 1}


async def failure_groups(label: str, failures: AsyncIterable[StoredResult]) -> list[FailureGroup]:
    """Return the groups of an evaluator's failures, the largest first.

    If there are more than `GROUPS` groups, further failures are grouped only by error code. `label` names the
    evaluator.
    """
    groups: dict[tuple[Any, ...], tuple[FailureGroup, list[int], int]] = {}
    async for one in failures:
        error = (await decode_large(one.result.encode()))["error"]
        message = str(error["message"])[:_MESSAGE]
        key: tuple[Any, ...] = (error["code"], error["type"], error["line"], _NUMBERS.sub("#", message))
        if key not in groups and len(groups) >= GROUPS:
            key = (error["code"],)
            error, message = {"code": error["code"], "type": None, "line": None}, "other errors of this kind"
        found = groups.get(key)
        if found is None:
            group = FailureGroup(label, error["code"], error["type"], message, error["line"], 0, (), error.get("hint"))
            found = (group, [], 0)
        group, rows, count = found
        if len(rows) < _EXAMPLES:
            rows.append(one.row)
        groups[key] = (group, rows, count + 1)
    made = [replace(group, count=count, rows=tuple(rows)) for group, rows, count in groups.values()]
    return sorted(made, key=lambda group: (-group.count, group.rows))
