"""Reads the rows of a local file one at a time; reports and skips bad lines."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from evaluator_host.datasets.format import Format
from evaluator_host.datasets.mapping import BadRow, Mapping, to_row
from evaluator_host.datasets.readers import read_records
from evaluator_host.model.errors import InvalidRequest
from evaluator_host.model.evaluator import Row


@dataclass(frozen=True, slots=True)
class FileRow:
    """A row, its first line number in the file, and the record that it was mapped from."""

    line: int
    row: Row
    record: dict[str, Any]


class RowFile:
    """The rows of a local file; iterate it once.

    Args:
      path: `.jsonl`, `.ndjson`, `.csv`, `.tsv`, `.json` or `.parquet`.
      mapping: Row fields by column or template.
      max_row_bytes: Size limit of a row.
      limit: Most rows to read; None for all.
      report: Called with line and fault of each bad record.

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
        self._format = Format.of_name(path.name)
        try:
            self.size = path.stat().st_size
        except OSError as error:
            raise _unreadable(path, error) from error

    def __iter__(self) -> Iterator[FileRow]:
        """Yield the valid rows.

        Raises:
          InvalidRequest: the file cannot be read, or has another format than its suffix says.
        """
        return islice(self._rows(), self._limit)

    def _rows(self) -> Iterator[FileRow]:
        try:
            with self._path.open("rb") as file:
                for line, record in read_records(file, self._format, max_row_bytes=self._max_row_bytes):
                    self.position = self.size if file.closed else file.tell()
                    try:
                        if isinstance(record, BadRow):
                            raise record
                        yield FileRow(line, to_row(record, self._mapping), record)
                    except BadRow as error:
                        self.bad += 1
                        self._report(line, str(error))
        except OSError as error:
            raise _unreadable(self._path, error) from error


def _unreadable(path: Path, error: OSError) -> InvalidRequest:
    return InvalidRequest(f"cannot read {path}: {error.strerror}")
