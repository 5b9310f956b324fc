"""The interface for reading rows from a dialect's own JSON documents, and the extra columns of such rows."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from evaluator_host.types.evaluator import Json

CRITERIA: Final = "criteria_by_evaluator"
"""Column with the criteria for each evaluator, by the evaluator's name. Evaluators without criteria skip the row."""

AGENT_ERROR: Final = "agent_error"
"""Column with the reason why there is no output to score."""


class RowDocument(Protocol):
    """Reads one kind of JSON document that holds rows: a file, or part of a request."""

    def recognises(self, document: dict[str, Any]) -> bool:
        """Return whether a JSON object is a document of this kind."""
        ...

    def row_count(self, document: dict[str, Any]) -> int:
        """Return how many rows the document contains; the rows are not checked."""
        ...

    def rows(self, document: dict[str, Any]) -> list[dict[str, Json]]:
        """Return the rows of the document.

        Raises:
          InvalidRequest: the document has a fault.
        """
        ...

    def evaluators(self, document: dict[str, Any]) -> Sequence[str]:
        """Return the names of the evaluators that the document mentions.

        Raises:
          InvalidRequest: the document has a fault.
        """
        ...
