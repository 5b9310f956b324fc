"""Finds out whether two data sets have the same rows, so that jobs over them can be compared."""

from collections.abc import Collection

from evaluator_host.platform.datasets.files import RowsFolder
from evaluator_host.platform.datasets.mapping import is_keyed
from evaluator_host.platform.datasets.suggestion import listed
from evaluator_host.platform.datasets.table import Dataset
from evaluator_host.types.evaluator import Json
from evaluator_host.types.json_values import decode_json, without_column
from evaluator_host.types.names import counted


def rows_differ(folder: RowsFolder, one: Dataset, other: Dataset, answers: Collection[str]) -> str | None:
    """Describe the first difference between two data sets, ignoring the columns `answers`, which may be dotted paths.

    Return None if there is none.

    A row that has no column besides `answers` counts as a difference. Call this in a thread, because it reads files.

    In rows that have criteria for each evaluator, only ids and inputs are compared.
    """
    if one.facts.rows != other.facts.rows:
        return f"{counted(one.facts.rows, 'row')} and {counted(other.facts.rows, 'row')}"
    pairs = zip(folder.lines(one.id), folder.lines(other.id), strict=True)
    for (number, line), (_, line_of_other) in pairs:
        was, now = (_case(decode_json(text), answers) for text in (line, line_of_other))
        if not was:
            return (
                f"row {number} has no column besides the answer, so the host cannot tell whether both jobs scored "
                "the same row"
            )
        if was != now:
            differing = [
                name for name in {**was, **now} if name not in was or name not in now or was[name] != now[name]
            ]
            return f"row {number} differs in {listed(differing)}"
    return None


def _case(record: dict[str, Json], answers: Collection[str]) -> dict[str, Json]:
    """Return the fields of a row that identify its test case: `id` and `inputs`, or else all columns but `answers`."""
    if is_keyed(record) and record.get("id") is not None:
        return {name: record[name] for name in ("id", "inputs")}
    for column in answers:
        record = without_column(record, column)
    return record
