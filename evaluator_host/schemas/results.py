"""Responses of the routes for job results."""

from dataclasses import dataclass, field
from typing import Any

from evaluator_host.model.evaluator import Evaluator, Json
from evaluator_host.model.outcome import EvaluationResult, ModelUsage


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin of a histogram.

    Attributes:
      lower_bound: Least value of the bin.
      upper_bound: First value above the bin; the last bin includes it.
      count: Values in the bin.
    """

    lower_bound: float
    upper_bound: float
    count: int


@dataclass(frozen=True, slots=True)
class LevelCount:
    """The number of rows at one level of a rubric.

    Attributes:
      label: Label of the level.
      count: Rows with this level.
    """

    label: str
    count: int


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Statistics of one metric, over its finite values; a field without such a value is None.

    `jobs.results.aggregate` has the formulas and their source.

    Attributes:
      name: The metric.
      count: Finite values.
      nan_count: Values that are not finite, and scored rows without the metric.
      sum: Sum of the values.
      mean: Mean of the values.
      min: Least value.
      max: Greatest value.
      std_dev: Standard deviation of the population.
      variance: Variance of the population.
      percentiles: By name, `p10`, `p20` … `p100`, and `p99`.
      histogram: Ten equal bins, or one when all values are equal.
      rubric_distribution: Levels of a judge's rubric, in the rubric's order; None for any other metric.
      mode_category: Most frequent label of the rubric; the first by name of several.
    """

    name: str
    count: int
    nan_count: int
    sum: float | None = None
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    std_dev: float | None = None
    variance: float | None = None
    percentiles: dict[str, float] | None = None
    histogram: tuple[Bin, ...] = field(default=())
    rubric_distribution: tuple[LevelCount, ...] | None = None
    mode_category: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """The paired difference of one metric between two jobs, row by row.

    Attributes:
      metric: Its name.
      n: Rows with a finite value in both jobs.
      before: Mean of these rows in the earlier job.
      after: Mean of these rows in the later job.
      difference: `after - before`.
      interval: 95 % confidence interval of the difference (Student's t); None for fewer than two rows, or when it is
        not finite.
      significant: Whether the interval excludes zero.
      better: Rows whose value rose.
      worse: Rows whose value fell.
    """

    metric: str
    n: int
    before: float | None
    after: float | None
    difference: float | None
    interval: tuple[float, float] | None
    significant: bool
    better: int
    worse: int


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """The number of failed rows with one error code.

    Attributes:
      code: See `model.outcome.ErrorCode`.
      count: Rows with this code.
      example_row: The first of these rows.
    """

    code: str
    count: int
    example_row: int


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of the run time of rows, in milliseconds.

    Attributes:
      p50: Median.
      p90: 90th percentile.
      p99: 99th percentile.
    """

    p50: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True)
class EvaluatorFigures:
    """Scores, counts and times of one evaluator in a job.

    Attributes:
      evaluator: Its label.
      rows: Rows with a result.
      scored: Rows with a score.
      failed: Rows that failed.
      skipped: Rows that the evaluator was not asked about.
      pass_rate: Passed rows over rows with `passed`, 0 to 1; None without any.
      metrics: Figures of each metric.
      errors: Failed rows by error code, the most frequent code first.
      run_ms: Percentiles of the run time; None before the first row.
      together: The score of all scored rows together, once every row has a result; None for an evaluator that gives
        none.
      usage: What all its rows used of granted models; None for an evaluator without a grant.
    """

    evaluator: str
    rows: int
    scored: int
    failed: int
    skipped: int
    pass_rate: float | None
    metrics: tuple[Aggregate, ...]
    errors: tuple[ErrorCount, ...]
    run_ms: Latency | None
    together: EvaluationResult | None = None
    usage: ModelUsage | None = None


@dataclass(frozen=True, slots=True)
class JobFigures:
    """The answer of `GET /v1/jobs/{id}/results`.

    Attributes:
      evaluators: Figures by evaluator, in the job's order.
    """

    evaluators: tuple[EvaluatorFigures, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A row whose score rose or fell between two jobs.

    Attributes:
      row: Its number in the data set, from 0.
      before: Score in the earlier job; None without one.
      after: Score in the later job; None without one.
    """

    row: int
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of one evaluator in two jobs over the same rows.

    Attributes:
      before: Label of the evaluator in the earlier job.
      after: Its label in the later job.
      metrics: Paired differences of the metrics that both jobs have.
      regressions: Rows whose score fell or is missing now, the worst first; at most 100.
      improvements: Rows whose score rose or was missing before, the best first; at most 100.
      regressed: Number of all regressions.
      improved: Number of all improvements.
    """

    before: str
    after: str
    metrics: tuple[Difference, ...]
    regressions: tuple[Change, ...]
    improvements: tuple[Change, ...]
    regressed: int
    improved: int


@dataclass(frozen=True, slots=True)
class RowDiff:
    """How one row differs between two jobs, for one evaluator.

    Attributes:
      row: Its number in the data set, from 0.
      before: Label of the evaluator in the earlier job.
      after: Its label in the later job.
      outputs: Unified diff of the outputs; empty where they are equal.
      results: The same of score, label, reason and error.
    """

    row: int
    before: str
    after: str
    outputs: str
    results: str


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a scatter plot: rows with the same values in two jobs, or neighbouring values when binned.

    Attributes:
      before: Value in the earlier job; the mean of the rows when binned.
      after: Value in the later job; the mean of the rows when binned.
      count: Rows at this point.
      row: The first of these rows.
    """

    before: float
    after: float
    count: int
    row: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """A scatter plot of one metric in two jobs.

    Attributes:
      before: Label of the evaluator in the earlier job.
      after: Its label in the later job.
      metric: Its name.
      n: Rows with a finite value in both jobs.
      points: By `before`, then `after`; at most 2,000.
      binned: Whether neighbouring values share a point.
    """

    before: str
    after: str
    metric: str
    n: int
    points: tuple[Point, ...]
    binned: bool


