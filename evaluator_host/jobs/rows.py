"""The rows of a job, in portions: read from its data set, mapped, and without those that have a result already."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from evaluator_host.datasets.files import RowsFolder
from evaluator_host.datasets.mapping import BadRow, Mapping, to_row
from evaluator_host.model import Row
from evaluator_host.outcome import ErrorCode, EvaluationError
from evaluator_host.protocol import decode_json

PORTION_ROWS: Final = 2000
PORTION_BYTES: Final = 8 << 20  # as the rows lie in their file


@dataclass(frozen=True, slots=True)
class Portion:
    """Some rows of a job, by their numbers in the data set. An error stands for a row that could not be made."""

    numbers: list[int]
    rows: list[Row | EvaluationError]


class JobRows:
    """The rows of one job. Blocking; call it in a thread."""

    def __init__(self, folder: RowsFolder, dataset_id: str, *, mapping: Mapping, count: int) -> None:
        self._folder = folder
        self._dataset_id = dataset_id
        self._mapping = mapping
        self._count = count

    def portions(self, done: bytearray) -> Iterator[Portion]:
        """Yield what is not done: `done` has a byte per row, and may be shorter."""
        portion = Portion([], [])
        size = 0
        first = next((number for number, mark in enumerate(done) if not mark), len(done))
        for number, line in self._folder.lines(self._dataset_id, first=first):
            if number >= self._count:
                break
            if number < len(done) and done[number]:
                continue
            portion.numbers.append(number)
            portion.rows.append(self._row(number, decode_json(line)))
            size += len(line)
            if len(portion.rows) >= PORTION_ROWS or size >= PORTION_BYTES:
                yield portion
                portion, size = Portion([], []), 0
        if portion.rows:
            yield portion

    def _row(self, number: int, record: dict[str, Any]) -> Row | EvaluationError:
        try:
            return replace(to_row(record, self._mapping), index=number)
        except BadRow as error:
            return EvaluationError(
                ErrorCode.BINDING_ERROR, f"the row cannot be made: {error}", hint="see the job's mapping"
            )
