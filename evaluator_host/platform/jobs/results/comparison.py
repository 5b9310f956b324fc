"""Compares the results of an evaluator in two jobs over the same rows."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from evaluator_host.platform.jobs.results.aggregate import Scatter, ValuesByName, by_name, paired_difference
from evaluator_host.platform.jobs.results.table import Filter, Results, ResultValues
from evaluator_host.types.bounds import difference
from evaluator_host.types.evaluator import Json
from evaluator_host.types.groups import ByValue
from evaluator_host.types.outcome import Status
from evaluator_host.types.results import (
    Change,
    Changed,
    ChangePage,
    ComparedColumn,
    ComparedGroup,
    Comparison,
    Difference,
)
from evaluator_host.types.warnings import WarningCount

CHANGES_SHOWN: Final = 100
GROUPS_COMPARED: Final = 50  # maximum number of values of a column that are compared on their own
_MANY_VALUES: Final = 5  # minimum number of values with an interval for a note that some may be significant by chance


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two sides of a comparison: an evaluator in one of the two jobs."""

    job_id: str
    position: int  # position of the evaluator in the job
    label: str  # name of the evaluator in the job's results
    zero: bool  # whether the job counts failed rows as 0
    gives_scores: bool = True  # whether any row has a score; if none has, failed rows have no score either
    warnings: tuple[WarningCount, ...] = ()  # warnings of the evaluator's results in the job


