from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from evaluator_host.platform.store.tables import Table, WorkspaceTable


class StarsTable(Table):
    """Stars that people gave Acme."""

    __tablename__ = "acme_stars"

    id: Mapped[int] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id))
    stars: Mapped[int]
