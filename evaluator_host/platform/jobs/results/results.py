"""Reads the results of jobs: statistics by evaluator, groups of failures, and comparisons of two jobs."""

import asyncio
import re
from array import array
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Collection, Iterable, Iterator
from contextlib import aclosing, suppress
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final, Protocol, runtime_checkable

import orjson

from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.platform.datasets.files import RowsFolder, line_chunks
from evaluator_host.platform.datasets.mapping import is_keyed
from evaluator_host.platform.datasets.suggestion import listed, nearest
from evaluator_host.platform.datasets.table import Dataset, Datasets
from evaluator_host.platform.jobs.queue import StoredResult
from evaluator_host.platform.jobs.results.aggregate import (
    NAMES,
    Scatter,
    ValuesByName,
    aggregate,
    as_float,
    by_name,
    paired_difference,
    percentile,
    rubrics_of,
    with_rubrics,
)
from evaluator_host.platform.jobs.results.agreement import CLASSES, agreement, judged_as
from evaluator_host.platform.jobs.results.changed import changes_of_evaluators, changes_of_jobs
from evaluator_host.platform.jobs.results.table import Figures, Filter, Results
from evaluator_host.platform.jobs.row_source import CHUNK_BYTES, CHUNK_ROWS
from evaluator_host.platform.jobs.spec import evaluator_of, spec_from_json
from evaluator_host.platform.jobs.table import Job, JobEvaluator, Jobs
from evaluator_host.types.errors import InvalidRequest, NotFound, Problem
from evaluator_host.types.evaluator import Json
from evaluator_host.types.groups import Groups, value_in
from evaluator_host.types.jobs import Failures
from evaluator_host.types.json_values import decode_json, decode_large
from evaluator_host.types.outcome import EvaluationResult, ModelUsage, Status
from evaluator_host.types.results import (
    Aggregate,
    Agreement,
    Change,
    ChangePage,
    ColumnFigures,
    Comparison,
    ErrorCount,
    EvaluatorFigures,
    FailureGroup,
    JobEvaluatorReport,
    JobFigures,
    Latency,
    Pairs,
)

GROUPS: Final = 200
_EXAMPLES: Final = 5
_MESSAGE: Final = 300
_NUMBERS: Final = re.compile(r"\d+")

CHANGES_SHOWN: Final = 100
_REMEMBERED: Final = 64  # ended jobs, whose figures no longer change
_read_result: Final = Adapter(EvaluationResult).read_json


@runtime_checkable
class HumanLabels(Protocol):
    """The part of a host in which people label the rows of jobs."""

    async def labels_of(self, job: Job, queue: str | None) -> dict[int, Json]:
        """Return the labels for the rows of a job by row, of one queue or of all that apply to it.

        Raises:
          NotFound: there is no such queue.
          InvalidRequest: there are no such labels.
        """