@dataclass(frozen=True, slots=True)
class AgreementCell:
    """How often one class of people met one of the evaluator."""

    human: str
    judged: str
    rows: int


@dataclass(frozen=True, slots=True)
class ClassAgreement:
    """Agreement on one class.

    Attributes:
      name: A label; or a number, `true` or `false` as text.
      human: Rows that people gave it.
      judged: Rows that the evaluator gave it.
      recall: Share of the people's rows that the evaluator gave it too.
      precision: Share of the evaluator's rows that people gave it too.
    """

    name: str
    human: int
    judged: int
    recall: float | None
    recall_interval: tuple[float, float] | None
    precision: float | None
    precision_interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How one evaluator of a job agrees with labels of people. Intervals are of 95 %.

    Attributes:
      evaluator: Its label in the job.
      label: Column of the labels, or `queue NAME`, or `label queues`.
      rows: Rows with a label and a result.
      unlabelled: Rows without one of them.
      accuracy: Share of the rows that agree.
      kappa: Cohen's kappa; None where all rows have one class.
      weighted_kappa: With quadratic weights, where all classes are numbers.
      classes: By class, in order.
      confusion: Every pair of classes that occurs.
    """

    evaluator: str
    label: str
    rows: int
    unlabelled: int
    accuracy: float
    accuracy_interval: tuple[float, float] | None
    kappa: float | None
    kappa_interval: tuple[float, float] | None
    weighted_kappa: float | None
    classes: tuple[ClassAgreement, ...]
    confusion: tuple[AgreementCell, ...]


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Rows of one evaluator with the same failure: same code, type, line, and message except for numbers.

    Attributes:
      evaluator: Label of the evaluator.
      code: See `model.outcome.ErrorCode`.
      type: Type of the exception; None without one.
      message: Message of the first row.
      line: Line of the evaluator's code, from 1; None without one.
      count: Rows of the group.
      rows: The first five of these rows.
      hint: What to do, for the first row; None where nothing is known to help.
    """

    evaluator: str
    code: str
    type: str | None
    message: str
    line: int | None
    count: int
    rows: tuple[int, ...]
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class JobRow:
    """A row of a job with the result of one evaluator.

    Attributes:
      index: Number of the row in the data set, from 0.
      evaluator: Label of the evaluator.
      row: The row of the data set, unmapped.
      result: As `POST /v1/evaluate` answers it.
      output: Answer of the job's model; None without a target.
      request: Log of the model call: attempts, tokens, cost, times, request and response;
        None without a target.
    """

    index: int
    evaluator: str
    row: dict[str, Json]
    result: dict[str, Any]
    output: Json = None
    request: dict[str, Any] | None = None

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
    """One page of a job's rows.

    Attributes:
      rows: In the order that was asked for.
      next_cursor: Cursor of the next page; None on the last page.
      total: Number of all rows that the filters let through; None unless asked for.
    """

    rows: tuple[JobRow, ...]
    next_cursor: str | None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class JobRowDetail:
    """A row of a job with the results of all its evaluators.

    Attributes:
      index: Number of the row in the data set, from 0.
      row: The row of the data set, unmapped.
      given: The mapped row, as `POST /v1/evaluate` takes it; None when the mapping failed.
      results: The results so far, in the order of the evaluators.
    """

    index: int
    row: dict[str, Json]
    given: dict[str, Json] | None
    results: tuple[JobRow, ...]


@dataclass(frozen=True, slots=True)
class JobEvaluatorReport:
    """An evaluator of a job, as it was when the job was created.

    Attributes:
      label: Its name in results.
      name: Of a stored evaluator; None for a pasted one.
      version: Of a stored evaluator; None for a pasted one.
      digest: `sha256:…` of its content.
      evaluator: Code, settings and pins.
    """

    label: str
    name: str | None
    version: int | None
    digest: str
    evaluator: Evaluator
