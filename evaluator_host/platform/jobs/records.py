"""Jobs and their evaluators as the database stores them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from evaluator_host.platform.jobs.tallies import EvaluatorTally
from evaluator_host.types.jobs import JobStatus


class DesiredState(StrEnum):
    """The state that a caller requested; the host that runs the job carries it out."""

    RUN = "run"
    PAUSE = "pause"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class JobEvaluator:
    """The copy of an evaluator that a job stores when it is created."""

    position: int  # position of the evaluator in the job, from 0
    label: str  # name of the evaluator in results, unique within the job
    name: str | None  # name of a stored evaluator; None for a pasted one
    version: int | None  # version of a stored evaluator; None for a pasted one
    digest: str  # `sha256:…` of the content
    content: str  # the evaluator as JSON, without name and version
    lock: str | None  # the package lock as JSON; None if the packages were not resolved yet, or nothing is pinned


@dataclass(frozen=True, slots=True)
class Job:
    """One row of the job table."""

    id: str
    workspace_id: str
    dataset_id: str
    name: str | None  # name that people gave the job; None for most jobs
    dataset_name: str | None  # name of the data set when the job was created; None for rows that came with the job
    schedule: str | None  # name of the schedule that created the job; None for other jobs
    status: JobStatus  # the present state
    wanted: DesiredState  # the state that a caller requested
    request: str  # mapping, target and config as JSON, see `jobs.spec.StoredSpec`
    idempotency_key: str | None  # chosen by the caller; unique within the workspace
    owner: str | None  # the host that runs the job, see `jobs.scheduler.owner_name`; None while no host does
    heartbeat_at: datetime | None  # when the owner last wrote, by the database's clock
    rows: int  # number of rows to score; the job is done when each evaluator has a result for each row
    done: int  # number of results stored so far
    failed: int  # number of failed results stored so far
    running_s: float  # for how many seconds hosts have run the job
    attempts: int  # number of claims by hosts since a result was last stored, or the job was last released
    error: str | None  # `{"code", "message"}` as JSON, for a job that failed
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    # nodes of a Ray cluster that the job has used, as a JSON list; None if it has used none
    nodes: str | None = None


@dataclass(frozen=True, slots=True)
class JobOverview:
    """A job with its evaluators' scores, the name of its data set, and its number of model calls."""

    job: Job
    evaluators: tuple[EvaluatorTally, ...]  # evaluators of the job, in order
    dataset: str  # name of the data set, or its id if it has no name
    version: int | None  # version of the data set; None if the data set no longer has a name
    newest: int | None  # newest version of that name
    asked: int  # number of rows that were sent to the job's model, failures included
    silent: bool = False  # whether the host that runs the job has written nothing for a while
