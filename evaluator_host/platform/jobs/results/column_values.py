"""Reads the values in one column of a job's rows. A limited process decodes large rows.

In the host, decoding a row with a million values would stop all threads for a moment. Small rows are decoded in a
thread of the host, which is faster.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.mapping import BadRow
from evaluator_host.platform.datasets.rendering import render_records
from evaluator_host.types.evaluator import Json
from evaluator_host.types.groups import value_in
from evaluator_host.types.json_values import decode_json, encode_json, takes_more_memory

_CHARS: Final = 201  # characters to keep of a long value: one more than a group or a label may have
_LARGE_MEMORY: Final = 2 << 20  # minimum memory of a large row, once decoded


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