class JobResults:
    """Computes statistics, comparisons and groups of failures from the stored results of jobs.

    For every method:

    Raises:
      NotFound: the workspace has no such job, or the job has no such evaluator.
    """

    def __init__(
        self,
        jobs: Jobs,
        results: Results,
        datasets: Datasets,
        folder: RowsFolder,
        *,
        labels: Callable[[], HumanLabels | None],
    ) -> None:
        self._labels = labels
        self._jobs = jobs
        self._datasets = datasets
        self._results = results
        self._folder = folder
        self._ended: OrderedDict[str, JobFigures] = OrderedDict()

    async def figures(self, workspace_id: str, job_id: str) -> JobFigures:
        """Return the statistics of a job's results so far."""
        job = await self._jobs.get_job(workspace_id, job_id)
        if (known := self._ended.get(job_id)) is not None:
            return known
        evaluators = await self._jobs.evaluators(job_id)
        tallies = (await self._jobs.get_overview(workspace_id, job_id)).evaluators
        zero = _counts_zero(job)
        made: list[EvaluatorFigures] = []
        for one, tally in zip(evaluators, tallies, strict=True):
            found = await self._of_evaluator(job_id, one, most=NAMES - _names(made), zero=zero)
            doubt = tally.doubt() if job.status.final else None
            made.append(replace(found, warnings=tally.tally.counted_warnings(), doubt=doubt))
        if job.status.final:
            self._ended[job_id] = JobFigures(tuple(made))
            while len(self._ended) > _REMEMBERED or sum(_names(one.evaluators) for one in self._ended.values()) > NAMES:
                self._ended.popitem(last=False)
        return JobFigures(tuple(made))

    async def groups(
        self, workspace_id: str, job_id: str, column: str, *, evaluator: str | None = None
    ) -> list[ColumnFigures]:
        """Return the scores so far of each evaluator, or of one, by the values of a column of the data set.

        Raises:
          InvalidRequest: no row has a value in that column.
        """
        job, evaluators = await self._evaluators(workspace_id, job_id, evaluator)
        gathered = [(one, Groups()) for one in evaluators]
        lines = takewhile(lambda line: line[0] < job.rows, self._folder.lines(job.dataset_id))
        chunks = line_chunks(lines, CHUNK_ROWS, CHUNK_BYTES)
        some = False
        while values := await asyncio.to_thread(_next_values, chunks, column):
            some = some or any(value is not None for value in values.values())
            for one, groups in gathered:
                await self._gather(job_id, one, values, groups)
        if not some:
            raise await self._no_column(job, column)
        zero = _counts_zero(job)
        tallies = (await self._jobs.get_overview(workspace_id, job_id)).evaluators
        doubts = {one.label: one.doubt() if job.status.final else None for one in tallies}
        return [replace(groups.figures(one.label, zero=zero), doubt=doubts[one.label]) for one, groups in gathered]

    async def _gather(self, job_id: str, evaluator: JobEvaluator, values: dict[int, Json], groups: Groups) -> None:
        """Count the results of an evaluator for some consecutive rows, given with their values."""
        first, last = min(values), max(values)
        async with aclosing(self._results.figures(job_id, evaluator.position, after=first - 1)) as figures:
            async for one in figures:
                if one.row > last:
                    return
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
        """Compare a job with a later one over the same rows, evaluator by evaluator.

        Evaluators of the same name are compared, whatever their versions; with `by_place`, and no such evaluators,
        those at the same place. Where both jobs count failed rows as 0, so does the comparison.

        Raises:
          InvalidRequest: the jobs have different rows, or no evaluator in common.
        """
        sides = await self._in_common(workspace_id, job_id, other_id, evaluator, by_place=by_place)
        before, after = [await self._jobs.get_job(workspace_id, one) for one in (job_id, other_id)]
        names = [await self._dataset_name(one) for one in (before, after)]
        of_jobs = changes_of_jobs((before, names[0]), (after, names[1]))
        zeros = _counts_zero(before), _counts_zero(after)
        return [
            replace(
                await self._comparison(job_id, other_id, old, new, zeros=zeros),
                changed=(*changes_of_evaluators(old, new), *of_jobs),
            )
            for old, new in sides
        ]

    async def _both_zero(self, workspace_id: str, *job_ids: str) -> bool:
        """Return whether every one of these jobs counts failed rows as 0."""
        return all([_counts_zero(await self._jobs.get_job(workspace_id, one)) for one in job_ids])

    async def _dataset_name(self, job: Job) -> str:
        with suppress(NotFound):
            found = await self._datasets.get_dataset(job.workspace_id, job.dataset_id)
            return f"{found.title}@{found.version}" if found.title else found.id
        return job.dataset_id

    async def labels_in_common(
        self, workspace_id: str, job_id: str, other_id: str, *, evaluator: str | None = None, by_place: bool = False
    ) -> tuple[str, str]:
        """Return the labels, in the first and in the second job, of the first evaluator that both jobs have.

        Raises:
          InvalidRequest: as for `compare`.
        """
        old, new = (await self._in_common(workspace_id, job_id, other_id, evaluator, by_place=by_place))[0]
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
        """Return a scatter plot of one metric in two jobs, for the first evaluator that both have.

        Raises:
          InvalidRequest: as for `compare`.
        """
        old, new = (await self._in_common(workspace_id, job_id, other_id, evaluator, by_place=by_place))[0]
        zero = await self._both_zero(workspace_id, job_id, other_id)
        pairing = Scatter()
        async for one, other in _paired(
            self._results.figures(job_id, old.position), self._results.figures(other_id, new.position)
        ):
            was, now = _value(one, metric, zero=zero), _value(other, metric, zero=zero)
            if was is not None and now is not None:
                pairing.add_pair(one.row, was, now)
        points, binned = await asyncio.to_thread(pairing.points)
        return Pairs(old.label, new.label, metric, len(pairing), points, binned)

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
        """Return the rows whose score changed, in order, for the first evaluator that both jobs have.

        `better` limits these to scores that rose (true) or fell (false). `after` is the last row of the previous page.

        Raises:
          InvalidRequest: as for `compare`.
        """
        old, new = (await self._in_common(workspace_id, job_id, other_id, evaluator, by_place=by_place))[0]
        zero = await self._both_zero(workspace_id, job_id, other_id)
        found: list[Change] = []
        before = self._results.figures(job_id, old.position, after=after)
        later = self._results.figures(other_id, new.position, after=after)
        async with aclosing(_paired(before, later)) as pairs:
            async for one, other in pairs:
                gain = _gain(one, other, zero=zero)
                if not gain or better not in (None, gain > 0):
                    continue
                if len(found) == limit:
                    return ChangePage(tuple(found), found[-1].row)
                found.append(Change(one.row, one.score, other.score))
        return ChangePage(tuple(found), None)

    async def failures(self, workspace_id: str, job_id: str, *, evaluator: str | None = None) -> list[FailureGroup]:
        """Return the failed rows of each evaluator, or of one, grouped by kind of failure."""
        job, evaluators = await self._evaluators(workspace_id, job_id, evaluator)
        found = []
        for one in evaluators:
            failed = self._results.every(job.id, Filter(one.position, Status.FAILED))
            found += await failure_groups(one.label, failed)
        return found

    async def chosen_rows(
        self, workspace_id: str, job_id: str, *, evaluator: str | None, status: str | None, passed: bool | None
    ) -> list[int]:
        """Return the numbers of rows with a result of this status or verdict, of one evaluator or of any (None)."""
        _, evaluators = await self._evaluators(workspace_id, job_id, evaluator)
        position = None if evaluator is None else evaluators[0].position
        return await self._results.rows(job_id, Filter(position, status, passed))

    async def agreement(
        self,
        workspace_id: str,
        job_id: str,
        *,
        label: str | None = None,
        queue: str | None = None,
        evaluator: str | None = None,
    ) -> list[Agreement]:
        """Return how each evaluator of a job agrees with labels of people.

        The labels are in a column of the rows (`label`) or in a label queue (`queue`). Without both, all queues that
        apply to the job are used.

        Raises:
          NotFound: there is no such job, evaluator or queue.
          InvalidRequest: there are no such labels.
        """
        job, evaluators = await self._evaluators(workspace_id, job_id, evaluator)
        labels = None if label is not None else await self._queued_labels(job, queue)
        name = label or ("label queues" if queue is None else f"queue {queue}")
        every = [await self._agreement(job, one, name, labels) for one in evaluators]
        if found := [one for one in every if one is not None]:
            return found
        raise InvalidRequest(
            f"no row has both a label in {name!r} and a result to compare it with; "
            "for labels that are text, results need a `label`"
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
    ) -> Agreement | None:
        """Return the agreement with `labels` by row, or with those in a column."""
        pairs: Counter[tuple[str, str]] = Counter()
        chunks = line_chunks(self._folder.lines(job.dataset_id), CHUNK_ROWS, CHUNK_BYTES)
        lines: dict[int, bytes] = {}

        async def label_of(row: int) -> Json:
            nonlocal lines
            if labels is not None:
                return labels.get(row)
            while row not in lines:
                lines = dict(await asyncio.to_thread(next, chunks, [(row, b"null")]))
            return value_in(await decode_large(lines[row]), label)

        async with aclosing(self._results.every(job.id, Filter(evaluator.position, Status.SCORED))) as results:
            async for one in results:
                human = await label_of(one.row)
                pair = None if human is None else judged_as(human, await decode_large(one.result.encode()))
                if pair is not None:
                    pairs[pair] += 1
                if len(pairs) > CLASSES**2:
                    break
        rows = len(spec_from_json(job.request).shard.indexes(job.rows))
        return agreement(evaluator.label, label, pairs, unlabelled=rows - pairs.total())

    async def evaluators(self, workspace_id: str, job_id: str) -> list[JobEvaluatorReport]:
        """Return the evaluators of a job, as they were when it was created."""
        job = await self._jobs.get_job(workspace_id, job_id)
        return [
            JobEvaluatorReport(one.label, one.name, one.version, one.digest, evaluator_of(one))
            for one in await self._jobs.evaluators(job.id)
        ]

    async def _in_common(
        self, workspace_id: str, job_id: str, other_id: str, evaluator: str | None, *, by_place: bool
    ) -> list[tuple[JobEvaluator, JobEvaluator]]:
        before, after = [await self._jobs.get_job(workspace_id, one) for one in (job_id, other_id)]
        await self._require_same_rows(before, after)
        sides = await self._jobs.evaluators(job_id), await self._jobs.evaluators(other_id)
        pairs = _pairs(*sides) or (list(zip(*sides, strict=False)) if by_place else [])
        if not pairs:
            one, other = (", ".join(side.label for side in evaluators) for evaluators in sides)
            hint = "`by_place=true` (--by-place) compares evaluators at the same place in their jobs"
            problem = Problem("by_place", "evaluators with different names are compared only on request", hint)
            raise InvalidRequest(f"the jobs have no evaluator in common: {one}; {other}", problems=(problem,))
        wanted = [(old, new) for old, new in pairs if evaluator in (None, old.label, new.label, old.name)]
        if not wanted:
            raise InvalidRequest("the jobs have no evaluator in common that could be compared")
        return wanted

    async def _require_same_rows(self, before: Job, after: Job) -> None:
        if before.dataset_id == after.dataset_id:
            return
        one = await self._datasets.get_dataset(before.workspace_id, before.dataset_id)
        other = await self._datasets.get_dataset(after.workspace_id, after.dataset_id)
        if one.facts.digest == other.facts.digest:
            return
        mapped = [spec_from_json(job.request).mapping.get("outputs", "outputs") for job in (before, after)]
        answers = {"outputs", "output", "trace", *(source.partition(".")[0] for source in mapped)}
        if (found := await asyncio.to_thread(rows_differ, self._folder, one, other, answers)) is not None:
            raise InvalidRequest(
                f"the jobs are over different rows ({one.label}, {other.label}): {found}; only jobs over the same rows "
                "can be compared, in which the answers alone may differ"
            )

    async def _of_evaluator(self, job_id: str, evaluator: JobEvaluator, *, most: int, zero: bool) -> EvaluatorFigures:
        """Return the figures of an evaluator; `zero`: a failed row counts as a score of 0 that did not pass."""
        gathered = _Gathered(zero=zero)

        async def fill(values: ValuesByName) -> None:
            nonlocal gathered
            gathered = _Gathered(zero=zero)
            async for one in self._results.figures(job_id, evaluator.position):
                gathered.add(one)
                if one.status != Status.SKIPPED:
                    for name, value in _metrics(one, zero=zero).items():
                        values.add(name, value)

        def figures_of(name: str, values: "array[float]") -> Aggregate:
            rows = gathered.scored + (gathered.failed if zero and name == "score" else 0)
            return aggregate(name, values, nan_count=max(0, rows - len(values)))

        metrics = tuple((await by_name(fill, figures_of, most=most)).values())
        together = await self._results.together(job_id, evaluator.position)
        found = gathered.figures(evaluator.label, metrics, None if together is None else _read_result(together))
        if evaluator_of(evaluator).connects:
            found = replace(found, usage=await _usage(self._results.every(job_id, Filter(evaluator.position))))
        scored = Filter(evaluator.position, Status.SCORED)
        first, _ = await self._results.page(job_id, scored, limit=1)
        if not first or not (rubrics := await rubrics_of(first[0])):
            return found
        return replace(found, metrics=await with_rubrics(found.metrics, rubrics, self._results.every(job_id, scored)))

    async def _comparison(
        self, job_id: str, other_id: str, old: JobEvaluator, new: JobEvaluator, *, zeros: tuple[bool, bool]
    ) -> Comparison:
        """Compare two evaluators of jobs; `zeros`: whether each of the jobs counts failed rows as 0."""
        zero = all(zeros)
        fallen, risen, verdicts, unscored, failed = _Changes(), _Changes(), _Verdicts(zero=zero), 0, 0

        async def fill(values: ValuesByName) -> None:
            nonlocal fallen, risen, verdicts, unscored, failed
            fallen, risen, verdicts, unscored, failed = _Changes(), _Changes(), _Verdicts(zero=zero), 0, 0
            async for one, other in _paired(
                self._results.figures(job_id, old.position), self._results.figures(other_id, new.position)
            ):
                was, now = _metrics(one, zero=zero), _metrics(other, zero=zero)
                for name in was:
                    if name in now:
                        values.add(name, was[name], now[name])
                verdicts.add(one, other)
                failures = [Status(side.status) is Status.FAILED for side in (one, other)]
                failed += any(failures)
                change = Change(one.row, one.score, other.score)
                if (gain := _gain(one, other, zero=zero)) < 0:
                    fallen.add(gain, change, failed=failures[1])
                elif gain > 0:
                    risen.add(-gain, change, failed=failures[0])
                elif (one.score is None) != (other.score is None) and not any(failures):
                    unscored += 1

        def doubt() -> str | None:
            if zeros[0] == zeros[1] or not failed:
                return None
            job = "earlier" if zeros[0] else "later"
            rows = "1 row that failed is" if failed == 1 else f"{failed} rows that failed are"
            return (
                f"only the {job} job counts failed rows as 0, so {rows} left out here, and these figures do not add up "
                "with the means of the jobs; score the rows again with the `failures` of the other job"
            )

        metrics = await by_name(fill, lambda name, *pair: paired_difference(name, zip(*pair, strict=True)))
        return Comparison(
            before=old.label,
            after=new.label,
            changed=(),
            metrics=tuple(metrics[name] for name in sorted(metrics)),
            regressions=fallen.greatest(),
            improvements=risen.greatest(),
            regressed=fallen.count,
            improved=risen.count,
            lost=fallen.failed,
            gained=risen.failed,
            judged=verdicts.rows,
            pass_rate_before=verdicts.rate(0),
            pass_rate_after=verdicts.rate(1),
            warnings_before=await self._jobs.warnings_of(job_id, old.position),
            warnings_after=await self._jobs.warnings_of(other_id, new.position),
            unscored=unscored,
            doubt=doubt(),
        )


