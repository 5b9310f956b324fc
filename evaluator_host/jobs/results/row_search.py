"""Searches the rows of a job for a text: in the data, the output, and the result."""

from collections.abc import Iterator
from typing import Any, Final

from evaluator_host.schemas.results import JobRow

_OF_RESULT: Final = ("label", "reason", "value", "error", "logs")


class RowSearch:
    """Finds a text, whatever its case."""

    def __init__(self, text: str) -> None:
        self._text = text.casefold()

    def matches(self, row: JobRow) -> bool:
        """Return whether a value of the row has the text in it; names of columns do not count."""
        result = [row.result.get(name) for name in _OF_RESULT]
        return any(self._text in value.casefold() for value in _values([row.row, row.output, result]))


def _values(value: Any) -> Iterator[str]:
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)
        elif isinstance(one, str):
            yield one
        elif one is not None and not isinstance(one, bool):
            yield str(one)
