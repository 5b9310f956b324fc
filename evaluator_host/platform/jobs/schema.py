"""The tables of jobs: their evaluators, results and models' answers."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint, func, select, text
from sqlalchemy.orm import Mapped, mapped_column

from evaluator_host.platform.datasets.table import DatasetTable
from evaluator_host.platform.store.tables import ByteCount, Size, Table, WorkspaceTable


class JobTable(Table):
    """Jobs (class `Job`). `request` and `nodes` are JSON; `wanted` is the state that a caller requested.

    `dataset_name` is the name that the data set had when the job was created; `stored_bytes` is the size of the job's
    results and of its model's answers. The host that runs a job is its `owner` and keeps changing `heartbeat_at`; if
    the heartbeat stops changing, any other host may claim the job.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("workspace_id", "idempotency_key"),
        Index("ix_jobs_workspace_id_created_at", "workspace_id", "created_at"),
        Index("ix_jobs_status", "status", "workspace_id", "created_at"),
        Index("ix_jobs_dataset_id_created_at", "dataset_id", "created_at"),
        Index("ix_jobs_dataset_name", "workspace_id", "dataset_name", "status", "created_at"),
        Index("ix_jobs_workspace_id_schedule", "workspace_id", "schedule", "finished_at"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id))
    dataset_id: Mapped[str] = mapped_column(ForeignKey(DatasetTable.id))
    name: Mapped[str | None]
    dataset_name: Mapped[str | None]
    schedule: Mapped[str | None]
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
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    error: Mapped[str | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    stored_bytes: Mapped[int] = mapped_column(BigInteger, server_default="0")
    nodes: Mapped[str | None]

    @classmethod
    def sizes(cls) -> Iterable[Size]:
        """Yield the queries that add up the sizes of requests, results and models' answers."""
        yield Size("jobs", cls.workspace_id, select(func.sum(cls.stored_bytes + ByteCount(cls.request))))


class JobEvaluatorTable(Table):
    """Copies of evaluators that belong to a job, with their scores so far. `content`, `lock` and `warnings` are JSON.

    `judged` is the number of rows with a verdict, `scores` the number of rows with a score, and `total` the sum of
    these scores, as a fraction: a sum of floats would be rounded, and its rounding errors would depend on the order of
    the rows. `numbers` is the number of rows with a score or a metric; `doubted` of these rows have a warning that
    makes the score or metric doubtful. `previous_job` is the newest earlier job that completed over the same rows with
    scores that can be relied on.
    `scores_mark` is the sum of `row_mark` over the rows with a score, and `failed_mark` is the sum over the failed
    rows.
    """

    __tablename__ = "job_evaluators"
    __table_args__ = (Index("ix_job_evaluators_name", "name"),)

    job_id: Mapped[str] = mapped_column(ForeignKey(JobTable.id, ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    label: Mapped[str]
    name: Mapped[str | None]
    version: Mapped[int | None]
    digest: Mapped[str]
    content: Mapped[str]
    lock: Mapped[str | None]
    scored: Mapped[int] = mapped_column(server_default="0")
    failed: Mapped[int] = mapped_column(server_default="0")
    skipped: Mapped[int] = mapped_column(server_default="0")
    judged: Mapped[int] = mapped_column(server_default="0")
    passed: Mapped[int] = mapped_column(server_default="0")
    scores: Mapped[int] = mapped_column(server_default="0")
    total: Mapped[str] = mapped_column(server_default="0")
    numbers: Mapped[int] = mapped_column(server_default="0")
    doubted: Mapped[int] = mapped_column(server_default="0")
    scores_mark: Mapped[int] = mapped_column(BigInteger, server_default="0")
    failed_mark: Mapped[int] = mapped_column(BigInteger, server_default="0")
    warnings: Mapped[str] = mapped_column(server_default="[]")
    previous_job: Mapped[str | None]
    previous_position: Mapped[int | None]

    @classmethod
    def sizes(cls) -> Iterable[Size]:
        """Yield the query that adds up the sizes of copied evaluators, with their package locks."""
        size = ByteCount(cls.content) + func.coalesce(ByteCount(cls.lock), 0)
        yield Size("jobs", JobTable.workspace_id, select(func.sum(size)).join(JobTable))


def _index_of_given(column: str) -> Index:
    """Return a database index over the results that have a value in `column`."""
    given = text(f"{column} IS NOT NULL")
    columns = ("job_id", "position", column, "row")
    return Index(f"ix_results_{column}", *columns, sqlite_where=given, postgresql_where=given)


class ResultTable(Table):
    """Results of jobs: one per evaluator and row. `metrics` and `result` are JSON.

    `shared` is the id of a `SharedPartTable` row with the other fields of `result`; None if `result` is complete.
    """

    __tablename__ = "results"
    __table_args__ = (
        Index("ix_results_status", "job_id", "position", "status", "row"),
        Index("ix_results_score", "job_id", "position", "score", "row"),
        _index_of_given("passed"),
        _index_of_given("error_code"),
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
    shared: Mapped[int | None] = mapped_column(BigInteger)


class SharedPartTable(Table):
    """Parts that many results of a job share: evaluator, environment, fields that are seldom set. `content` is JSON."""

    __tablename__ = "shared_parts"

    job_id: Mapped[str] = mapped_column(ForeignKey(JobTable.id, ondelete="CASCADE"), primary_key=True)
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    content: Mapped[str]


class TogetherTable(Table):
    """Scores over all rows of a job together, at most one for each evaluator. `result` is JSON."""

    __tablename__ = "together"

    job_id: Mapped[str] = mapped_column(ForeignKey(JobTable.id, ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    result: Mapped[str]


class OutputTable(Table):
    """Answers of a job's model, one for each row. `output` and `log` (attempts, tokens, times) are JSON."""

    __tablename__ = "outputs"

    job_id: Mapped[str] = mapped_column(ForeignKey(JobTable.id, ondelete="CASCADE"), primary_key=True)
    row: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    output: Mapped[str | None]
    error: Mapped[str | None]
    latency_ms: Mapped[float]
    log: Mapped[str]
