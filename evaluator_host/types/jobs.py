"""Responses of the job routes."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from .doc import Doc
from .evaluator import Isolation, Json, ModelBudget, Replay
from .outcome import ModelUsage
from .warnings import WarningCount


class JobStatus(StrEnum):
    """The state of a job; `completed`, `failed` and `cancelled` are final."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Return whether the job has ended."""
        return self in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)


class Executor(StrEnum):
    """The place where a job evaluates its rows."""

    LOCAL = "local"
    RAY = "ray"


class NodeState(StrEnum):
    """The state of a node that evaluates rows of a job on a Ray cluster."""

    STARTING = "starting"
    READY = "ready"
    EXCLUDED = "excluded"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class JobNode:
    """A node that evaluates rows of a job."""

    name: Annotated[str, Doc("Address of the node in the cluster.")]
    state: Annotated[
        NodeState, Doc("Whether the node works; `excluded` when it cannot start sandboxes or install the packages.")
    ] = NodeState.READY
    rows: Annotated[int, Doc("Number of results that came from the node, over all evaluators.")] = 0
    reason: Annotated[str | None, Doc("Why the node is excluded or lost.")] = None


class Failures(StrEnum):
    """How failed rows count in the mean score and the pass rate: not at all, or as a score of 0 that did not pass."""

    EXCLUDE = "exclude"
    ZERO = "zero"


@dataclass(frozen=True, slots=True)
class JobConfig:
    """Parallelism and limits of a job."""

    parallelism: Annotated[
        int | None,
        Doc(
            "Number of sandboxes at once, for all evaluators of the job; None for the host's limit for one evaluator.",
            ge=1,
            le=1024,
        ),
    ] = None
    limit_samples: Annotated[
        int | None, Doc("Number of rows to score, starting with the first; None for all rows.", ge=1)
    ] = None
    shard: Annotated[
        str | None,
        Doc(
            "Which of these rows to score: `3/16` for rows whose index modulo 16 is 3; None for all.",
            pattern=r"^\d{1,7}/\d{1,7}$",
        ),
    ] = None
    isolation: Annotated[
        Isolation, Doc("`row` for a process or context per row, `batch` for rows that may share one.")
    ] = Isolation.ROW
    max_failures: Annotated[
        int | None,
        Doc(
            "Maximum number of failed results (rows times evaluators); beyond it, the job fails. None for no limit.",
            ge=0,
        ),
    ] = None
    replay: Annotated[Replay, Doc("Whether answers of granted models are recorded and reused.")] = Replay.OFF
    budget: Annotated[
        ModelBudget, Doc("Limits on the job's use of granted models; each evaluator also has its own budget for a row.")
    ] = field(default_factory=ModelBudget)
    executor: Annotated[Executor, Doc("`ray` to evaluate the rows on the nodes of the operator's Ray cluster.")] = (
        Executor.LOCAL
    )
    failures: Annotated[Failures, Doc("How failed rows count in the mean and the pass rate.")] = Failures.EXCLUDE


