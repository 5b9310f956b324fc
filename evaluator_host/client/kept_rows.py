"""Reads the rows that an interrupted download of a job has left, so that the next download continues from there."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..types.errors import InvalidRequest
from ..types.formats import Format


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The usable beginning of a file after an interrupted download; the host need not send this part again.

    Attributes:
      size: Length of this beginning in bytes.
      next_row: Number of the next row; earlier rows are complete, with the results of all evaluators.
      header: First line of a CSV file, with which every response of the host begins.
    """

    size: int = 0
    next_row: int = 0
    header: bytes = b""


def kept_rows(part: Path, format_: Format) -> KeptRows:
    """Return the part of an interrupted download that can be kept. The part is empty if the file does not exist.

    Raises:
      InvalidRequest: downloads in this format cannot be resumed, or the file is not a download in this format.
    """
    if format_ not in (Format.JSONL, Format.CSV):
        raise InvalidRequest(f"a {format_} download cannot be resumed: start again, or download as .jsonl or .csv")
    try:
        return _whole_rows(part, format_)
    except ValueError as error:
        raise InvalidRequest(
            f"{part} is not an unfinished {format_} download; remove it, then download again"
        ) from error


def _whole_rows(part: Path, format_: Format) -> KeptRows:
    kept, size, record, within_cell = KeptRows(), 0, bytearray(), False
    with suppress(FileNotFoundError), part.open("rb") as lines:
        for line in lines:
            record += line
            within_cell ^= format_ is Format.CSV and line.count(b'"') % 2 == 1
            if within_cell or not line.endswith(b"\n"):
                continue
            if format_ is Format.CSV and not kept.header:
                kept = KeptRows(len(record), 0, bytes(record))
            elif (row := _number(record, format_)) is None:
                break  # the closing line, which follows the last row of a shard
            elif row != kept.next_row:
                kept = KeptRows(size, row, kept.header)
            size, record = size + len(record), bytearray()
    return kept


def _number(record: bytes | bytearray, format_: Format) -> int | None:
    if format_ is Format.CSV:
        return int(record.partition(b",")[0])
    found: int | None = json.loads(record).get("index")
    return found