class ComparedRows:
    """The comparison of an evaluator's results in two jobs, over the rows that both jobs have."""

    def __init__(self, results: Results, before: Side, after: Side) -> None:
        self._results = results
        self._before = before
        self._after = after
        self._zero = before.zero and after.zero  # whether failed rows count as not passed, in both jobs
        # whether failed rows have a score of 0, in both jobs
        self._zero_scores = self._zero and before.gives_scores and after.gives_scores

    async def changes(self, *, better: bool | None, after: int, limit: int) -> ChangePage:
        """Return a page of changed rows: the first `limit` of them after row `after`.

        `better` selects scores that rose (true) or fell (false); None selects both.
        """
        found: list[Change] = []
        async with aclosing(self._pairs(after=after)) as pairs:
            async for one, other in pairs:
                gain = _gain(one, other, zero=self._zero_scores)
                if not gain or better not in (None, gain > 0):
                    continue
                if len(found) == limit:
                    return ChangePage(tuple(found), found[-1].row)
                found.append(Change(one.row, one.score, other.score))
        return ChangePage(tuple(found), None)

    async def scatter(self, metric: str) -> Scatter:
        """Return a scatter plot of a metric: its values in both jobs, for each row."""
        pairing = Scatter()
        async for one, other in self._pairs():
            was, now = (side.value_of(metric, zero=self._zero_scores) for side in (one, other))
            if was is not None and now is not None:
                pairing.add_pair(one.row, was, now)
        return pairing

    async def groups(self, metric: str, column: Callable[[], AsyncGenerator[dict[int, Json], None]]) -> ComparedColumn:
        """Return the difference of a metric for each value of a column.

        `column` begins to read the values of the column, keyed by row number, a few consecutive rows at a time.
        """
        numbers = itertools.count()
        groups = ByValue(lambda: next(numbers), most=GROUPS_COMPARED)  # a number for each group
        rows: Counter[int] = Counter()
        failed = 0

        async def fill(values: ValuesByName) -> None:
            nonlocal failed
            rows.clear()
            failed = 0
            async with aclosing(column()) as chunks:
                async for chunk in chunks:
                    async with aclosing(self._pairs(after=min(chunk) - 1, last=max(chunk))) as pairs:
                        async for one, other in pairs:
                            group = groups.of(chunk[one.row])
                            rows[group] += 1
                            failed += Status.FAILED in (one.status, other.status)
                            was, now = (side.value_of(metric, zero=self._zero_scores) for side in (one, other))
                            if was is not None and now is not None:
                                values.add(str(group), was, now)

        found = await by_name(fill, lambda _, *pair: paired_difference(metric, zip(*pair, strict=True)))
        none = paired_difference(metric, ())
        every = [(value, group) for value, group in groups.ordered() if rows[group]]
        compared = tuple(ComparedGroup(value, rows[group], found.get(str(group), none)) for value, group in every)
        rest = groups.others
        return ComparedColumn(
            before=self._before.label,
            after=self._after.label,
            groups=compared,
            others=ComparedGroup(None, rows[rest], found.get(str(rest), none)) if rows[rest] else None,
            note=_chance(compared),
            doubt=self._doubt(failed),
        )

    async def comparison(self, changed: tuple[Changed, ...]) -> Comparison:
        """Return the differences of all metrics and the rows that changed most.

        `changed` are the differences between the jobs that may be the reason.
        """
        found = _Differences(zero_scores=self._zero_scores, zero_verdicts=self._zero)

        async def fill(values: ValuesByName) -> None:
            nonlocal found
            found = _Differences(zero_scores=self._zero_scores, zero_verdicts=self._zero)
            async for one, other in self._pairs():
                was, now = (side.metrics_with(zero=self._zero_scores) for side in (one, other))
                for name in was:
                    if name in now:
                        values.add(name, was[name], now[name])
                found.add(one, other)

        metrics = await by_name(fill, lambda name, *pair: paired_difference(name, zip(*pair, strict=True)))
        only = [
            max(0, await self._results.count(side.job_id, Filter(side.position)) - found.rows)
            for side in (self._before, self._after)
        ]
        return Comparison(
            before=self._before.label,
            after=self._after.label,
            changed=changed,
            metrics=tuple(metrics[name] for name in sorted(metrics)),
            regressions=found.fallen.greatest(),
            improvements=found.risen.greatest(),
            regressed=found.fallen.count,
            improved=found.risen.count,
            lost=found.fallen.failed,
            gained=found.risen.failed,
            judged=found.verdicts.rows,
            pass_rate_before=found.verdicts.rate(0),
            pass_rate_after=found.verdicts.rate(1),
            pass_difference=await asyncio.to_thread(found.verdicts.difference),
            passes_lost=found.verdicts.moved(lost=True),
            passes_gained=found.verdicts.moved(lost=False),
            passes_lost_rows=tuple(found.lost_rows) if found.verdicts.rows else (),
            warnings_before=self._before.warnings,
            warnings_after=self._after.warnings,
            unscored=found.unscored,
            doubt=self._doubt(found.failed),
            only_before=only[0],
            only_after=only[1],
        )

    def _doubt(self, failed: int) -> str | None:
        """Return why the comparison does not match the jobs' means (only one job counts failed rows as 0), or None."""
        if self._before.zero == self._after.zero or not failed:
            return None
        job = "earlier" if self._before.zero else "later"
        rows = "1 row that failed is" if failed == 1 else f"{failed} rows that failed are"
        return (
            f"only the {job} job counts failed rows as 0. Therefore {rows} left out here, and these results do not "
            "match the means of the jobs; run one of the jobs again with the same `failures` as the other"
        )

    async def _pairs(
        self, *, after: int = -1, last: int | None = None
    ) -> AsyncGenerator[tuple[ResultValues, ResultValues], None]:
        """Yield the two results of each row that both jobs have, in order, from the row after `after` to row `last`."""
        sides = (self._before, self._after)
        earlier, later = (self._results.values(one.job_id, one.position, after=after, last=last) for one in sides)
        async with aclosing(earlier), aclosing(later):
            one, other = await anext(earlier, None), await anext(later, None)
            while one is not None and other is not None:
                if one.row == other.row:
                    yield one, other
                behind = one.row <= other.row, other.row <= one.row
                if behind[0]:
                    one = await anext(earlier, None)
                if behind[1]:
                    other = await anext(later, None)


