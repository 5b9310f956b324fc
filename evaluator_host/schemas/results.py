"""What jobs came to, as a host shows it."""

from dataclasses import dataclass, field
from typing import Any

from evaluator_host.model.evaluator import Evaluator, Json
from evaluator_host.model.outcome import EvaluationResult


@dataclass(frozen=True, slots=True)
class Bin:
    """Values from `lower_bound` up to, but not including, `upper_bound`; the last bin includes it."""

    lower_bound: float
    upper_bound: float
    count: int


@dataclass(frozen=True, slots=True)
class LevelCount:
    """A level of a rubric, and how many rows have it."""

    label: str
    count: int


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Figures of one metric. All are None when no value is finite.

    Attributes:
      name: The metric.
      count: Finite values.
      nan_count: Values that are not finite, or missing where a row was scored.
      percentiles: `p10` … `p100`, and `p99`.
      histogram: Ten bins, or one when all values are equal.
      rubric_distribution: Of a judge's rubric, in the rubric's order; None of anything else.
      mode_category: Its most frequent label; of several the first by name.
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
    """One metric before and after, over the rows that have it in both runs.

    Attributes:
      n: Those rows.
      before: Mean in the earlier run.
      after: Mean in the later one.
      difference: `after - before`.
      interval: The 95 % confidence interval of the difference; None with fewer than two rows, or when it is not finite.
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
    """Rows that failed for one reason, and the first of them."""

    code: str
    count: int
    example_row: int


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of the milliseconds that rows ran."""

    p50: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True)
class EvaluatorFigures:
    """What one evaluator made of a job's rows.

    Attributes:
      pass_rate: Over the rows that passed or did not.
      together: What the rows that scored came to together, where the evaluator says that, once all have a result.
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


@dataclass(frozen=True, slots=True)
class JobFigures:
    """The answer of `GET /v1/jobs/{id}/results`."""

    evaluators: tuple[EvaluatorFigures, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A row whose score rose or fell; None where it has no score in that run."""

    row: int
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """An evaluator in two jobs over the same rows.

    Attributes:
      before: Its label in the earlier job.
      after: Its label in the later one.
      metrics: Paired differences, one per metric that both have.
      regressions: Rows whose score fell or that fail now, the worst first.
      improvements: Rows whose score rose or that failed before, the best first.
      regressed: How many regressions there are; at most `CHANGES_SHOWN` are listed.
      improved: How many improvements there are.
    """

    before: str
    after: str
    metrics: tuple[Difference, ...]
    regressions: tuple[Change, ...]
    improvements: tuple[Change, ...]
    regressed: int
    improved: int


@dataclass(frozen=True, slots=True)
class Point:
    """Rows of two jobs with the same values, or nearly: how many, and the first of them."""

    before: float
    after: float
    count: int
    row: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """A metric of the rows that two jobs have in common, for a scatter plot.

    Attributes:
      before: Label of the evaluator in the earlier job.
      after: Its label in the later one.
      n: Rows that have the metric in both.
      points: By `before`, then `after`; at most `POINTS`.
      binned: Whether neighbours were put together: each point is then where they are on average.
    """

    before: str
    after: str
    metric: str
    n: int
    points: tuple[Point, ...]
    binned: bool


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Rows of one evaluator that failed alike.

    Attributes:
      message: Of the first of them; numbers in it may differ.
      line: Of the evaluator's code, where the error has one.
      rows: The first of them.
    """

    evaluator: str
    code: str
    type: str | None
    message: str
    line: int | None
    count: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JobRow:
    """A row of a job with one evaluator's result.

    Attributes:
      index: Its number in the data set, from 0.
      evaluator: Label of the evaluator.
      row: As it is in the data set.
      result: As `POST /v1/evaluate` answers it.
      output: What the job's model answered, where it has one.
      request: How the model was asked: attempts, tokens, times.
    """

    index: int
    evaluator: str
    row: dict[str, Json]
    result: dict[str, Any]
    output: Json = None
    request: dict[str, Any] | None = None

    def record(self) -> dict[str, Json]:
        """Return it flat, as `Client.jobs.records` has it."""
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
    """Some rows, and the cursor of those that follow; None at the end. `total` is how many there are, when asked."""

    rows: tuple[JobRow, ...]
    next_cursor: str | None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class JobRowDetail:
    """A row of a job with all that came of it.

    Attributes:
      row: As it is in the data set.
      given: What evaluators got, as `POST /v1/evaluate` takes it; None when it could not be made.
      results: By evaluator, in the job's order; those there are yet.
    """

    index: int
    row: dict[str, Json]
    given: dict[str, Json] | None
    results: tuple[JobRow, ...]


@dataclass(frozen=True, slots=True)
class JobEvaluatorReport:
    """An evaluator as a job runs it, whatever became of it since. `name` and `version` are None for a pasted one."""

    label: str
    name: str | None
    version: int | None
    digest: str
    evaluator: Evaluator
