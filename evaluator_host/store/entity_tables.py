"""Table of the entities that callers keep on a host."""

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from evaluator_host.store.tables import Table, WorkspaceTable


class EntityTable(Table):
    """Things by kind and name, in namespaces within a workspace. JSON: `content`."""

    __tablename__ = "entities"
    __table_args__ = (UniqueConstraint("workspace_id", "kind", "namespace", "name"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id))
    kind: Mapped[str]
    namespace: Mapped[str]
    name: Mapped[str]
    content: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