def _names(evaluators: Iterable[EvaluatorFigures]) -> int:
    """Return the number of metrics with figures, of all evaluators."""
    return sum(len(one.metrics) for one in evaluators)


class _Changes:
    """Counts rows whose score changed, and keeps the rows with the largest changes."""

    def __init__(self) -> None:
        self.count = 0
        self.failed = 0  # rows among these that failed where their score is the lower one
        self._most: list[tuple[float, Change]] = []

    def add(self, order: float, change: Change, *, failed: bool) -> None:
        self.count += 1
        self.failed += failed
        self._most.append((order, change))
        if len(self._most) > 10 * CHANGES_SHOWN:
            self._most = self._sorted()

    def greatest(self) -> tuple[Change, ...]:
        return tuple(change for _, change in self._sorted())

    def _sorted(self) -> list[tuple[float, Change]]:
        return sorted(self._most, key=lambda pair: pair[0])[:CHANGES_SHOWN]


class _Verdicts:
    """Counts rows by their verdicts in two jobs; `zero`: a row that failed did not pass, where others have verdicts."""

    def __init__(self, *, zero: bool) -> None:
        self._zero = zero
        self._counts: Counter[tuple[bool | Status | None, ...]] = Counter()

    def add(self, *sides: Figures) -> None:
        failed = Status.FAILED
        self._counts[tuple(failed if self._zero and one.status == failed else one.passed for one in sides)] += 1

    @property
    def rows(self) -> int:
        return self._judged().total()

    def rate(self, side: int) -> float | None:
        """Return the share of the rows with a verdict in both jobs that passed in one of them; None without any."""
        judged = self._judged()
        passed = sum(count for verdicts, count in judged.items() if verdicts[side] is True)
        return passed / judged.total() if judged else None

    def _judged(self) -> Counter[tuple[bool | Status | None, ...]]:
        if not all(any(isinstance(verdicts[side], bool) for verdicts in self._counts) for side in (0, 1)):
            return Counter()
        return Counter({verdicts: count for verdicts, count in self._counts.items() if None not in verdicts})


