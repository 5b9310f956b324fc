"""Tables of data sets, jobs, and what each row of a job came to."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from evaluator_host.store.tables import Table, WorkspaceTable


class DatasetTable(Table):
    """Data sets; the rows themselves are a file. Without a name: given inline, or only jobs need it any more.

    JSON: `columns`, `bad_lines` (the first ones).
    """

    __tablename__ = "datasets"
    __table_args__ = (UniqueConstraint("workspace_id", "name"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id))
    name: Mapped[str | None]
    format: Mapped[str]
    rows: Mapped[int]
    bad_rows: Mapped[int]
    bad_lines: Mapped[str]
    columns: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    digest: Mapped[str]
    created_at: Mapped[datetime]


class JobTable(Table):
    """Jobs. `request` is JSON, as the API took it; `wanted` is what somebody asked for: run, pause or cancel.

    A host that works on a job is its `owner` and says so again and again (`heartbeat_at`); a job whose owner is silent
    is anybody's.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("workspace_id", "idempotency_key"),
        Index("ix_jobs_workspace_id_created_at", "workspace_id", "created_at"),
        Index("ix_jobs_status", "status"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id))
    dataset_id: Mapped[str] = mapped_column(ForeignKey(DatasetTable.id))
    status: Mapped[str]
    wanted: Mapped[str]
    request: Mapped[str]
    idempotency_key: Mapped[str | None]
    owner: Mapped[str | None]
    heartbeat_at: Mapped[datetime | None]
    rows: Mapped[int]
    done: Mapped[int]
    failed: Mapped[int]
    running_s: Mapped[float]
    error: Mapped[str | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class JobEvaluatorTable(Table):
    """The evaluators of a job, as they were when it was made. JSON: `content`, `lock`."""

    __tablename__ = "job_evaluators"

    job_id: Mapped[str] = mapped_column(ForeignKey(JobTable.id, ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    label: Mapped[str]
    name: Mapped[str | None]
    version: Mapped[int | None]
    digest: Mapped[str]
    content: Mapped[str]
    lock: Mapped[str | None]


class ResultTable(Table):
    """What each evaluator of a job made of each row: one, ever. JSON: `metrics`, `result`."""

    __tablename__ = "results"
    __table_args__ = (
        Index("ix_results_status", "job_id", "position", "status", "row"),
        Index("ix_results_score", "job_id", "position", "score", "row"),
    )

    job_id: Mapped[str] = mapped_column(ForeignKey(JobTable.id, ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    row: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    status: Mapped[str]
    score: Mapped[float | None]
    passed: Mapped[bool | None]
    error_code: Mapped[str | None]
    run_ms: Mapped[float]
    metrics: Mapped[str]
    result: Mapped[str]


class TogetherTable(Table):
    """What each evaluator of a job that scores rows together made of them: one, ever. JSON: `result`."""

    __tablename__ = "together"

    job_id: Mapped[str] = mapped_column(ForeignKey(JobTable.id, ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    result: Mapped[str]


class OutputTable(Table):
    """What a job's model answered to each row: one, ever. JSON: `output`, `log` (requests, retries, tokens, times)."""

    __tablename__ = "outputs"

    job_id: Mapped[str] = mapped_column(ForeignKey(JobTable.id, ondelete="CASCADE"), primary_key=True)
    row: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    output: Mapped[str | None]
    error: Mapped[str | None]
    latency_ms: Mapped[float]
    log: Mapped[str]
