"""Reads the stored answers of models: their number, ranges of bounded size, or single rows."""

from collections.abc import AsyncGenerator, Collection
from typing import Any, Final

from sqlalchemy import Select, func, select

from evaluator_host.store.database import Database
from evaluator_host.store.job_queue import StoredOutput
from evaluator_host.store.tables import OutputTable

_STRETCH_BYTES: Final = 8 << 20


class Outputs:
    """The answers of models to the rows of all jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, job_id: str) -> tuple[int, int]:
        """Return for how many rows the model was called, and for how many of these it failed."""
        query = select(func.count(), func.count(OutputTable.error)).where(OutputTable.job_id == job_id)
        async with self._database.reading() as connection:
            asked, failed = (await connection.execute(query)).one()
        return asked, failed

    async def of_rows(self, job_id: str, rows: Collection[int]) -> dict[int, StoredOutput]:
        """Return answers by row, for few rows, such as those of a page."""
        async with self._database.reading() as connection:
            found = await connection.execute(_selected(job_id).where(OutputTable.row.in_(rows)))
            return {row[0]: StoredOutput(*row) for row in found}

    async def stretches(self, job_id: str, first: int, last: int) -> AsyncGenerator[dict[int, StoredOutput], None]:
        """Yield answers by row, from row `first` to row `last`, about 8 MB at a time."""
        table = OutputTable
        sizes = select(table.row, func.coalesce(func.length(table.output), 0)).where(
            table.job_id == job_id, table.row >= first, table.row <= last
        )
        async with self._database.reading() as connection:
            measured = [(row, size) for row, size in await connection.execute(sizes.order_by(table.row))]
        held, start = 0, first
        ends = []
        for row, size in measured:
            held += size
            if held >= _STRETCH_BYTES:
                ends.append(row)
                held = 0
        for end in dict.fromkeys((*ends, last)):
            query = _selected(job_id).where(table.row >= start, table.row <= end)
            async with self._database.reading() as connection:
                found = {row[0]: StoredOutput(*row) for row in await connection.execute(query)}
            yield found
            start = end + 1


def _selected(job_id: str) -> Select[Any]:
    table = OutputTable
    columns: Any = (table.row, table.output, table.error, table.latency_ms, table.log)
    return select(*columns).where(table.job_id == job_id)
