"""Picks one evaluator's criteria from rows that have criteria by evaluator."""

from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from evaluator_host.datasets.mapping import is_row
from evaluator_host.dialects.row_documents import AGENT_ERROR, CRITERIA
from evaluator_host.model.evaluator import Row
from evaluator_host.model.outcome import ErrorCode, EvaluationError, Given, Note, Skipped

_SHOWN = 8


def is_keyed(record: dict[str, Any]) -> bool:
    """Return whether a record has criteria by evaluator."""
    return is_row(record) and isinstance(record.get(CRITERIA), dict)


def given_to(row: Row, record: dict[str, Any], names: AbstractSet[str], *, outputs_come: bool) -> Given:
    """Return a row with the criteria of one evaluator, or the skip or error in its place.

    Args:
      row: The mapped record.
      record: A record with criteria by evaluator.
      names: Names of the evaluator, one of which may have criteria there.
      outputs_come: Whether a model writes the outputs.
    """
    criteria: dict[str, Any] = record[CRITERIA]
    known = sorted(names & criteria.keys())
    if not known:
        others = ", ".join(list(criteria)[:_SHOWN]) or "none"
        return Skipped(Note("not_asked", f"the row has no criteria for this evaluator; it has criteria for {others}"))
    if isinstance(record.get(AGENT_ERROR), str):
        return EvaluationError(ErrorCode.TARGET_FAILED, f"the agent has no output to score: {record[AGENT_ERROR]}")
    if row.outputs is None and not outputs_come and not {"outputs", "output"} & record.keys():
        return EvaluationError(
            ErrorCode.MISSING_INPUT,
            "the row has no output of the agent",
            hint="send the eval set together with its executions, or give the job a target or a mapping of outputs",
        )
    return replace(row, criteria=criteria[known[0]])