def _counts_zero(job: Job) -> bool:
    """Return whether a job counts a failed row as a score of 0 that did not pass."""
    return spec_from_json(job.request).config.failures is Failures.ZERO


async def _usage(results: AsyncIterable[StoredResult]) -> ModelUsage:
    """Return the use of models by all these results; the cost is None if one of them has none."""
    total = ModelUsage()
    async for one in results:
        used = (await decode_large(one.result.encode())).get("usage")
        if isinstance(used, dict):
            total += ModelUsage(**used)
    return total


class _Gathered:
    """Counts statuses, verdicts and errors of the rows of an evaluator, and gathers their run times."""

    def __init__(self, *, zero: bool = False) -> None:
        self._zero = zero
        self._statuses: Counter[str] = Counter()
        self._verdicts: Counter[bool | None] = Counter()
        self._errors: dict[str, tuple[int, int]] = {}
        self._run_ms = array("d")

    def add(self, one: Figures) -> None:
        self._statuses[one.status] += 1
        if one.status == Status.SKIPPED:
            return
        self._verdicts[one.passed] += 1
        self._run_ms.append(one.run_ms)
        if one.error_code is not None:
            count, example = self._errors.get(one.error_code, (0, one.row))
            self._errors[one.error_code] = (count + 1, example)

    @property
    def scored(self) -> int:
        return self._statuses[Status.SCORED]

    @property
    def failed(self) -> int:
        return self._statuses[Status.FAILED]

    def figures(
        self, label: str, metrics: tuple[Aggregate, ...], together: EvaluationResult | None
    ) -> EvaluatorFigures:
        judged = self._verdicts[True] + self._verdicts[False]
        judged += self.failed if self._zero and judged else 0
        return EvaluatorFigures(
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
            run_ms=self._latency(),
            together=together,
        )

    def _latency(self) -> Latency | None:
        if not self._run_ms:
            return None
        ordered = array("d", sorted(self._run_ms))
        return Latency(*(round(percentile(ordered, p), 3) for p in (50, 90, 99)))


