"""Jobs, as a host shows them."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from evaluator_host.model.evaluator import Isolation, Json


class JobStatus(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether nothing can follow."""
        return self in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class JobConfig:
    """The pace of a job.

    Attributes:
      parallelism: Sandboxes at once, over all its evaluators; None for what the host gives one evaluator.
      limit_samples: Rows of the data set to take, from the first on.
      isolation: Of rows from each other.
      max_failures: The job fails when more rows than this have failed.
    """

    parallelism: int | None = None
    limit_samples: int | None = None
    isolation: Isolation = Isolation.ROW
    max_failures: int | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """An OpenAI-compatible endpoint that makes the outputs first.

    Attributes:
      base_url: `https://host/v1`.
      model: Sent as `model`.
      api_key: Name of the secret that is the key; None for no key.
      prompt_template: One user message; or None when `messages` are given.
      messages: Chat messages `{role, content}` whose contents are templates.
      system: Put before them as the system's message; a template too.
      inference: Sent along: temperature, max_tokens, …
      concurrency: Requests at once.
      timeout_s: Of one request.
      retries: After the first try.
      completion: The prompt is a text to go on with (`/completions`); where the API has no such thing it is a message.
    """

    base_url: str
    model: str
    api_key: str | None = None
    prompt_template: str | None = None
    messages: tuple[dict[str, Json], ...] = ()
    system: str | None = None
    inference: dict[str, Json] = field(default_factory=dict)
    concurrency: int = 8
    timeout_s: float = 60.0
    retries: int = 4
    completion: bool = False


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a job is.

    Attributes:
      rows: Results to come: rows times evaluators.
      done: Results there are.
      failed: Of them, those of rows that failed.
      rows_per_s: Results a second while it was at work; None before the first.
      eta_s: Seconds to go at that rate.
      generated: Rows that the model was asked, for a job with a target.
    """

    rows: int
    done: int
    failed: int
    rows_per_s: float | None
    eta_s: float | None
    generated: int | None = None


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job failed."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job as `GET /v1/jobs/{id}` answers it. `dataset` is its name, or its id when it has none."""

    id: str
    status: JobStatus
    evaluators: tuple[str, ...]
    dataset: str
    mapping: dict[str, str]
    target: Target | None
    config: JobConfig
    progress: JobProgress
    error: JobError | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
