"""Responses of the routes for job results."""

from array import array
from dataclasses import dataclass, field
from typing import Annotated, Any

from .doc import Doc
from .evaluator import Evaluator, Json
from .numbers import percentile
from .outcome import EvaluationResult, ModelUsage, Status
from .warnings import WarningCount


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin of a histogram."""

    lower_bound: Annotated[float, Doc("Lowest value of the bin.")]
    upper_bound: Annotated[float, Doc("Upper bound of the bin, which only the last bin includes.")]
    count: Annotated[int, Doc("Number of values in the bin.")]


@dataclass(frozen=True, slots=True)
class LevelCount:
    """The number of rows at one level of a rubric."""

    label: Annotated[str, Doc("Label of the level.")]
    count: Annotated[int, Doc("Number of rows with this level.")]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Statistics over the finite values of one metric. A statistic is None if the metric has no finite values.

    `jobs.results.aggregate` has the formulas and their source.
    """

    name: Annotated[str, Doc("Name of the metric.")]
    count: Annotated[int, Doc("Number of finite values.")]
    nan_count: Annotated[int, Doc("Number of values that are not finite, and of scored rows that lack the metric.")]
    sum: Annotated[float | None, Doc("Sum of the values.")] = None
    mean: Annotated[float | None, Doc("Mean of the values.")] = None
    min: Annotated[float | None, Doc("Smallest value.")] = None
    max: Annotated[float | None, Doc("Largest value.")] = None
    std_dev: Annotated[float | None, Doc("Standard deviation of the population.")] = None
    variance: Annotated[float | None, Doc("Variance of the population.")] = None
    std_error: Annotated[
        float | None,
        Doc(
            "Standard error of the mean, `sqrt(variance / (count - 1))`; None for fewer than two values, or if it is "
            "not finite."
        ),
    ] = None
    percentiles: Annotated[
        dict[str, float] | None,
        Doc("`p10`, `p20` … `p100`, `p99`: the value at position p(n + 1)/100 of n sorted values, interpolated."),
    ] = None
    histogram: Annotated[tuple[Bin, ...], Doc("Ten equal bins, or one when all values are equal.")] = field(default=())
    rubric_distribution: Annotated[
        tuple[LevelCount, ...] | None,
        Doc("Levels of a judge's rubric, in the rubric's order; None for any other metric."),
    ] = None
    mode_category: Annotated[
        str | None,
        Doc("Most frequent label of the rubric; if several are equally frequent, the first in alphabetical order."),
    ] = None


