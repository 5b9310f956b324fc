"""Counts of each evaluator in a job: rows, scores, verdicts and warnings."""

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.types.bounds import difference
from evaluator_host.types.warnings import WarningCount, doubt


@dataclass(frozen=True, slots=True)
class Tally:
    """The row counts, mean score and warnings that one evaluator has in a job so far.

    Methods with `failures_are_zero` count failed rows as 0, or as not passed, if other rows have scores or verdicts:
    without any scores there is no mean, and without any verdicts no pass rate.
    """

    scored: int
    failed: int
    skipped: int
    judged: int  # number of rows with a verdict, `passed` true or false
    passed: int
    scores: int  # number of rows with a score
    total: str  # exact sum of these scores, a fraction such as `5/4`
    numbers: int = 0  # number of rows with a score or a metric
    doubted: int = 0  # number of rows with a warning that makes the score or a metric doubtful
    scores_mark: int = 0  # sum of `row_mark` over the rows with a score
    failed_mark: int = 0  # sum of `row_mark` over the failed rows
    warnings: str = "[]"  # JSON, see `types.warnings.WarningCount`

    def doubt(self) -> str | None:
        """Return why the scores cannot be relied on; None if they can."""
        return doubt(
            rows=self.scored + self.failed + self.skipped,
            failed=self.failed,
            numbers=self.numbers,
            doubted=self.doubted,
            warnings=self.counted_warnings(),
        )

    def counted_warnings(self) -> tuple[WarningCount, ...]:
        """Return the warnings of the rows. Warnings that make scores doubtful come first."""
        return read_warnings(self.warnings)

    def mean_score(self, *, failures_are_zero: bool) -> float | None:
        """Return the mean score; None if no row has a score."""
        count = self.mean_rows(failures_are_zero=failures_are_zero)
        return float(Fraction(self.total) / count) if count else None

    def mean_rows(self, *, failures_are_zero: bool) -> int:
        """Return the number of rows over which the mean is computed."""
        return self.scores + (self.failed if failures_are_zero and self.scores else 0)

    def pass_rate(self, *, failures_are_zero: bool) -> float | None:
        """Of the rows with a verdict, return the fraction that passed; None if no row has a verdict."""
        count = self.judged_rows(failures_are_zero=failures_are_zero)
        return self.passed / count if count else None

    def judged_rows(self, *, failures_are_zero: bool) -> int:
        """Return the number of rows over which the pass rate is computed."""
        return self.judged + (self.failed if failures_are_zero and self.judged else 0)

    def averaged_rows(self, *, failures_are_zero: bool) -> tuple[int, int]:
        """Return a fingerprint of the rows that the mean includes: their number, and the sum of their `row_mark`.

        With `failures_are_zero`, the mean includes the failed rows.
        """
        marks = self.scores_mark + failures_are_zero * self.failed_mark
        return self.mean_rows(failures_are_zero=failures_are_zero), marks


@dataclass(frozen=True, slots=True)
class EvaluatorTally:
    """The scores of an evaluator in a job so far, and in the previous job over the same rows."""

    job_id: str  # id of the job
    label: str  # name of the evaluator in the job's results
    name: str | None  # name of a stored evaluator; None for a pasted one
    version: int | None  # version of a stored evaluator; None for a pasted one
    tally: Tally  # counts and scores of the evaluator in the job
    # the newest earlier job that completed over the same rows with scores that can be relied on; None if there is none
    previous_job: str | None
    previous: Tally | None  # scores of the same evaluator in that job; None if that job was deleted
    together: bool = False  # whether the evaluator has a score over all rows together
    failed_together: bool = False  # whether that score failed
    previous_is_zero: bool = False  # whether the previous job counts failed rows as 0

    def doubt(self) -> str | None:
        """Return why the scores so far, or the score over all rows, cannot be relied on. None if they can."""
        counts = self.tally
        rows = counts.scored + counts.failed + counts.skipped
        if self.together and not counts.numbers and counts.failed < rows:
            return None
        over_all = (
            "the score over all rows together failed: see `together` in the summary" if self.failed_together else None
        )
        return counts.doubt() or over_all

    def change(self, *, failures_are_zero: bool) -> float | None:
        """Return the mean minus the previous job's mean; None if the two means cannot be compared.

        They cannot be compared if the scores of either job are doubtful, or if the means are over different rows. If a
        row failed and only one of the two jobs counts failed rows as 0, the means are over different rows.
        `failures_are_zero` is whether this job counts failed rows as 0.
        """
        if self.previous is None or self.doubt() is not None or self.previous.doubt() is not None:
            return None
        sides = ((self.tally, failures_are_zero), (self.previous, self.previous_is_zero))
        now, before = (one.averaged_rows(failures_are_zero=zero) for one, zero in sides)
        if now != before:
            return None
        means = [one.mean_score(failures_are_zero=zero) for one, zero in sides]
        return None if means[0] is None or means[1] is None else float(f"{difference(means[1], means[0]):.12g}")


def row_mark(row: int) -> int:
    """Return a 32-bit number for a row. Two different sets of rows have the same sum in one of four billion cases."""
    return int.from_bytes(hashlib.blake2b(b"%d" % row, digest_size=4).digest())


def read_warnings(stored: str) -> tuple[WarningCount, ...]:
    """Parse JSON that says how often each warning occurred."""
    return _READ_WARNINGS(stored)


_READ_WARNINGS: Final = Adapter(tuple[WarningCount, ...]).read_json
