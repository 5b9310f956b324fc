"""A job as it is kept.

queued ─▶ running ─▶ completed | failed | cancelled
│    ▲
▼    │
paused (and queued again when its host shuts down)
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Select, select

from evaluator_host.schemas.jobs import JobStatus
from evaluator_host.store.tables import JobTable


class DesiredState(StrEnum):
    """What somebody asked a job to do; the host that works on it obeys."""

    RUN = "run"
    PAUSE = "pause"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class JobEvaluator:
    """An evaluator of a job, as it was when the job was made. `content` and `lock` are JSON."""

    position: int
    label: str
    name: str | None
    version: int | None
    digest: str
    content: str
    lock: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """A job. `request` is JSON; `done` and `failed` count results, of which there are rows times evaluators."""

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


def select_jobs() -> Select[Any]:
    """Return the query of all jobs."""
    return select(JobTable.__table__)


def as_job(row: Any) -> Job:
    """Return a selected row as a job."""
    fields = dict(row._mapping)  # noqa: SLF001 - its public name for columns by name
    return Job(**{**fields, "status": JobStatus(fields["status"]), "wanted": DesiredState(fields["wanted"])})