@dataclass(frozen=True, slots=True)
class Difference:
    """The paired difference of one metric between two jobs, row by row."""

    metric: Annotated[str, Doc("Name of the metric.")]
    n: Annotated[int, Doc("Number of rows with a finite value in both jobs.")]
    before: Annotated[float | None, Doc("Mean of the compared rows in the earlier job.")]
    after: Annotated[float | None, Doc("Mean of the compared rows in the later job.")]
    difference: Annotated[float | None, Doc("`after - before`.")]
    interval: Annotated[
        tuple[float, float] | None,
        Doc(
            "The 95 % confidence interval of the difference (Student's t), within -1..1 where all values are in "
            "0..1; None for fewer "
            "than ten rows, or when it is not finite."
        ),
    ]
    significant: Annotated[bool, Doc("Whether the interval excludes zero.")]
    better: Annotated[int, Doc("Number of rows whose value rose.")]
    worse: Annotated[int, Doc("Number of rows whose value fell.")]
    note: Annotated[str | None, Doc("Why there is no interval: `too few rows`; None when there is one.")] = None


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """The number of failed rows with one error code."""

    code: Annotated[str, Doc("Error code, such as `timeout` (docs/api.md).")]
    count: Annotated[int, Doc("Number of rows with this error code.")]
    example_row: Annotated[int, Doc("Number of the first row with this error code.")]


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of the time in which the code ran for a row, in milliseconds, without rows for which it never ran."""

    p50: Annotated[float, Doc("Median.")]
    p90: Annotated[float, Doc("90th percentile.")]
    p99: Annotated[float, Doc("99th percentile.")]


class RunTimes:
    """Collects the run times of rows, 8 bytes each; percentiles need more memory while they are computed."""

    def __init__(self) -> None:
        self._run_ms = array("d")

    def add(self, status: str, run_ms: float) -> None:
        """Add a row, unless its code never ran, as when the row lacks an input."""
        if run_ms > 0 or status == Status.SCORED:
            self._run_ms.append(run_ms)

    def latency(self) -> Latency | None:
        """Return the percentiles; None if no row has run."""
        ordered = sorted(self._run_ms)
        return Latency(*(round(percentile(ordered, p), 3) for p in (50, 90, 99))) if ordered else None


@dataclass(frozen=True, slots=True)
class EvaluatorStatistics:
    """Scores, counts and times of one evaluator in a job."""

    evaluator: Annotated[str, Doc("Label of the evaluator.")]
    rows: Annotated[int, Doc("Number of rows with a result.")]
    scored: Annotated[int, Doc("Number of rows that the evaluator scored; the score of some may be null.")]
    failed: Annotated[int, Doc("Number of rows that failed.")]
    skipped: Annotated[int, Doc("Number of rows that the evaluator did not have to score.")]
    pass_rate: Annotated[
        float | None,
        Doc("Of the rows with a verdict (`passed`), the fraction that passed, 0 to 1; None if no row has a verdict."),
    ]
    metrics: Annotated[tuple[Aggregate, ...], Doc("Statistics of each metric.")]
    errors: Annotated[
        tuple[ErrorCount, ...], Doc("Number of failed rows for each error code, the most frequent code first.")
    ]
    run_ms: Annotated[Latency | None, Doc("Percentiles of the run time; None if the code has not run for any row.")]
    together: Annotated[
        EvaluationResult | None,
        Doc(
            "The score that the evaluator computes over all scored rows together, once every row has a result; None if "
            "it computes none."
        ),
    ] = None
    usage: Annotated[
        ModelUsage | None,
        Doc("How much all rows of the evaluator used granted models; None for an evaluator without a grant."),
    ] = None
    warnings: Annotated[
        tuple[WarningCount, ...], Doc("Warnings of the evaluator's rows; those that make a score doubtful come first.")
    ] = ()
    doubt: Annotated[
        str | None, Doc("Why the scores cannot be relied on, as in `scores` of the job; None if they can.")
    ] = None
    not_passed: Annotated[int | None, Doc("Number of rows with `passed` false; None if no row has `passed`.")] = None
    judged: Annotated[int, Doc("Number of rows over which the pass rate is computed.")] = 0
    pass_interval: Annotated[
        tuple[float, float] | None, Doc("Wilson's 95 % interval of the pass rate; None if there is no pass rate.")
    ] = None


@dataclass(frozen=True, slots=True)
class JobStatistics:
    """The response to `GET /v1/jobs/{id}/results`."""

    evaluators: Annotated[tuple[EvaluatorStatistics, ...], Doc("Statistics of each evaluator, in the job's order.")]


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """Scores and counts of the rows that have one value in a column."""

    value: Annotated[Json, Doc("The value; null for the rows that have no value.")]
    rows: Annotated[int, Doc("Number of rows with a result.")]
    scored: Annotated[int, Doc("Number of rows that the evaluator scored; the score of some may be null.")]
    failed: Annotated[int, Doc("Number of rows that failed.")]
    skipped: Annotated[int, Doc("Number of rows that the evaluator did not have to score.")]
    mean: Annotated[float | None, Doc("Mean score; None if no row has a score.")]
    mean_rows: Annotated[int, Doc("Number of rows over which the mean is computed.")]
    pass_rate: Annotated[
        float | None,
        Doc("Of the rows with a verdict (`passed`), the fraction that passed, 0 to 1; None if no row has a verdict."),
    ]
    std_error: Annotated[float | None, Doc("Standard error of the mean; None for fewer than two values.")] = None
    judged: Annotated[int, Doc("Number of rows over which the pass rate is computed.")] = 0
    pass_interval: Annotated[
        tuple[float, float] | None, Doc("Wilson's 95 % interval of the pass rate; None if there is no pass rate.")
    ] = None


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Scores of one evaluator for each value of a column, the response to `GET /v1/jobs/{id}/groups`."""

    evaluator: Annotated[str, Doc("Label of the evaluator.")]
    groups: Annotated[tuple[GroupStatistics, ...], Doc("The first 200 values, sorted; rows without a value last.")]
    others: Annotated[
        GroupStatistics | None,
        Doc("The rows with any other value, or with a value of over 200 characters; None if there are no such rows."),
    ] = None
    doubt: Annotated[
        str | None, Doc("Why the scores cannot be relied on, as in `scores` of the job; None if they can.")
    ] = None