def _metrics(one: Figures, *, zero: bool = False) -> dict[str, float]:
    """Return a row's metrics, and its score under the name `score`, unless a metric has this name.

    With `zero`, a row that failed has a score of 0.
    """
    if zero and one.status == Status.FAILED:
        return {"score": 0.0}
    found: dict[str, Any] = ({} if one.score is None else {"score": one.score}) | orjson.loads(one.metrics)
    return {name: as_float(value) for name, value in found.items()}


def _value(one: Figures, metric: str, *, zero: bool) -> float | None:
    return _score(one, zero=zero) if metric == "score" else _metrics(one).get(metric)


def _score(one: Figures, *, zero: bool) -> float | None:
    """Return a row's score; with `zero`, 0 for a row that failed."""
    return 0.0 if zero and one.status == Status.FAILED else one.score


def _gain(before: Figures, after: Figures, *, zero: bool) -> float:
    """Return by how much a row's score rose: infinity when it failed before, minus infinity when it fails now.

    It is 0 when a row has no score though it did not fail: that is neither better nor worse. With `zero`, a row that
    failed has a score of 0.
    """
    was, now = _score(before, zero=zero), _score(after, zero=zero)
    if was is not None and now is not None:
        return now - was
    if was is None and now is None:
        return 0.0
    if was is None:
        return float("inf") if before.status == Status.FAILED else 0.0
    return float("-inf") if after.status == Status.FAILED else 0.0


