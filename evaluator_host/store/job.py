"""A job as the database stores it.

queued ─▶ running ─▶ completed | failed | cancelled
│    ▲
▼    │
paused (and queued again when its host shuts down)
"""

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Select, select

from evaluator_host.schemas.jobs import JobStatus
from evaluator_host.store.tables import JobTable


class DesiredState(StrEnum):
    """The state that a caller asked for; the host that runs the job brings it there."""

    RUN = "run"
    PAUSE = "pause"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class JobEvaluator:
    """An evaluator of a job, copied when the job was created.

    Attributes:
      position: Its place in the job, from 0.
      label: Its name in results, unique within the job.
      name: Name of a stored evaluator; None for a pasted one.
      version: Version of a stored evaluator; None for a pasted one.
      digest: `sha256:…` of the content.
      content: The evaluator as JSON, without name and version.
      lock: The package lock as JSON; None where it was not resolved yet, or nothing is pinned.
    """

    position: int
    label: str
    name: str | None
    version: int | None
    digest: str
    content: str
    lock: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """A row of the table of jobs.

    Attributes:
      status: The present state.
      wanted: The state that a caller asked for.
      request: Mapping, target and config as JSON, see `jobs.spec.StoredSpec`.
      idempotency_key: Chosen by the caller; unique within the workspace.
      owner: The host that runs the job, see `jobs.scheduler.owner_name`; None while no host does.
      heartbeat_at: When the owner last wrote, by its own clock.
      rows: Rows of the data set to score. The job is done after `rows` times evaluators results.
      done: Results stored so far.
      failed: Results stored so far whose status is `failed`.
      running_s: Seconds during which a host ran the job.
      error: `{"code", "message"}` as JSON, for a job that failed.
    """

    id: str
    workspace_id: str
    dataset_id: str
    status: JobStatus
    wanted: DesiredState
    request: str
    idempotency_key: str | None
    owner: str | None
    heartbeat_at: datetime | None
    rows: int
    done: int
    failed: int
    running_s: float
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobOverview:
    """A job together with everything that a report of it shows.

    Attributes:
      labels: Of its evaluators, in order.
      dataset: Name of its data set, or the id of one without a name.
      asked: Rows that its model was asked, failures included.
    """

    job: Job
    labels: tuple[str, ...]
    dataset: str
    asked: int


_FIELDS: Final = tuple(field.name for field in fields(Job))


def select_jobs() -> Select[Any]:
    """Return the query for all jobs."""
    return select(JobTable.__table__)


def as_job(row: Any) -> Job:
    """Return a job from a selected row, which may have further columns."""
    columns = row._mapping  # noqa: SLF001 - its public name for columns by name
    values = {name: columns[name] for name in _FIELDS}
    return Job(**{**values, "status": JobStatus(values["status"]), "wanted": DesiredState(values["wanted"])})