@dataclass(frozen=True, slots=True)
class Change:
    """A row whose score rose or fell between two jobs."""

    row: Annotated[int, Doc("Number of the row in the data set, from 0.")]
    before: Annotated[float | None, Doc("Score in the earlier job; None if it has none.")]
    after: Annotated[float | None, Doc("Score in the later job; None if it has none.")]


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Rows whose score changed, in order, the response to `GET /v1/jobs/{id}/compare/{other}/changes`."""

    changes: Annotated[tuple[Change, ...], Doc("At most `limit` rows.")]
    next: Annotated[int | None, Doc("`after` of the next page; None if this is the last page.")]


@dataclass(frozen=True, slots=True)
class Changed:
    """A difference between two jobs that may explain different results."""

    what: Annotated[
        str,
        Doc(
            "`code`, `settings`, `packages`, `model`, `limits` of the evaluator; `mapping`, `data`, `rows`, "
            "`failed rows` (how they count) of the job."
        ),
    ]
    before: Annotated[str, Doc("Value of the setting in the earlier job, shortened.")]
    after: Annotated[str, Doc("Value of the setting in the later job.")]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of one evaluator in two jobs over the same rows.

    Where both jobs count failed rows as 0 (`failures: zero`), failed rows have a score of 0 here and did not pass.
    """

    before: Annotated[str, Doc("Label of the evaluator in the earlier job.")]
    after: Annotated[str, Doc("Label of the evaluator in the later job.")]
    changed: Annotated[tuple[Changed, ...], Doc("Differences between the jobs; empty if there are none.")]
    metrics: Annotated[tuple[Difference, ...], Doc("Paired differences of the metrics that both jobs have.")]
    regressions: Annotated[
        tuple[Change, ...], Doc("Rows whose score fell, or that fail now, the worst first; at most 100.")
    ]
    improvements: Annotated[
        tuple[Change, ...], Doc("Rows whose score rose, or that failed before, the best first; at most 100.")
    ]
    regressed: Annotated[int, Doc("Number of all regressions.")]
    improved: Annotated[int, Doc("Number of all improvements.")]
    lost: Annotated[int, Doc("Number of regressions that fail now.")] = 0
    gained: Annotated[int, Doc("Number of improvements that failed before.")] = 0
    judged: Annotated[int, Doc("Number of rows with a verdict in both jobs.")] = 0
    pass_rate_before: Annotated[
        float | None,
        Doc(
            "Of the rows with a verdict in both jobs, the fraction that passed in the earlier job, 0 to 1; None if "
            "there "
            "are no such rows."
        ),
    ] = None
    pass_rate_after: Annotated[
        float | None, Doc("Of the rows with a verdict in both jobs, the fraction that passed in the later job.")
    ] = None
    pass_difference: Annotated[
        Difference | None,
        Doc("Difference of the pass rate over these rows, from -1 to 1, as the metric `passed`; None without them."),
    ] = None
    passes_lost: Annotated[
        int, Doc("Number of rows with a verdict in both jobs that passed only in the earlier job.")
    ] = 0
    passes_gained: Annotated[
        int, Doc("Number of rows with a verdict in both jobs that passed only in the later job.")
    ] = 0
    passes_lost_rows: Annotated[
        tuple[int, ...], Doc("Of the rows in `passes_lost`, the first 100 that are not regressions by score.")
    ] = ()
    warnings_before: Annotated[
        tuple[WarningCount, ...], Doc("Warnings of the evaluator's rows in the earlier job.")
    ] = ()
    warnings_after: Annotated[tuple[WarningCount, ...], Doc("Warnings of the evaluator's rows in the later job.")] = ()
    unscored: Annotated[
        int,
        Doc("Number of rows with a score in only one of the jobs, and without a failure: neither better nor worse."),
    ] = 0
    doubt: Annotated[
        str | None,
        Doc(
            "Why these results do not match the means of the jobs: failed rows count as 0 in only one of the jobs. "
            "None if they match."
        ),
    ] = None
    only_before: Annotated[int, Doc("Number of rows with a result only in the earlier job; they are left out.")] = 0
    only_after: Annotated[int, Doc("Number of rows with a result only in the later job; they are left out.")] = 0