async def _paired(
    earlier: AsyncGenerator[Figures, None], later: AsyncGenerator[Figures, None]
) -> AsyncGenerator[tuple[Figures, Figures], None]:
    """Yield the pairs of equal rows from two generators that are sorted by row."""
    one, other = await anext(earlier, None), await anext(later, None)
    while one is not None and other is not None:
        if one.row == other.row:
            yield one, other
        behind = one.row <= other.row, other.row <= one.row
        if behind[0]:
            one = await anext(earlier, None)
        if behind[1]:
            other = await anext(later, None)


def _pairs(earlier: list[JobEvaluator], later: list[JobEvaluator]) -> list[tuple[JobEvaluator, JobEvaluator]]:
    """Return pairs of evaluators with the same name, or without a name and with the same label."""
    by_key = {(one.name, None if one.name else one.label): one for one in later}
    keys = [(one.name, None if one.name else one.label) for one in earlier]
    return [(one, by_key[key]) for one, key in zip(earlier, keys, strict=True) if key in by_key]


async def failure_groups(label: str, failures: AsyncIterable[StoredResult]) -> list[FailureGroup]:
    """Return the groups of an evaluator's failures, the largest first.

    After `GROUPS` groups, further kinds of failures are grouped by error code alone. `label` names the evaluator.
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


def _next_values(chunks: Iterator[list[tuple[int, bytes]]], column: str) -> dict[int, Json]:
    """Return the values that the next rows have in a column, by the number of the row; empty after the last."""
    return {number: value_in(decode_json(line), column) for number, line in next(chunks, [])}


def rows_differ(folder: RowsFolder, one: Dataset, other: Dataset, answers: Collection[str]) -> str | None:
    """Return the first difference of two data sets in words; None if only their `answers` differ. Blocking.

    Of rows with criteria by evaluator, only ids and inputs count.
    """
    if one.facts.rows != other.facts.rows:
        return f"{one.facts.rows} and {other.facts.rows} rows"
    pairs = zip(folder.lines(one.id), folder.lines(other.id), strict=True)
    for (number, line), (_, line_of_other) in pairs:
        was, now = (_case(decode_json(text), answers) for text in (line, line_of_other))
        if not was:
            return f"row {number} has nothing but its answer"
        if was != now:
            differing = [
                name for name in {**was, **now} if name not in was or name not in now or was[name] != now[name]
            ]
            return f"row {number} differs in {listed(differing)}"
    return None


def _case(record: dict[str, Json], answers: Collection[str]) -> dict[str, Json]:
    """Return what makes a row the same test case, whatever the answer to it."""
    if is_keyed(record) and record.get("id") is not None:
        return {name: record[name] for name in ("id", "inputs")}
    return {name: value for name, value in record.items() if name not in answers}
