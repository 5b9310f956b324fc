"""Compares two jobs over the same rows, evaluator by evaluator."""

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial

from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.files import RowsFolder
from evaluator_host.platform.datasets.mapping import column_of
from evaluator_host.platform.datasets.table import Dataset, Datasets
from evaluator_host.platform.jobs.records import Job, JobEvaluator
from evaluator_host.platform.jobs.results.changed import changes_of_evaluators, changes_of_jobs
from evaluator_host.platform.jobs.results.column_values import JobColumns
from evaluator_host.platform.jobs.results.comparison import ComparedRows, Side
from evaluator_host.platform.jobs.results.same_rows import rows_differ
from evaluator_host.platform.jobs.results.table import Results
from evaluator_host.platform.jobs.spec import counts_zero, spec_from_json
from evaluator_host.platform.jobs.table import Jobs
from evaluator_host.platform.jobs.tallies import EvaluatorTally
from evaluator_host.types.errors import InvalidRequest, NotFound, Problem
from evaluator_host.types.results import ChangePage, ComparedColumn, Comparison, Pairs


class JobComparisons:
    """Compares jobs by their stored results.

    Every method raises `NotFound` if the workspace has no such job.
    """

    def __init__(
        self, jobs: Jobs, results: Results, datasets: Datasets, folder: RowsFolder, processes: LimitedProcesses
    ) -> None:
        self._jobs = jobs
        self._results = results
        self._datasets = datasets
        self._folder = folder
        self._columns = JobColumns(datasets, folder, processes)

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

    async def groups(
        self,
        workspace_id: str,
        job_id: str,
        other_id: str,
        column: str,
        *,
        evaluator: str | None = None,
        metric: str = "score",
        by_place: bool = False,
    ) -> list[ComparedColumn]:
        """Return the differences of a metric for each value of a column, for each evaluator that both jobs have.

        If the column has the answers, its values are those of the later job. For `by_place`, see `compare`.

        Raises:
          InvalidRequest: no row has a value in that column, or for the reasons given at `compare`.
        """
        before, after, sides = await self._in_common(workspace_id, job_id, other_id, evaluator, by_place=by_place)
        values = partial(self._columns.values, after, column)
        rows = [await self._rows(before, old, after, new) for old, new in sides]
        return [await one.groups(metric, values) for one in rows]

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

    async def _rows(self, before: Job, old: JobEvaluator, after: Job, new: JobEvaluator) -> ComparedRows:
        sides = [_side(job, one, await self._tallies(job)) for job, one in ((before, old), (after, new))]
        return ComparedRows(self._results, *sides)

    async def _tallies(self, job: Job) -> Sequence[EvaluatorTally]:
        return (await self._jobs.get_overview(job.workspace_id, job.id)).evaluators

    async def _dataset_name(self, job: Job) -> str:
        with suppress(NotFound):
            return _version_of(await self._datasets.get_dataset(job.workspace_id, job.dataset_id))
        return job.dataset_id

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
                f"the jobs have different rows ({_version_of(one)}, {_version_of(other)}): {found}; they can be "
                "compared only if their rows are the same, in the same order, except for the answers; if only the "
                "order differs, sort both files by the same column, upload them again, and run both jobs again"
            )


def _version_of(dataset: Dataset) -> str:
    return f"{dataset.title}@{dataset.version}" if dataset.title else dataset.id


def _side(job: Job, evaluator: JobEvaluator, tallies: Sequence[EvaluatorTally]) -> Side:
    tally = tallies[evaluator.position].tally
    return Side(
        job.id,
        evaluator.position,
        evaluator.label,
        zero=counts_zero(job),
        gives_scores=tally.scores > 0,
        warnings=tally.counted_warnings(),
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