@dataclass(frozen=True, slots=True)
class ComparedGroup:
    """The rows of two jobs that have one value in a column."""

    value: Annotated[Json, Doc("The value; null for the rows that have no value.")]
    rows: Annotated[int, Doc("Number of rows with a result in both jobs.")]
    difference: Annotated[Difference, Doc("Difference of the metric over these rows.")]


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """The comparison of two jobs for each value of a column, as `GET /v1/jobs/{id}/compare/{other}/groups` returns it.

    If both jobs count failed rows as 0, failed rows have a score of 0 here, too.
    """

    before: Annotated[str, Doc("Label of the evaluator in the earlier job.")]
    after: Annotated[str, Doc("Label of the evaluator in the later job.")]
    groups: Annotated[tuple[ComparedGroup, ...], Doc("The first 50 values, sorted; rows without a value last.")]
    others: Annotated[
        ComparedGroup | None,
        Doc("The rows with any other value, or with a value of over 200 characters; None if there are no such rows."),
    ] = None
    note: Annotated[
        str | None, Doc("How many of so many values may seem significant by chance; None for fewer than five.")
    ] = None
    doubt: Annotated[str | None, Doc("As in `Comparison`.")] = None


@dataclass(frozen=True, slots=True)
class RowDiff:
    """The difference of one row between two jobs, for one evaluator."""

    row: Annotated[int, Doc("Number of the row in the data set, from 0.")]
    before: Annotated[str, Doc("Label of the evaluator in the earlier job.")]
    after: Annotated[str, Doc("Label of the evaluator in the later job.")]
    outputs: Annotated[str, Doc("Unified diff of the outputs; empty if they are equal.")]
    results: Annotated[str, Doc("Unified diff of score, label, reason and error; empty if they are equal.")]


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a scatter plot: the rows that have these values in two jobs.

    If values are grouped into bins, the point also counts rows with neighbouring values.
    """

    before: Annotated[float, Doc("Value in the earlier job; the mean of the rows when binned.")]
    after: Annotated[float, Doc("Value in the later job; the mean of the rows when binned.")]
    count: Annotated[int, Doc("Number of rows that this point stands for.")]
    row: Annotated[int, Doc("Number of the first row that this point stands for.")]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A scatter plot of one metric in two jobs."""

    before: Annotated[str, Doc("Label of the evaluator in the earlier job.")]
    after: Annotated[str, Doc("Label of the evaluator in the later job.")]
    metric: Annotated[str, Doc("Name of the metric.")]
    n: Annotated[int, Doc("Number of rows with a finite value in both jobs.")]
    points: Annotated[tuple[Point, ...], Doc("Points sorted by `before`, then `after`; at most 2,000.")]
    binned: Annotated[bool, Doc("Whether several neighbouring values are drawn as one point.")]


@dataclass(frozen=True, slots=True)
class AgreementCell:
    """The number of rows with one pair of classes: people's class (`human`) and the evaluator's (`judged`)."""

    human: str
    judged: str
    rows: int
    first: Annotated[tuple[int, ...], Doc("Numbers of the first five rows with this pair.")] = ()