@dataclass(frozen=True, slots=True)
class JobEstimate:
    """How much a whole job will use models and the network, estimated from its first rows."""

    rows: Annotated[int, Doc("Number of results that the job would have: rows times evaluators.")]
    sampled: Annotated[int, Doc("Number of results on which the estimate is based.")]
    failed: Annotated[int, Doc("Number of these results that failed.")]
    sample: Annotated[ModelUsage, Doc("How much these results used models.")]
    usage: Annotated[
        ModelUsage,
        Doc(
            "The use of models by all rows, in proportion to the sample. With `replay: prefer`, recorded answers of "
            "the sample "
            "count as requests, since other rows may have none."
        ),
    ]
    over: Annotated[
        tuple[str, ...],
        Doc("Why the job, or the workspace today, would exceed a budget, so that rows fail with `budget_exceeded`."),
    ]
    target: Annotated[
        ModelUsage | None,
        Doc(
            "The use of the job's target for all rows, with the tokens and cost that the target reports. No budget "
            "counts it. None for a job without a target."
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class EvaluatorReads:
    """The parts of a row that one of a job's evaluators reads."""

    evaluator: Annotated[str, Doc("Label of the evaluator in the job.")]
    outputs: Annotated[bool, Doc("Whether the code reads the outputs.")]
    inputs: Annotated[tuple[str, ...], Doc("Keys of the inputs, or of the variables, that the code reads.")]


@dataclass(frozen=True, slots=True)
class MappingAdvice:
    """A suggested mapping from a data set's columns to the fields that evaluators read."""

    columns: Annotated[tuple[str, ...], Doc("Columns of the data set.")]
    mapping: Annotated[dict[str, str], Doc("The suggested mapping.")]
    reads: Annotated[
        tuple[EvaluatorReads, ...], Doc("What each evaluator reads, except evaluators that could not be loaded.")
    ]


@dataclass(frozen=True, slots=True)
class Target:
    """The model or agent that writes a job's outputs. A model is on an OpenAI-compatible endpoint.

    The requests follow OpenAI's API reference: `POST {base_url}/chat/completions`, or `/completions`.
    """

    base_url: Annotated[
        str, Doc("`https://host/v1`, without a user, a query and `/chat/completions`.", min_length=1, max_length=2000)
    ]
    model: Annotated[str, Doc("Name of the model, sent as `model` in each request.", min_length=1, max_length=200)]
    api_key: Annotated[str | None, Doc("Name of the secret to send as a bearer token; None for no key.")] = None
    prompt_template: Annotated[str | None, Doc("Template of the user's message; None when `messages` are given.")] = (
        None
    )
    messages: Annotated[
        tuple[dict[str, Json], ...], Doc('Chat messages `{"role", "content"}` whose texts are templates.')
    ] = ()
    system: Annotated[
        str | None, Doc("Template of a system message before the other messages; None for no system message.")
    ] = None
    inference: Annotated[dict[str, Json], Doc("Further fields of the request: `temperature`, `max_tokens`, …")] = field(
        default_factory=dict
    )
    concurrency: Annotated[int, Doc("Number of requests at once, 1 to 256.", ge=1, le=256)] = 8
    timeout_s: Annotated[
        float, Doc("Seconds for one request, from the first byte sent to the last byte read.", gt=0, le=3600)
    ] = 60.0
    retries: Annotated[int, Doc("Retries after a failed request.", ge=0, le=20)] = 4
    completion: Annotated[
        bool,
        Doc("Whether to send the prompt to `/completions`; an endpoint without this path gets it as a chat message."),
    ] = False
    agent: Annotated[
        dict[str, Json] | None, Doc("How to call an agent at `base_url` (docs/jobs.md#agents); None for a model.")
    ] = None


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The progress of a job."""

    rows: Annotated[int, Doc("Number of results that the finished job has: rows times evaluators.")]
    done: Annotated[int, Doc("Number of results so far.")]
    failed: Annotated[int, Doc("Number of results so far that failed.")]
    rows_per_s: Annotated[
        float | None,
        Doc(
            "Results per second while the job ran; None before the first result, and while the job's host does not "
            "respond."
        ),
    ]
    eta_s: Annotated[
        float | None, Doc("Seconds left at the rate `rows_per_s`; None before the first result and after the end.")
    ]
    generated: Annotated[
        int | None, Doc("Number of rows for which the model was called; None for a job without a target.")
    ] = None


@dataclass(frozen=True, slots=True)
class JobScore:
    """The scores that one of a job's evaluators has given so far."""

    evaluator: Annotated[str, Doc("Label of the evaluator in the job.")]
    rows: Annotated[int, Doc("Number of rows that the evaluator has to score.")]
    scored: Annotated[int, Doc("Number of rows that the evaluator scored; the score of some may be null.")]
    failed: Annotated[int, Doc("Number of rows that failed; see `config.failures`.")]
    skipped: Annotated[int, Doc("Number of rows that the evaluator did not have to score.")]
    mean: Annotated[
        float | None,
        Doc(
            "Mean score of the rows that have one; with `failures: zero`, failed rows count as 0. "
            "None if no row has a score."
        ),
    ]
    pass_rate: Annotated[
        float | None,
        Doc(
            "Of the rows with a verdict, the fraction that passed, 0 to 1; with `failures: zero`, failed rows count as "
            "not "
            "passed. "
            "None if no row has a verdict."
        ),
    ]
    previous: Annotated[
        str | None,
        Doc(
            "Id of the newest job before this one that completed over the same rows with an evaluator of this name, "
            "and whose scores can be relied on."
        ),
    ]
    change: Annotated[
        float | None,
        Doc(
            "The mean minus the mean of `previous`; None if there is no such job, if rows or `failures` differ, or if "
            "the scores are doubtful."
        ),
    ]
    warnings: Annotated[
        tuple[WarningCount, ...], Doc("Warnings of the evaluator's rows; those that make a score doubtful come first.")
    ] = ()
    doubt: Annotated[
        str | None,
        Doc(
            "Why the scores of an ended job cannot be relied on: all rows failed, none has a score, each score is "
            "doubtful, or the score of all rows together failed. None if a score can be relied on."
        ),
    ] = None
    mean_rows: Annotated[int, Doc("Number of rows over which the mean is computed.")] = 0
    judged: Annotated[int, Doc("Number of rows over which the pass rate is computed.")] = 0

    @property
    def not_compared(self) -> bool:
        """Return whether the mean cannot be compared with the previous job's mean.

        The means cannot be compared if this mean is doubtful, or was computed over other rows.
        """
        return self.previous is not None and self.mean is not None and self.change is None


@dataclass(frozen=True, slots=True)
class EvaluatorScore:
    """Scores of a stored evaluator in one job: one point of the evaluator's trend."""

    job: Annotated[str, Doc("Id of the job.")]
    name: Annotated[str | None, Doc("Name of the job; None if it has none.")]
    dataset: Annotated[
        str | None, Doc("Name of the data set when the job was created; None for rows that came with the job.")
    ]
    version: Annotated[int | None, Doc("Version of the evaluator.")]
    finished_at: Annotated[datetime | None, Doc("In UTC.")]
    score: Annotated[JobScore, Doc("Counts, mean and pass rate.")]
    created_at: Annotated[datetime, Doc("In UTC.")]


@dataclass(frozen=True, slots=True)
class ScoredJob:
    """A completed job of a score history: one column of the table."""

    id: Annotated[str, Doc("Id of the job.")]
    title: Annotated[str, Doc("Name of the job; if it has none, its evaluators, data set and day.")]
    created_at: Annotated[datetime, Doc("In UTC.")]


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """The scores of a stored evaluator in the jobs of a score history: one line of the table."""

    evaluator: Annotated[str, Doc("Name of the evaluator, without a version.")]
    scores: Annotated[
        tuple[JobScore | None, ...],
        Doc(
            "One item for each job: the scores of the highest version in the job, or None for a job without this "
            "evaluator."
        ),
    ]


@dataclass(frozen=True, slots=True)
class ScoreHistory:
    """A table of evaluators and jobs over one data set, the response to `GET /v1/datasets/{name}/scores`."""

    dataset: Annotated[str, Doc("Name that the data set had when the jobs were created.")]
    jobs: Annotated[tuple[ScoredJob, ...], Doc("The newest completed jobs, the oldest of them first.")]
    evaluators: Annotated[tuple[ScoreLine, ...], Doc("The scores of each evaluator, sorted by its name.")]


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job failed."""

    code: Annotated[str, Doc("Code of the exception, or `max_failures`, or `internal`.")]
    message: Annotated[str, Doc("The reason; for `max_failures` it begins with the message of the first failed row.")]
    row: Annotated[int | None, Doc("Number of the first failed row, for `max_failures`.")] = None


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job, the response to `GET /v1/jobs/{id}`."""

    id: Annotated[str, Doc("`job_` and 20 hex digits.")]
    name: Annotated[str | None, Doc("Name that a user gave the job; None if it has none.")]
    status: Annotated[JobStatus, Doc("State of the job.")]
    evaluators: Annotated[tuple[str, ...], Doc("Labels of the job's evaluators, in order.")]
    scores: Annotated[tuple[JobScore, ...], Doc("What each evaluator has scored so far.")]
    dataset: Annotated[str, Doc("Name of the data set; its id if it has no name.")]
    dataset_name: Annotated[
        str | None, Doc("Name that the data set had when the job was created; None for rows that came with the job.")
    ]
    schedule: Annotated[str | None, Doc("Name of the schedule that created the job; None for other jobs.")]
    mapping: Annotated[dict[str, str], Doc("The column or template for each row field, as in the request.")]
    target: Annotated[Target | None, Doc("The model that writes the outputs; None if the data set has them.")]
    config: Annotated[JobConfig, Doc("Parallelism and limits.")]
    progress: Annotated[JobProgress, Doc("Counts, speed and remaining time.")]
    error: Annotated[JobError | None, Doc("Why the job failed; None if it did not fail.")]
    created_at: Annotated[datetime, Doc("In UTC.")]
    started_at: Annotated[datetime | None, Doc("When a host first ran the job, in UTC.")]
    finished_at: Annotated[datetime | None, Doc("When the job ended, in UTC.")]
    nodes: Annotated[tuple[JobNode, ...], Doc("The nodes that a job with the executor `ray` has used so far.")] = ()
    doubt: Annotated[
        str | None,
        Doc("The `doubt` of each evaluator that has one, with the evaluator's label before it; None if there is none."),
    ] = None
    title: Annotated[
        str,
        Doc(
            "Name of the job; if it has none, its evaluators, data set with the column of answers, and day: `exact · "
            "qa (answer) · 25 Nov`."
        ),
    ] = ""
    dataset_version: Annotated[
        int | None,
        Doc("Version of the job's data set; None for rows that came with the job, and once the data set was deleted."),
    ] = None
    dataset_newest: Annotated[
        int | None,
        Doc("Newest version of the data set; higher than `dataset_version` if it was replaced or edited since."),
    ] = None
    running_s: Annotated[
        float, Doc("Seconds for which hosts have run the job. Time in the queue, and time paused, do not count.")
    ] = 0.0

    @property
    def unit(self) -> str:
        """Return the noun for the counts of the job's progress: `row`, or `result` if the job has several evaluators.

        With several evaluators, each row has one result per evaluator.
        """
        return "row" if len(self.evaluators) == 1 else "result"
