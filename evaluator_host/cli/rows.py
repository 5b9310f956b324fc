"""Rows of a file, one at a time: JSONL, CSV and JSON; a bad line is reported by its number and kept out.

Memory holds one row, whatever the size of the file; only a JSON array is read whole.
"""

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from evaluator_host.cli.columns import BadRow, Mapping, to_row
from evaluator_host.errors import InvalidRequest
from evaluator_host.model import Row
from evaluator_host.protocol import ProtocolError, decode_json

_BOM: Final = b"\xef\xbb\xbf"
_JSON_COLUMNS: Final = ("trace", "variables", "criteria")  # of a CSV file; its other cells stay text
_MAX_CELL: Final = 64 << 20

Record = tuple[int, Any]
"""The line where a record starts, and the decoded record, or the `BadRow` that says why there is none."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """A row, the line where it starts in its file, and the record that stands there."""

    line: int
    row: Row
    record: dict[str, Any]


class RowFile:
    """The rows of a file; iterate it once.

    Args:
      path: `.jsonl`, `.ndjson`, `.csv`, `.tsv` or `.json`.
      mapping: Row fields by column.
      max_row_bytes: A longer line of JSONL is bad.
      limit: Rows to read, at most.
      report: Called with the line and the fault of each bad record.

    Attributes:
      size: Bytes of the file.
      position: Bytes read so far.
      bad: Bad records so far.
    """

    def __init__(
        self,
        path: Path,
        mapping: Mapping,
        *,
        max_row_bytes: int,
        limit: int | None,
        report: Callable[[int, str], None],
    ) -> None:
        self._path = path
        self._mapping = mapping
        self._max_row_bytes = max_row_bytes
        self._limit = limit
        self._report = report
        self.bad = 0
        self.position = 0
        if path.suffix.lower() not in _READERS:
            raise InvalidRequest(f"cannot tell the format of {path} by its suffix ({' '.join(_READERS)})")
        try:
            self.size = path.stat().st_size
        except OSError as error:
            raise _unreadable(path, error) from error

    def __iter__(self) -> Iterator[FileRow]:
        """Yield the good rows.

        Raises:
          InvalidRequest: the file cannot be read, or is not what its suffix says.
        """
        return islice(self._rows(), self._limit)

    def _rows(self) -> Iterator[FileRow]:
        try:
            with self._path.open("rb") as file:
                for line, record in _READERS[self._path.suffix.lower()](file, self._max_row_bytes):
                    self.position = file.tell()
                    try:
                        if isinstance(record, BadRow):
                            raise record
                        yield FileRow(line, to_row(record, self._mapping), record)
                    except BadRow as error:
                        self.bad += 1
                        self._report(line, str(error))
        except OSError as error:
            raise _unreadable(self._path, error) from error


def _jsonl(file: BinaryIO, max_row_bytes: int) -> Iterator[Record]:
    number = 0
    while line := file.readline(max_row_bytes + 1):
        number += 1
        if len(line) > max_row_bytes:
            while line and not line.endswith(b"\n"):  # skip the rest of it
                line = file.readline(1 << 20)
            yield number, BadRow(f"longer than {max_row_bytes >> 20} MB")
            continue
        text = line.removeprefix(_BOM).strip()
        if text:
            yield number, _decoded(text)


def _json(file: BinaryIO, _: int) -> Iterator[Record]:
    rows = _decoded(file.read().removeprefix(_BOM))
    if isinstance(rows, BadRow):
        raise InvalidRequest(f"the data file is {rows}")
    if isinstance(rows, dict) and isinstance(rows.get("rows"), list):
        rows = rows["rows"]
    if not isinstance(rows, list):
        raise InvalidRequest('a .json data file is an array of rows, or {"rows": […]}; one row a line is .jsonl')
    yield from enumerate(rows, start=1)


def _csv(file: BinaryIO, _: int, *, delimiter: str = ",") -> Iterator[Record]:
    csv.field_size_limit(_MAX_CELL)
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            header = next(reader, [])
            twice = sorted({name for name in header if header.count(name) > 1})
            if twice:
                raise InvalidRequest(f"the header names a column twice: {', '.join(twice)}")
            yield from _csv_records(reader, header)
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"the data file is not UTF-8 near line {reader.line_num + 1}") from error


def _csv_records(reader: Any, header: list[str]) -> Iterator[Record]:
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, BadRow(f"not CSV: {error}")
            continue
        if cells:
            yield line, _csv_record(header, cells)


def _csv_record(header: list[str], cells: list[str]) -> dict[str, Any] | BadRow:
    if len(cells) != len(header):
        return BadRow(f"{len(cells)} cells under a header of {len(header)}")
    record: dict[str, Any] = dict(zip(header, cells, strict=True))
    for name in _JSON_COLUMNS:
        if name in record:
            value = _decoded(record[name].encode()) if record[name].strip() else None
            if isinstance(value, BadRow):
                return BadRow(f"{name} is {value}")
            record[name] = value
    return record


def _tsv(file: BinaryIO, max_row_bytes: int) -> Iterator[Record]:
    return _csv(file, max_row_bytes, delimiter="\t")


def _decoded(text: bytes) -> Any:
    try:
        return decode_json(text)
    except ProtocolError as error:
        return BadRow(str(error))


def _unreadable(path: Path, error: OSError) -> InvalidRequest:
    return InvalidRequest(f"cannot read {path}: {error.strerror}")


_READERS: Final[dict[str, Callable[[BinaryIO, int], Iterator[Record]]]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".csv": _csv,
    ".tsv": _tsv,
    ".json": _json,
}