class _Differences:
    """Counts the rows that both jobs have.

    `zero_scores` says whether a failed row has a score of 0; `zero_verdicts` says whether it counts as not passed.
    """

    def __init__(self, *, zero_scores: bool, zero_verdicts: bool) -> None:
        self._zero_scores = zero_scores
        self.fallen, self.risen = _Changes(), _Changes()
        self.verdicts = _Verdicts(zero=zero_verdicts)
        self.rows = 0
        self.unscored = 0  # rows that have a score in one job, but neither a score nor an error in the other
        self.failed = 0  # rows that failed in either job
        self.lost_rows: list[
            int
        ] = []  # the first rows that passed in the earlier job only, and whose score did not fall

    def add(self, one: ResultValues, other: ResultValues) -> None:
        self.rows += 1
        lost_its_pass = self.verdicts.add(one, other)
        failures = [side.status == Status.FAILED for side in (one, other)]
        self.failed += any(failures)
        change = Change(one.row, one.score, other.score)
        if (gain := _gain(one, other, zero=self._zero_scores)) < 0:
            self.fallen.add(gain, change, failed=failures[1])
        elif gain > 0:
            self.risen.add(-gain, change, failed=failures[0])
        elif (one.score is None) != (other.score is None) and not any(failures):
            self.unscored += 1
        if lost_its_pass and gain >= 0 and len(self.lost_rows) < CHANGES_SHOWN:
            self.lost_rows.append(one.row)


class _Changes:
    """Counts rows whose score changed, and keeps the rows with the largest changes."""

    def __init__(self) -> None:
        self.count = 0
        self.failed = 0  # changed rows whose lower score is 0 because the row failed
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
    """Counts rows by their verdicts in two jobs.

    With `zero`, a failed row counts as not passed, if other rows of the job have verdicts.
    """

    def __init__(self, *, zero: bool) -> None:
        self._zero = zero
        self._counts: Counter[tuple[bool | Status | None, ...]] = Counter()

    def add(self, *sides: ResultValues) -> bool:
        """Count a row. Return whether it passed in the earlier job only."""
        failed = Status.FAILED
        verdicts = tuple(failed if self._zero and one.status == failed else one.passed for one in sides)
        self._counts[verdicts] += 1
        return verdicts[0] is True and verdicts[1] not in (True, None)

    @property
    def rows(self) -> int:
        return self._judged().total()

    def rate(self, side: int) -> float | None:
        """Return the fraction of rows that passed in one of the jobs: `side` is 0 for the earlier, 1 for the later job.

        Only rows with verdicts in both jobs count. The result is None if there are no such rows.
        """
        judged = self._judged()
        passed = sum(count for verdicts, count in judged.items() if verdicts[side] is True)
        return passed / judged.total() if judged else None

    def difference(self) -> Difference | None:
        """Return the difference of the pass rate over the rows with verdicts in both jobs, or None without such rows.

        This takes a few hundred nanoseconds for each row, so call it in a thread.
        """
        pairs = itertools.chain.from_iterable(
            itertools.repeat((float(verdicts[0] is True), float(verdicts[1] is True)), count)
            for verdicts, count in self._judged().items()
        )
        found = paired_difference("passed", pairs)
        return found if found.n else None

    def moved(self, *, lost: bool) -> int:
        """Return the number of rows that passed in the earlier job only, or with `lost=False` in the later job only."""
        passed = [lost, not lost]
        return sum(count for verdicts, count in self._judged().items() if [one is True for one in verdicts] == passed)

    def _judged(self) -> Counter[tuple[bool | Status | None, ...]]:
        if not all(any(isinstance(verdicts[side], bool) for verdicts in self._counts) for side in (0, 1)):
            return Counter()
        return Counter({verdicts: count for verdicts, count in self._counts.items() if None not in verdicts})


def _chance(groups: Sequence[ComparedGroup]) -> str | None:
    """Return how many of many differences seem significant by chance; None for a few differences."""
    tested = sum(one.difference.interval is not None for one in groups)
    if tested < _MANY_VALUES:
        return None
    return f"{tested} values have an interval; even if nothing had changed, about 1 in 20 would seem significant"


def _gain(before: ResultValues, after: ResultValues, *, zero: bool) -> float:
    """Return by how much a row's score rose: infinity if the row failed before, minus infinity if it fails now.

    With `zero`, a row that failed has a score of 0 instead. If a row did not fail but has no score, return 0: this row
    is neither better nor worse.
    """
    was, now = before.score_with(zero=zero), after.score_with(zero=zero)
    if was is not None and now is not None:
        return difference(was, now)
    if was is None and now is None:
        return 0.0
    if was is None:
        return float("inf") if before.status == Status.FAILED else 0.0
    return float("-inf") if after.status == Status.FAILED else 0.0
