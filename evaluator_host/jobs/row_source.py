"""Reads the rows of a job in chunks: mapped to row fields, and without rows that already have a result."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Final

from evaluator_host.datasets.files import RowsFolder
from evaluator_host.datasets.mapping import BadRow, Mapping, given_to, is_keyed, to_row
from evaluator_host.model.json_values import decode_json
from evaluator_host.model.outcome import ErrorCode, EvaluationError, Given

CHUNK_ROWS: Final = 2000
CHUNK_BYTES: Final = 8 << 20  # of JSON in the file of rows


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a job, with their numbers in the data set; an error or a skip stands for a row that is not evaluated."""

    numbers: list[int]
    rows: list[Given]


def unmarked_lines(folder: RowsFolder, dataset_id: str, marks: bytearray, *, count: int) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line) of each of the first `count` rows whose byte in `marks` is missing or 0."""
    first = next((number for number, mark in enumerate(marks) if not mark), len(marks))
    for number, line in folder.lines(dataset_id, first=first):
        if number >= count:
            break
        if number >= len(marks) or not marks[number]:
            yield number, line


class RowSource:
    """The rows of one job. Blocking; call it in a thread.

    Args:
      folder: The rows of all data sets.
      dataset_id: The job's data set.
      mapping: The job's mapping.
      count: Most rows to read.
      names: Names under which a row may hold criteria for the evaluator; None to leave criteria by evaluator aside.
      outputs_come: Whether a model writes the outputs.
    """

    def __init__(
        self,
        folder: RowsFolder,
        dataset_id: str,
        *,
        mapping: Mapping,
        count: int,
        names: AbstractSet[str] | None = None,
        outputs_come: bool = False,
    ) -> None:
        self._folder = folder
        self._dataset_id = dataset_id
        self._mapping = mapping
        self._count = count
        self._names = None if any(field == "criteria" for field, _ in mapping.sources) else names
        self._outputs_come = outputs_come

    def chunks(self, done: bytearray) -> Iterator[Chunk]:
        """Yield the rows that are not done. `done` has one byte per row, 1 for done; it may be shorter than that."""
        chunk = Chunk([], [])
        size = 0
        for number, line in unmarked_lines(self._folder, self._dataset_id, done, count=self._count):
            chunk.numbers.append(number)
            chunk.rows.append(self.row(number, decode_json(line)))
            size += len(line)
            if len(chunk.rows) >= CHUNK_ROWS or size >= CHUNK_BYTES:
                yield chunk
                chunk, size = Chunk([], []), 0
        if chunk.rows:
            yield chunk

    def row(self, number: int, record: dict[str, Any]) -> Given:
        """Return the row that a record maps to, or the error or skip that replaces it."""
        try:
            row = replace(to_row(record, self._mapping), index=number)
        except BadRow as error:
            return EvaluationError(
                ErrorCode.BINDING_ERROR, f"the row cannot be made: {error}", hint="see the job's mapping"
            )
        if self._names is None or not is_keyed(record):
            return row
        return given_to(row, record, self._names, outputs_come=self._outputs_come)
