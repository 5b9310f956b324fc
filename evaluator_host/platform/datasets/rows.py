"""Reads the rows of a local file one at a time; reports and skips bad lines."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from evaluator_host.engine.system.files import reading
from evaluator_host.platform.datasets.mapping import BadRow, Mapping, to_row
from evaluator_host.platform.datasets.notes import Note
from evaluator_host.platform.datasets.readers import read_records
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Row
from evaluator_host.types.formats import Format
from evaluator_host.types.json_values import encode_json


@dataclass(frozen=True, slots=True)
class FileRow:
    """A row, the number of its first line in the file, and the record that it was mapped from."""

    line: int
    row: Row
    record: dict[str, Any]
    index: int = 0  # number of the row among all valid rows of the file, from 0


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number` of a file that is split into `of` parts.

    The part has the rows with `index % of == number`.
    """

    number: int = 0
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Parse a shard such as `3/16`: number 3 of 16, counted from 0.

        Raises:
          InvalidRequest: the string does not have this form, or its number is too large.
        """
        found = re.fullmatch(r"(\d{1,7})/(\d{1,7})", text.strip(), re.ASCII)
        if found is None or not int(found[1]) < int(found[2]):
            raise InvalidRequest(f"{text!r} is not a shard; write 0/3, 1/3 and 2/3 for three shards")
        return cls(int(found[1]), int(found[2]))

    def has(self, index: int) -> bool:
        return index % self.of == self.number

    def indexes(self, rows: int) -> range:
        """Return the indexes that are in this shard, for a file of `rows` rows."""
        return range(self.number, rows, self.of)

    def closing_line(self, *, rows: int, bad_lines: int, failures_are_zero: bool = False) -> bytes:
        """Return the last line of a shard's results: the shard, and the rows and bad lines of the whole file.

        With `failures_are_zero`, it also says that failed rows count as 0.
        """
        zero = {"failures": "zero"} if failures_are_zero else {}
        return encode_json({"shard": str(self), "rows": rows, "bad_lines": bad_lines, **zero}) + b"\n"

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


ALL: Final = Shard()


class RowFile:
    """The rows of a local file. You can iterate over them only once."""

    def __init__(
        self,
        # `.jsonl`, `.ndjson`, `.csv`, `.tsv`, `.json`, `.parquet` or `.xlsx`, or any other suffix with `format_`
        path: Path,
        mapping: Mapping,  # the column or template that each field of a row comes from
        *,
        max_row_bytes: int,  # size limit of a row
        limit: int | None,  # maximum number of rows to read; None for all
        report: Callable[[int, str], None],  # called with the line and the fault of each bad record
        shard: Shard = Shard(),  # shard of the rows to yield
        format_: Format | None = None,  # format of the file; None to decide by its suffix
        note: Note = lambda _: None,  # called with a sentence for each deviation of the file from its format
    ) -> None:
        self._path = path
        self._mapping = mapping
        self._max_row_bytes = max_row_bytes
        self._limit = limit
        self._report = report
        self._shard = shard
        self.count = 0  # number of valid records so far, including those of other shards
        self.bad = 0  # number of bad records so far
        self.position = 0  # number of bytes read so far
        self._format = format_ or Format.of_name(path.name)
        self._note = note
        with reading(path):
            self.size = path.stat().st_size  # size of the file in bytes

    def __iter__(self) -> Iterator[FileRow]:
        """Yield the valid rows.

        Raises:
          InvalidRequest: the file cannot be read, or has a different format than its suffix says.
        """
        return (row for row in islice(self._rows(), self._limit) if self._shard.has(row.index))

    def _rows(self) -> Iterator[FileRow]:
        with reading(self._path), self._path.open("rb") as file:
            for line, record in read_records(file, self._format, max_row_bytes=self._max_row_bytes, note=self._note):
                self.position = self.size if file.closed else file.tell()
                try:
                    if isinstance(record, BadRow):
                        raise record
                    row = FileRow(line, to_row(record, self._mapping), record, self.count)
                except BadRow as error:
                    self.bad += 1
                    self._report(line, str(error))
                    continue
                self.count += 1
                yield row
