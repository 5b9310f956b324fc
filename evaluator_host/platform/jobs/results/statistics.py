"""Computes the statistics of an evaluator's results in a job."""

from array import array
from collections import Counter
from collections.abc import AsyncIterable
from dataclasses import replace
from typing import Final

from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.platform.jobs.queue import StoredResult
from evaluator_host.platform.jobs.records import JobEvaluator
from evaluator_host.platform.jobs.results.aggregate import ValuesByName, aggregate, by_name, rubrics_of, with_rubrics
from evaluator_host.platform.jobs.results.table import Filter, Results, ResultValues
from evaluator_host.platform.jobs.spec import evaluator_of
from evaluator_host.types.json_values import decode_large
from evaluator_host.types.numbers import wilson
from evaluator_host.types.outcome import EvaluationResult, ModelUsage, Status
from evaluator_host.types.results import Aggregate, ErrorCount, EvaluatorStatistics, RunTimes

_read_result: Final = Adapter(EvaluationResult).read_json


async def statistics_of(
    results: Results, job_id: str, evaluator: JobEvaluator, *, most: int, zero: bool
) -> EvaluatorStatistics:
    """Return an evaluator's statistics, for at most `most` metrics.

    With `zero`, a failed row has a score of 0 and did not pass, if other rows have scores or verdicts.
    """
    gathered = _Gathered(zero=zero)

    async def fill(values: ValuesByName) -> None:
        nonlocal gathered
        gathered = _Gathered(zero=zero)
        async for one in results.values(job_id, evaluator.position):
            gathered.add(one)
            for name, value in one.metrics_with(zero=False).items():
                values.add(name, value)
                # only known metrics are counted, since the metrics of a skipped row may have any names
                if one.status == Status.SKIPPED and name in values.arrays:
                    gathered.beside_skips[name] += 1
        for _ in range(gathered.zeros):
            values.add("score", 0.0)

    def of_metric(name: str, values: "array[float]") -> Aggregate:
        rows = gathered.scored + gathered.beside_skips[name] + (gathered.zeros if name == "score" else 0)
        return aggregate(name, values, nan_count=max(0, rows - len(values)))

    metrics = tuple((await by_name(fill, of_metric, most=most)).values())
    together = await results.together(job_id, evaluator.position)
    found = gathered.statistics(evaluator.label, metrics, None if together is None else _read_result(together))
    if evaluator_of(evaluator).connects:
        found = replace(found, usage=await _usage(results.every(job_id, Filter(evaluator.position))))
    scored = Filter(evaluator.position, Status.SCORED)
    first, _ = await results.page(job_id, scored, limit=1)
    if not first or not (rubrics := await rubrics_of(first[0])):
        return found
    return replace(found, metrics=await with_rubrics(found.metrics, rubrics, results.every(job_id, scored)))


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
            pass_interval=wilson(self._verdicts[True], judged),
        )
