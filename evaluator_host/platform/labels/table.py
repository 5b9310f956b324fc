"""Stores queues of rows for people to label, and the labels."""

import secrets
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    ForeignKey,
    Index,
    UniqueConstraint,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Mapped, mapped_column

from evaluator_host.platform.datasets.table import DatasetTable
from evaluator_host.platform.store.database import Repository, columns_of, insert_many, row_values
from evaluator_host.platform.store.tables import ApiKeyTable, ByteCount, Size, Table, WorkspaceTable
from evaluator_host.platform.store.workspaces import require_name
from evaluator_host.types.errors import InUse, NameTaken, NotFound

HELD: Final = timedelta(minutes=10)
# maximum number of characters of queues to read at a time; each queue may have 100 KB of instructions and choices
_PART_BYTES: Final = 2 << 20
_MOST: Final = 1000  # maximum number of label queues in a workspace
_ROW_BYTES: Final = 64  # bytes that a row in a queue takes, besides its label and note
_HELD: Final = text("held_by IS NOT NULL")
_TRIES: Final = 20  # how many times to try to reserve a row, because another caller may reserve it first


class LabelQueueTable(Table):
    """Queues of rows for people to label. `content` is JSON. The job with the id `job_id` may have been deleted."""

    __tablename__ = "label_queues"
    __table_args__ = (UniqueConstraint("workspace_id", "name"), Index("ix_label_queues_dataset_id", "dataset_id"))

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id))
    name: Mapped[str]
    dataset_id: Mapped[str] = mapped_column(ForeignKey(DatasetTable.id))
    job_id: Mapped[str | None]
    own_outputs: Mapped[bool]
    content: Mapped[str]
    created_at: Mapped[datetime]

    @classmethod
    def sizes(cls) -> Iterable[Size]:
        """Yield the query that adds up the sizes of the queues' tasks: instructions, choices and other settings."""
        yield Size("labels", cls.workspace_id, select(func.sum(ByteCount(cls.content))))


class LabelTable(Table):
    """Rows of label queues.

    `state` is waiting, labelled or skipped. `label` is JSON. `held_by` is the person who is labelling the row.
    """

    __tablename__ = "labels"
    __table_args__ = (
        Index("ix_labels_state", "queue_id", "state", "index"),
        Index("ix_labels_held_by", "queue_id", "held_by", sqlite_where=_HELD, postgresql_where=_HELD),
    )

    queue_id: Mapped[str] = mapped_column(ForeignKey(LabelQueueTable.id, ondelete="CASCADE"), primary_key=True)
    index: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    state: Mapped[str]
    label: Mapped[str | None]
    note: Mapped[str]
    by: Mapped[str | None]
    at: Mapped[datetime | None]
    held_by: Mapped[str | None]
    held_until: Mapped[datetime | None]

    @classmethod
    def sizes(cls) -> Iterable[Size]:
        """Yield the query that adds up the sizes of labels and notes, and a fixed size for each row of a queue."""
        label = func.coalesce(ByteCount(cls.label), 0)
        query = select(func.sum(_ROW_BYTES + ByteCount(cls.note) + label)).join(LabelQueueTable)
        yield Size("labels", LabelQueueTable.workspace_id, query)


class LabelState(StrEnum):
    """The state of a row in a label queue."""

    WAITING = "waiting"
    LABELLED = "labelled"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class StoredQueue:
    """A label queue. `content` is JSON; `own_outputs` says whether people see outputs from the job's model."""

    id: str
    workspace_id: str
    name: str
    dataset_id: str
    job_id: str | None
    own_outputs: bool
    content: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredLabel:
    """A row of a label queue. `label` is JSON, or None if the row waits or was skipped. `by` is the person's name."""

    index: int
    state: str
    label: str | None
    note: str
    by: str | None
    at: datetime | None


