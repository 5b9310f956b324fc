from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ForeignKey, delete, insert, select
from sqlalchemy.orm import Mapped, mapped_column

from evaluator_host.platform.store.database import Repository, columns_of, row_values
from evaluator_host.platform.store.tables import Table, WorkspaceTable


class NoteTable(Table):
    __tablename__ = "acme_notes"

    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    text: Mapped[str]
    colour: Mapped[str] = mapped_column(server_default="yellow")
    created_at: Mapped[datetime]


@dataclass(frozen=True, slots=True)
class Note:
    name: str
    text: str
    colour: str
    created_at: datetime


class Notes(Repository):
    async def put_note(self, workspace_id: str, name: str, text: str, colour: str) -> Note:
        made = Note(name, text, colour, datetime.now(UTC))
        await self.delete_note(workspace_id, name)
        await self._database.change_rows(insert(NoteTable).values(workspace_id=workspace_id, **row_values(made)))
        return made

    async def list_notes(self, workspace_id: str) -> list[Note]:
        query = select(*columns_of(NoteTable, Note)).where(NoteTable.workspace_id == workspace_id)
        return [Note(*row) for row in await self._database.fetch_all(query.order_by(NoteTable.name))]

    async def delete_note(self, workspace_id: str, name: str) -> None:
        own = (NoteTable.workspace_id == workspace_id) & (NoteTable.name == name)
        await self._database.change_rows(delete(NoteTable).where(own))
