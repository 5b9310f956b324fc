"""Reads the rows of a job in chunks, mapped to row fields and without rows that already have a result."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import Final

from evaluator_host.engine.contracts.row_documents import CRITERIA
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.files import RowsFolder, line_chunks
from evaluator_host.platform.datasets.mapping import BadRow, Mapping, given_to, is_keyed
from evaluator_host.platform.datasets.rendering import mapped_rows
from evaluator_host.platform.datasets.rows import ALL, Shard
from evaluator_host.platform.jobs.records import Job
from evaluator_host.types.evaluator import Row
from evaluator_host.types.json_values import decode_json
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Given

CHUNK_ROWS: Final = 2000
CHUNK_BYTES: Final = 8 << 20  # size of a chunk's JSON; the row that reaches it is the chunk's last


@dataclass(frozen=True, slots=True)
class RowChunk:
    """Some rows of a job, and their numbers in the data set.

    In place of a row that is not evaluated there is an error or a skip.
    """

    numbers: list[int]
    rows: list[Given]


def unmarked_lines(
    folder: RowsFolder, dataset_id: str, marks: bytearray, *, count: int, shard: Shard
) -> Iterator[tuple[int, bytes]]:
    """Yield `(row number, line)` for each row of a shard that has no mark. Rows from number `count` on are left out.

    A row has a mark if its byte in `marks` is not 0.
    """
    first = next((number for number, mark in enumerate(marks) if not mark), len(marks))
    for number, line in folder.lines(dataset_id, first=first):
        if number >= count:
            break
        if shard.has(number) and (number >= len(marks) or not marks[number]):
            yield number, line


class RowSource:
    """Reads the rows of one job, mapped to row fields.

    `names` are the names of the evaluator. Rows may have criteria for the evaluator under these names; None ignores
    such criteria. `outputs_come` says whether a model produces the outputs.
    """

    def __init__(
        self,
        folder: RowsFolder,
        processes: LimitedProcesses,
        job: Job,
        *,
        mapping: Mapping,
        count: int | None = None,
        shard: Shard = ALL,
        names: AbstractSet[str] | None = None,
        outputs_come: bool = False,
    ) -> None:
        self._folder = folder
        self._processes = processes
        self._job = job
        self._mapping = mapping
        self._count = job.rows if count is None else min(count, job.rows)
        self._shard = shard
        self._names = None if any(field == "criteria" for field, _ in mapping.sources) else names
        self._outputs_come = outputs_come

    async def chunks(self, done: bytearray, *, most: int = CHUNK_ROWS) -> AsyncGenerator[RowChunk, None]:
        """Yield the rows that are not done, up to `most` per chunk; byte n of `done` is 1 if row n is done.

        Raises:
          LimitExceeded: the templates take too much processor time or memory.
          HostError: no child process can be used now, see `LimitedProcesses.call`.
        """
        read = line_chunks(
            unmarked_lines(self._folder, self._job.dataset_id, done, count=self._count, shard=self._shard),
            most,
            CHUNK_BYTES,
        )
        while (lines := await asyncio.to_thread(next, read, None)) is not None:
            yield await self._chunk(lines)

    async def row(self, number: int) -> Given:
        """Return the row with this number. If the row is not evaluated, return an error or a skip instead.

        Raises:
          LimitExceeded, HostError: for the reasons given at `chunks`.
        """
        lines = await asyncio.to_thread(lambda: list(islice(self._folder.lines(self._job.dataset_id, first=number), 1)))
        return (await self._chunk(lines)).rows[0]

    async def _chunk(self, lines: list[tuple[int, bytes]]) -> RowChunk:
        numbers, texts = [number for number, _ in lines], [line for _, line in lines]
        rows = await mapped_rows(self._processes, self._job.workspace_id, texts, self._mapping, numbers)
        return RowChunk(numbers, await asyncio.to_thread(lambda: [*map(self._given, rows, texts)]))

    def _given(self, row: Row | BadRow, line: bytes) -> Given:
        if isinstance(row, BadRow):
            return EvaluationError(
                ErrorCode.BINDING_ERROR,
                f"the mapping could not be applied to the row: {row}",
                hint="correct the mapping of the job, or the row",
            )
        if self._names is None or CRITERIA.encode() not in line:
            return row
        record = decode_json(line)
        return given_to(row, record, self._names, outputs_come=self._outputs_come) if is_keyed(record) else row