class Labels(Repository):
    """The label queues in the database."""

    async def add_queue(self, workspace_id: str, name: str, rows: Sequence[int], **given: Any) -> StoredQueue:
        """Store and return a queue. All its rows wait for labels. `given` are the other fields of `StoredQueue`.

        Raises:
          InvalidRequest: the name is not valid.
          NameTaken: there is a queue with that name.
          InUse: the workspace has too many queues.
        """
        require_name(name, "label queue")
        counting = select(func.count()).where(LabelQueueTable.workspace_id == workspace_id)
        if int(await self._database.fetch_value(counting)) >= _MOST:
            raise InUse(f"a workspace may have at most {_MOST} label queues; delete one first")
        made = StoredQueue(f"lq_{secrets.token_hex(8)}", workspace_id, name, created_at=datetime.now(UTC), **given)
        waiting = [StoredLabel(row, LabelState.WAITING.value, None, "", None, None) for row in rows]
        try:
            async with self._database.transaction() as connection:
                await connection.execute(insert(LabelQueueTable).values(**row_values(made)))
                await insert_many(connection, LabelTable, waiting, queue_id=made.id)
        except IntegrityError as error:
            raise NameTaken(
                f"there is already a label queue named {name}; delete it first, or choose another name"
            ) from error
        return made

    async def parts(self, workspace_id: str, dataset_id: str | None = None) -> AsyncGenerator[list[StoredQueue], None]:
        """Yield the queues of a workspace, or only those over one data set, newest first, in parts of a few MB."""
        table = LabelQueueTable
        order: Any = select(table.id, ByteCount(table.content)).where(table.workspace_id == workspace_id)
        if dataset_id is not None:
            order = order.where(table.dataset_id == dataset_id)
        order = order.order_by(table.created_at.desc(), table.id)
        query = select(*columns_of(table, StoredQueue))
        async with aclosing(self._database.fetch_parts(order, query, table.id, most_bytes=_PART_BYTES)) as parts:
            async for rows in parts:
                yield [StoredQueue(*row) for row in rows]

    async def get_queue(self, workspace_id: str, name: str) -> StoredQueue:
        """Return a queue.

        Raises:
          NotFound: there is no queue with that name.
        """
        table = LabelQueueTable
        query = select(*columns_of(table, StoredQueue)).where(table.workspace_id == workspace_id, table.name == name)
        found = await self._database.fetch_first(query)
        if found is None:
            names = select(table.name).where(table.workspace_id == workspace_id)
            raise await self._not_found(
                "label queue", name, names, otherwise="`evaluator-host labels list` lists the names"
            )
        return StoredQueue(*found)

    async def delete_queue(self, queue: StoredQueue) -> None:
        """Delete a queue and its labels."""
        await self._database.change_rows(delete(LabelQueueTable).where(LabelQueueTable.id == queue.id))

    async def count_labels(
        self, queues: Sequence[StoredQueue]
    ) -> dict[str, list[tuple[str, str | None, int, datetime | None]]]:
        """Return a dict from queue ids to lists of `(state, person, number of rows, time of the last label)`."""
        table, found = LabelTable, {one.id: list[tuple[str, str | None, int, datetime | None]]() for one in queues}
        query = select(table.queue_id, table.state, table.by, func.count(), func.max(table.at))
        query = query.where(table.queue_id.in_(found)).group_by(table.queue_id, table.state, table.by)
        for queue_id, *counted in await self._database.fetch_all(query):
            found[queue_id].append((*counted,))
        return found

    async def list_labels(
        self, queue: StoredQueue, *, state: LabelState | None = None, after: int = -1, limit: int | None = None
    ) -> list[StoredLabel]:
        """Return the first `limit` rows of a queue after row `after`. With `state`, return only rows in this state."""
        query = _labels(queue).where(LabelTable.index > after)
        if state is not None:
            query = query.where(LabelTable.state == state)
        found = await self._database.fetch_all(query.order_by(LabelTable.index).limit(limit))
        return [StoredLabel(*row) for row in found]

    async def given_labels(self, queue: StoredQueue) -> Sequence[tuple[int, str, datetime | None]]:
        """Return `(row, label as JSON, time)` of each labelled row of a queue, without the notes, which may be long."""
        table = LabelTable
        query = select(table.index, table.label, table.at).where(table.queue_id == queue.id)
        return await self._database.fetch_all(query.where(table.state == LabelState.LABELLED))

    async def get_label(self, queue: StoredQueue, index: int) -> StoredLabel:
        """Return a row of a queue.

        Raises:
          NotFound: the queue has no such row.
        """
        found = await self._database.fetch_first(_labels(queue).where(LabelTable.index == index))
        if found is None:
            raise NotFound(f"the queue {queue.name} has no row {index}")
        return StoredLabel(*found)

    async def take_row(self, queue: StoredQueue, by: str | None) -> StoredLabel | None:
        """Reserve the first free waiting row for person `by` for 10 minutes. Return the row; None if no row is free."""
        table, person = LabelTable, by or ""
        for _ in range(_TRIES):
            now = datetime.now(UTC)
            waiting = (table.queue_id == queue.id) & (table.state == LabelState.WAITING)
            own = table.held_by == person
            free = or_(table.held_by.is_(None), own, table.held_until < now)
            # there are two queries, because each can use an index; one query for both would sort all rows
            for chosen in (own, free):
                query = select(table.index).where(waiting, chosen).order_by(table.index)
                index = await self._database.fetch_value(query.limit(1))
                if index is not None:
                    break
            else:
                return None
            held = {"held_by": person, "held_until": now + HELD}
            this: Any = waiting & free & (table.index == index)
            if await self._database.change_rows(update(table).where(this).values(**held)):
                return await self.get_label(queue, index)
        return None

    async def set_label(self, queue: StoredQueue, made: StoredLabel) -> None:
        """Store the new state and label of a row. The row is then no longer reserved for a person.

        Raises:
          NotFound: the queue has no such row.
        """
        await self.get_label(queue, made.index)
        this: ColumnElement[bool] = (LabelTable.queue_id == queue.id) & (LabelTable.index == made.index)
        values = {**row_values(made), "held_by": None, "held_until": None}
        await self._database.change_rows(update(LabelTable).where(this).values(**values))

    async def key_name(self, key_id: str) -> str:
        """Return the name of an API key. On a host with keys, this is the name of the person who labels."""
        return str(await self._database.fetch_value(select(ApiKeyTable.name).where(ApiKeyTable.id == key_id)))


def _labels(queue: StoredQueue) -> Any:
    return select(*columns_of(LabelTable, StoredLabel)).where(LabelTable.queue_id == queue.id)