@dataclass(frozen=True, slots=True)
class ClassAgreement:
    """How well people and the evaluator agree on one class."""

    name: Annotated[str, Doc("A label; or a number, `true` or `false` as text.")]
    human: Annotated[int, Doc("Number of rows to which people gave this class.")]
    judged: Annotated[int, Doc("Number of rows to which the evaluator gave this class.")]
    recall: Annotated[
        float | None,
        Doc("Of the rows to which people gave this class, the fraction to which the evaluator gave it, too."),
    ]
    recall_interval: tuple[float, float] | None
    precision: Annotated[
        float | None,
        Doc("Of the rows to which the evaluator gave this class, the fraction to which people gave it, too."),
    ]
    precision_interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well one evaluator in a job agrees with people's labels; confidence intervals are at 95 %."""

    evaluator: Annotated[str, Doc("Label of the evaluator in the job.")]
    label: Annotated[str, Doc("Where the labels are: the name of a column, `queue NAME`, or `label queues`.")]
    rows: Annotated[int, Doc("Number of rows with a label and a result that can be compared with it.")]
    unlabelled: Annotated[int, Doc("Number of rows without a label.")]
    accuracy: Annotated[
        float | None, Doc("Fraction of the rows on which people and the evaluator agree; None if there are no rows.")
    ]
    accuracy_interval: tuple[float, float] | None
    kappa: Annotated[
        float | None,
        Doc("Cohen's kappa; None if there are no rows, or the evaluator or people gave all of them the same class."),
    ]
    kappa_interval: tuple[float, float] | None
    weighted_kappa: Annotated[float | None, Doc("Kappa with quadratic weights; None unless all classes are numbers.")]
    classes: Annotated[tuple[ClassAgreement, ...], Doc("Statistics of each class, in order.")]
    confusion: Annotated[tuple[AgreementCell, ...], Doc("Every pair of classes that occurs.")]
    failed: Annotated[int, Doc("Number of labelled rows that failed.")] = 0
    skipped: Annotated[int, Doc("Number of labelled rows that the evaluator did not have to score.")] = 0
    waiting: Annotated[int, Doc("Number of labelled rows without a result.")] = 0
    incomparable: Annotated[
        int, Doc("Number of labelled rows with a result that has no score, verdict or label to compare with the label.")
    ] = 0
    left_out: Annotated[
        str, Doc("Rows that do not count, and why: `379 rows without a label, 1 labelled row that failed`.")
    ] = ""
    note: Annotated[
        str | None,
        Doc(
            "Notes for readers: rows without `passed`, whose score decides; labels and results of different kinds; "
            "people or an evaluator who gave only one verdict. None if there is nothing to note."
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Rows of one evaluator with the same failure: same code, type, line, and message except for numbers."""

    evaluator: Annotated[str, Doc("Label of the evaluator.")]
    code: Annotated[str, Doc("Error code, such as `timeout` (docs/api.md).")]
    type: Annotated[str | None, Doc("Type of the exception; None if there is none.")]
    message: Annotated[str, Doc("Message of the first row.")]
    line: Annotated[int | None, Doc("Line of the evaluator's code, from 1; None if it is not known.")]
    count: Annotated[int, Doc("Number of rows in the group.")]
    rows: Annotated[tuple[int, ...], Doc("The first five rows of the group.")]
    hint: Annotated[str | None, Doc("What to do, for the first row; None if nothing is known to help.")] = None


@dataclass(frozen=True, slots=True)
class JobRow:
    """A row of a job with the result of one evaluator."""

    index: Annotated[int, Doc("Number of the row in the data set, from 0.")]
    evaluator: Annotated[str, Doc("Label of the evaluator.")]
    row: Annotated[dict[str, Json], Doc("The row of the data set, before it was mapped.")]
    result: Annotated[dict[str, Any], Doc("The result, as `POST /v1/evaluate` returns it.")]
    output: Annotated[
        Json,
        Doc(
            "The answer of the job's model. On a page of rows, also outputs that come from a template. Otherwise None."
        ),
    ] = None
    request: Annotated[
        dict[str, Any] | None,
        Doc(
            "Log of the model call: attempts, tokens, cost, times, request and response; None if the job has no target."
        ),
    ] = None

    def record(self) -> dict[str, Json]:
        """Return the row as a flat dictionary, for `Client.jobs.records`."""
        result = self.result
        return {
            "index": self.index,
            "evaluator": self.evaluator,
            "status": result["status"],
            "score": result["score"],
            "passed": result["passed"],
            "error": result["error"]["code"] if result["error"] else None,
            "run_ms": result["timing_ms"]["run"],
            **({} if self.request is None else {"output": self.output}),
            **{f"metrics.{name}": value for name, value in result["metrics"].items()},
            **{f"row.{name}": value for name, value in self.row.items()},
        }


@dataclass(frozen=True, slots=True)
class JobRowPage:
    """One page of a job's rows."""

    rows: Annotated[tuple[JobRow, ...], Doc("Rows in the requested order.")]
    next_cursor: Annotated[str | None, Doc("Cursor of the next page; None on the last page.")]
    total: Annotated[int | None, Doc("Number of all rows that match the filters; None unless requested.")] = None


@dataclass(frozen=True, slots=True)
class JobRowDetail:
    """A row of a job with the results of all its evaluators."""

    index: Annotated[int, Doc("Number of the row in the data set, from 0.")]
    row: Annotated[dict[str, Json], Doc("The row of the data set, before it was mapped.")]
    given: Annotated[
        dict[str, Json] | None, Doc("The mapped row, as `POST /v1/evaluate` accepts it; None when the mapping failed.")
    ]
    results: Annotated[tuple[JobRow, ...], Doc("The results so far, in the order of the evaluators.")]


@dataclass(frozen=True, slots=True)
class JobEvaluatorReport:
    """An evaluator of a job, as it was when the job was created."""

    label: Annotated[str, Doc("Label of the evaluator; results refer to it by this label.")]
    name: Annotated[str | None, Doc("Name of a stored evaluator; None for a pasted one.")]
    version: Annotated[int | None, Doc("Version of a stored evaluator; None for a pasted one.")]
    digest: Annotated[str, Doc("`sha256:…` of the evaluator's content.")]
    evaluator: Annotated[Evaluator, Doc("Code, settings and pins.")]
