"""Reads models' answers to the rows of jobs from the database."""

from collections.abc import AsyncGenerator, Collection
from typing import Any, Final

from sqlalchemy import Select, func, select

from evaluator_host.platform.jobs.queue import StoredOutput
from evaluator_host.platform.jobs.schema import OutputTable
from evaluator_host.platform.store.database import Repository, columns_of
from evaluator_host.platform.store.tables import ByteCount

_STRETCH_BYTES: Final = 8 << 20
_OUTPUT_LENGTH: Final = func.coalesce(ByteCount(OutputTable.output), 0) + ByteCount(OutputTable.log)


class Outputs(Repository):
    """Models' answers to the rows of all jobs, in the database."""

    async def count(self, job_id: str) -> tuple[int, int]:
        """Return the number of rows that were sent to the model, and how many of these rows failed."""
        query = select(func.count(), func.count(OutputTable.error)).where(OutputTable.job_id == job_id)
        asked, failed = await self._database.fetch_first(query)
        return asked, failed

    async def sizes(self, job_id: str, rows: Collection[int]) -> dict[int, int]:
        """Return how many bytes the model's answer and its log have together, for each row."""
        table = OutputTable
        query = select(table.row, _OUTPUT_LENGTH)
        found = await self._database.fetch_all(query.where(table.job_id == job_id, table.row.in_(rows)))
        return {one[0]: one[1] for one in found}

    async def of_rows(self, job_id: str, rows: Collection[int]) -> dict[int, StoredOutput]:
        """Return the model's answers to a few rows, such as the rows of a page."""
        found = await self._database.fetch_all(_selected_outputs(job_id).where(OutputTable.row.in_(rows)))
        return {row[0]: StoredOutput(*row) for row in found}

    async def stretches(self, job_id: str, first: int, last: int) -> AsyncGenerator[dict[int, StoredOutput], None]:
        """Yield the model's answers to rows `first` to `last`, in dicts of about 8 MB each, keyed by row number."""
        table = OutputTable
        sizes = select(table.row, _OUTPUT_LENGTH).where(table.job_id == job_id, table.row >= first, table.row <= last)
        measured = await self._database.fetch_all(sizes.order_by(table.row))
        held, start = 0, first
        ends = []
        for row, size in measured:
            held += size
            if held >= _STRETCH_BYTES:
                ends.append(row)
                held = 0
        for end in dict.fromkeys((*ends, last)):
            query = _selected_outputs(job_id).where(table.row >= start, table.row <= end)
            found = {row[0]: StoredOutput(*row) for row in await self._database.fetch_all(query)}
            yield found
            start = end + 1


def _selected_outputs(job_id: str) -> Select[Any]:
    return select(*columns_of(OutputTable, StoredOutput)).where(OutputTable.job_id == job_id)
