"""Reads the values in one column of jobs' rows. A limited process decodes large rows.

In the host, decoding a row with a million values would stop all threads for a moment. Small rows are decoded in a
thread of the host, which is faster.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from itertools import takewhile
from typing import Any, Final

from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.files import RowsFolder, line_chunks
from evaluator_host.platform.datasets.mapping import BadRow
from evaluator_host.platform.datasets.rendering import render_records
from evaluator_host.platform.datasets.suggestion import listed, nearest
from evaluator_host.platform.datasets.table import Datasets
from evaluator_host.platform.jobs.records import Job
from evaluator_host.platform.jobs.row_source import CHUNK_BYTES, CHUNK_ROWS
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Json
from evaluator_host.types.groups import value_in
from evaluator_host.types.json_values import decode_json, encode_json, takes_more_memory

_CHARS: Final = 201  # characters to keep of a long value: one more than a group or a label may have
_LARGE_MEMORY: Final = 2 << 20  # minimum memory of a large row, once decoded


class JobColumns:
    """Reads columns of the data sets that jobs score."""

    def __init__(self, datasets: Datasets, folder: RowsFolder, processes: LimitedProcesses) -> None:
        self._datasets = datasets
        self._folder = folder
        self._processes = processes

    async def values(self, job: Job, column: str) -> AsyncGenerator[dict[int, Json], None]:
        """Yield the values of a column in the job's rows, keyed by row number: a few thousand consecutive rows at once.

        Raises:
          InvalidRequest: no row has a value in that column; raised after the last row.
        """
        lines = takewhile(lambda line: line[0] < job.rows, self._folder.lines(job.dataset_id))
        chunks = line_chunks(lines, CHUNK_ROWS, CHUNK_BYTES)
        some = False
        while values := await next_values(self._processes, job.workspace_id, chunks, column):
            some = some or any(value is not None for value in values.values())
            yield values
        if not some:
            raise await self._no_column(job, column)

    async def _no_column(self, job: Job, column: str) -> InvalidRequest:
        dataset = await self._datasets.get_dataset(job.workspace_id, job.dataset_id)
        columns = dataset.facts.columns
        meant = nearest(column, columns)
        told = f"no row has a value in the column {column[:80]}"
        told += f"; did you mean {meant}?" if meant not in (None, column) else ""
        return InvalidRequest.of("by", told, f"the data set has {listed(columns)}")


async def next_values(
    processes: LimitedProcesses, workspace: str, chunks: Iterator[list[tuple[int, bytes]]], column: str
) -> dict[int, Json]:
    """Return the values of a column in the next rows, keyed by row number; an empty dict after the last row.

    Long values are cut off.

    Raises:
      HostError: for the reasons given at `LimitedProcesses.call`.
    """
    lines, values = await asyncio.to_thread(_read, chunks, column)
    if values is None:
        texts = [line for _, line in lines]
        refusal = "the values of the column cannot be read"
        values = await render_records(processes, workspace, texts, short_value, column, refusal=refusal)
    pairs = zip(lines, values, strict=True)
    return {number: None if isinstance(value, BadRow) else value for (number, _), value in pairs}


def _read(
    chunks: Iterator[list[tuple[int, bytes]]], column: str
) -> tuple[list[tuple[int, bytes]], list[Json | BadRow] | None]:
    """Return the lines of the next chunk with their values, or with None if one of the lines is a large row."""
    lines = next(chunks, [])
    if any(len(line) > _LARGE_MEMORY or takes_more_memory(line, _LARGE_MEMORY) for _, line in lines):
        return lines, None
    return lines, [short_value(column, decode_json(line)) for _, line in lines]


def short_value(column: str, record: dict[str, Any]) -> Json:
    """Return the value of a column. Of a long value, return the beginning, which is too long for a group or a label."""
    value = value_in(record, column)
    if isinstance(value, str):
        return value[:_CHARS]
    if not isinstance(value, dict | list):
        return value
    text = encode_json(value).decode()
    return value if len(text) < _CHARS else [text[:_CHARS]]
