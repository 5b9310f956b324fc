"""Tables of named evaluators, the secrets that jobs refer to, and the traces that evaluators scored."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, LargeBinary, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from evaluator_host.store.tables import Table, WorkspaceTable


class EvaluatorTable(Table):
    """Named evaluators; `sampling` is the share of live traces to score. Removing one removes its versions."""

    __tablename__ = "evaluators"
    __table_args__ = (UniqueConstraint("workspace_id", "name"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id))
    name: Mapped[str]
    description: Mapped[str]
    sampling: Mapped[float]
    newest: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class EvaluatorVersionTable(Table):
    """Versions, never changed. JSON: `content` (as the API takes it), `problem`, `lock`, `packages`, `origin`."""

    __tablename__ = "evaluator_versions"

    evaluator_id: Mapped[str] = mapped_column(ForeignKey(EvaluatorTable.id, ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[str]
    content: Mapped[str]
    contract: Mapped[str | None]
    contract_source: Mapped[str | None]
    problem: Mapped[str | None]
    environment: Mapped[str | None]
    lock: Mapped[str | None]
    packages: Mapped[str]
    created_at: Mapped[datetime]
    created_by: Mapped[str | None]
    origin: Mapped[str | None]


class SecretTable(Table):
    """Secrets by name, sealed with the host's key."""

    __tablename__ = "secrets"

    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class TraceTable(Table):
    """Traces of live traffic and what an evaluator made of them. JSON: `result`, `trace`."""

    __tablename__ = "traces"
    __table_args__ = (Index("ix_traces_evaluator_id_received_at", "evaluator_id", "received_at"),)

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    evaluator_id: Mapped[str] = mapped_column(ForeignKey(EvaluatorTable.id, ondelete="CASCADE"))
    version: Mapped[int]
    trace_id: Mapped[str]
    received_at: Mapped[datetime]
    status: Mapped[str]
    score: Mapped[float | None]
    passed: Mapped[bool | None]
    error_code: Mapped[str | None]
    result: Mapped[str]
    trace: Mapped[str]
