"""Stores the models that callers register, what workspaces used of models by day, and recorded answers."""

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from evaluator_host.model.errors import NameTaken, NotFound
from evaluator_host.model.json_values import encode_json
from evaluator_host.schemas.models import DayUsage, RegisteredModel
from evaluator_host.store.database import Repository, columns_of, insert_unless_there
from evaluator_host.store.tables import EntityTable, ModelAnswerTable, ModelUsageTable
from evaluator_host.store.workspaces import require_name

_KIND: Final = "registered model"  # of its entity
_MODEL: Final = TypeAdapter(RegisteredModel)
_PAGE: Final = 200
_COUNTS: Final = ("requests", "replayed", "input_tokens", "output_tokens", "cost")


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """A recorded answer. `content` is JSON, see `models.gateway.recordings`."""

    digest: str
    model: str
    content: str
    created_at: datetime


class Models(Repository):
    """Registered models, their usage, and recorded answers."""

    async def add_model(self, workspace_id: str, model: RegisteredModel) -> RegisteredModel:
        """Store a model.

        Raises:
          InvalidRequest: the name is not valid.
          NameTaken: there is a model of that name.
        """
        require_name(model.name, "model")
        now = datetime.now(UTC)
        content = encode_json({name: value for name, value in asdict(model).items() if name != "created_at"}).decode()
        values: dict[str, Any] = {
            "workspace_id": workspace_id,
            "kind": _KIND,
            "namespace": "",
            "name": model.name,
            "content": content,
        }
        values |= {"id": f"reg-{secrets.token_hex(8)}", "created_at": now, "updated_at": now}
        try:
            await self._database.change_rows(insert(EntityTable).values(**values))
        except IntegrityError as error:
            raise NameTaken(f"there is a model named {model.name}; remove it first, or take another name") from error
        return replace(model, created_at=now)

    async def list_models(self, workspace_id: str) -> list[RegisteredModel]:
        """Return the models of a workspace, by name."""
        query = select(EntityTable.content, EntityTable.created_at).where(_of(workspace_id)).order_by(EntityTable.name)
        return [_read(row) for row in await self._database.fetch_all(query)]

    async def find_model(self, workspace_id: str, name: str) -> RegisteredModel | None:
        """Return the model of a name, or None."""
        query = select(EntityTable.content, EntityTable.created_at).where(_of(workspace_id), EntityTable.name == name)
        row = await self._database.fetch_first(query)
        return None if row is None else _read(row)

    async def delete_model(self, workspace_id: str, name: str) -> None:
        """Delete a model.

        Raises:
          NotFound: there is no model of that name.
        """
        chosen = delete(EntityTable).where(_of(workspace_id), EntityTable.name == name)
        if not await self._database.change_rows(chosen):
            raise NotFound(f"there is no model {name[:80]!r}; GET /v1/models lists those of this workspace")

    async def add_usage(self, workspace_id: str, day: str, used: Mapping[str, Mapping[str, float]]) -> None:
        """Add what was used of some models.

        Args:
          workspace_id: Who used it.
          day: `2026-01-31`.
          used: Counts by model: `{"judge-small": {"requests": 1, "replayed": 0, "input_tokens", "output_tokens",
            "cost"}}`.
        """
        table = ModelUsageTable
        async with self._database.transaction() as connection:
            for model, counts in used.items():
                key = {"workspace_id": workspace_id, "day": day, "model": model}
                await connection.execute(insert_unless_there(connection, table), {**key, **dict.fromkeys(_COUNTS, 0)})
                more = {name: getattr(table, name) + counts[name] for name in _COUNTS}
                this = (table.workspace_id == workspace_id) & (table.day == day) & (table.model == model)
                await connection.execute(update(table).where(this).values(**more))

    async def list_usage(self, workspace_id: str, *, since: str = "") -> list[DayUsage]:
        """Return what a workspace used from a day on, the newest day first."""
        table = ModelUsageTable
        query = select(*columns_of(table, DayUsage)).where(table.workspace_id == workspace_id, table.day >= since)
        return [DayUsage(*row) for row in await self._database.fetch_all(query.order_by(table.day.desc(), table.model))]

    async def find_answer(self, workspace_id: str, digest: str) -> str | None:
        """Return the content of a recorded answer, or None."""
        table = ModelAnswerTable
        query = select(table.content).where(table.workspace_id == workspace_id, table.digest == digest)
        found = await self._database.fetch_value(query)
        return None if found is None else str(found)

    async def add_answers(self, workspace_id: str, answers: Sequence[RecordedAnswer], *, most_bytes: int) -> None:
        """Store recorded answers in place of those of the same requests; the oldest go where there is no room."""
        table = ModelAnswerTable
        async with self._database.transaction() as connection:
            for one in answers:
                this = (table.workspace_id == workspace_id) & (table.digest == one.digest)
                await connection.execute(delete(table).where(this))
                row = {**asdict(one), "workspace_id": workspace_id, "stored_bytes": len(one.content.encode())}
                await connection.execute(insert(table).values(**row))
            mine = table.workspace_id == workspace_id
            held = int(await connection.scalar(select(func.sum(table.stored_bytes)).where(mine)) or 0)
            while held > most_bytes:
                oldest = select(table.digest, table.stored_bytes).where(mine).order_by(table.created_at).limit(_PAGE)
                found = (await connection.execute(oldest)).all()
                gone = []
                for digest, size in found:
                    if held <= most_bytes:
                        break
                    gone.append(digest)
                    held -= size
                if not gone:
                    break
                await connection.execute(delete(table).where(mine, table.digest.in_(gone)))

    async def answers(self, workspace_id: str) -> AsyncIterator[RecordedAnswer]:
        """Yield every recorded answer of a workspace, by digest."""
        table, after = ModelAnswerTable, ""
        while True:
            query = select(*columns_of(table, RecordedAnswer)).where(
                table.workspace_id == workspace_id, table.digest > after
            )
            found = await self._database.fetch_all(query.order_by(table.digest).limit(_PAGE))
            for row in found:
                yield RecordedAnswer(*row)
            if len(found) < _PAGE:
                return
            after = found[-1].digest

    async def count_answers(self, workspace_id: str) -> tuple[int, int]:
        """Return how many answers a workspace has recorded, and their bytes."""
        table = ModelAnswerTable
        query = select(func.count(), func.sum(table.stored_bytes)).where(table.workspace_id == workspace_id)
        row = await self._database.fetch_first(query)
        return int(row[0]), int(row[1] or 0)

    async def delete_answers(self, workspace_id: str, *, model: str | None = None) -> int:
        """Delete the recorded answers of a workspace, or those of one model; return how many there were."""
        chosen = ModelAnswerTable.workspace_id == workspace_id
        if model is not None:
            chosen &= ModelAnswerTable.model == model
        return await self._database.change_rows(delete(ModelAnswerTable).where(chosen))


def _of(workspace_id: str) -> ColumnElement[bool]:
    here = (EntityTable.workspace_id == workspace_id) & (EntityTable.kind == _KIND)
    return here & (EntityTable.namespace == "")


def _read(row: Any) -> RegisteredModel:
    return replace(_MODEL.validate_json(row.content), created_at=row.created_at)
