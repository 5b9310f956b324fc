"""Converts an eval set, with or without executions, to rows of a data set.

Each row has the criteria for all evaluators.
"""

from collections.abc import Iterable
from typing import Any, Final

from evaluator_host.engine.contracts.row_documents import AGENT_ERROR, CRITERIA
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Json
from evaluator_host.types.names import nearest_name
from evaluator_host.vendors.uipath.eval_set import EvalItem, EvalSet, is_eval_set, items_of, parse_eval_set
from evaluator_host.vendors.uipath.executions import Execution, merged, parse_executions


def matched(eval_set: EvalSet, executions: Iterable[Execution]) -> tuple[dict[str, Execution], list[str]]:
    """Match executions with test cases by id; also return notes about executions that match no test case.

    An execution refers to its test case by id, or by a name that only one test case has.
    """
    names: dict[str, list[str]] = {}
    for item in eval_set.items:
        names.setdefault(item.name, []).append(item.id)
    ids = {item.id for item in eval_set.items}
    found: list[Execution] = []
    notes = []
    for one in executions:
        known = [one.item] if one.item in ids else names.get(one.item, [])
        if len(known) == 1:
            found.append(Execution(known[0], one.output, one.has_output, one.trace, one.error, one.seconds))
        elif known:
            notes.append(f"the execution of {one.item!r} is not used: {len(known)} test cases have that name")
        else:
            meant = nearest_name(one.item, sorted(ids))
            hint = f"; did you mean {meant}?" if meant else ""
            notes.append(f"the execution of {one.item!r} is not used: there is no such test case{hint}")
    return {one.item: one for one in merged(found)}, notes


def eval_set_rows(eval_set: EvalSet, executions: dict[str, Execution] | None = None) -> list[dict[str, Json]]:
    """Make one row for each test case, in order. Without executions, the rows have no outputs."""
    return [_row(item, executions) for item in eval_set.items]


def rows_of(value: dict[str, Any]) -> list[dict[str, Json]]:
    """Make the rows of a decoded eval set, or of an object `{"eval_set": {…}, "executions": […]}`.

    Raises:
      InvalidRequest: the eval set or an execution is not valid.
    """
    if "eval_set" not in value:
        return eval_set_rows(parse_eval_set(value))
    eval_set = parse_eval_set(value["eval_set"])
    given = value.get("executions")
    if given is None:
        return eval_set_rows(eval_set)
    found, notes = matched(eval_set, merged(parse_executions(given)))
    if notes:
        raise InvalidRequest("; ".join(notes))
    return eval_set_rows(eval_set, found)


def _row(item: EvalItem, executions: dict[str, Execution] | None) -> dict[str, Json]:
    row: dict[str, Json] = {"id": item.id, "name": item.name, "inputs": item.inputs}
    said = {
        "expected_agent_behavior": item.expected_agent_behavior,
        "simulation_instructions": item.simulation_instructions,
    }
    if any(said.values()):
        row["variables"] = said
    row[CRITERIA] = item.criteria
    if executions is None:
        return row
    execution = executions.get(item.id)
    if execution is None:
        return {**row, AGENT_ERROR: "this test case has no recorded execution"}
    if execution.error is not None:
        row[AGENT_ERROR] = execution.error
    else:
        row["outputs"] = execution.output
    if execution.trace is not None:
        row["trace"] = execution.trace
    return row


class EvalSetDocument:
    """Reader for an eval set, or for an object `{"eval_set": {…}, "executions": […]}`."""

    def recognises(self, document: dict[str, Any]) -> bool:
        """Whether a JSON object is an eval set, or an eval set and its executions."""
        return "eval_set" in document or is_eval_set(document)

    def row_count(self, document: dict[str, Any]) -> int:
        """Return the number of test cases without checking them."""
        eval_set = document.get("eval_set", document)
        return len(items_of(eval_set)) if isinstance(eval_set, dict) else 0

    def rows(self, document: dict[str, Any]) -> list[dict[str, Json]]:
        """Return one row for each test case.

        Raises:
          InvalidRequest: the eval set or an execution has a fault.
        """
        return rows_of(document)

    def evaluators(self, document: dict[str, Any]) -> tuple[str, ...]:
        """Return the ids of the set's evaluators.

        Raises:
          InvalidRequest: the eval set has a fault.
        """
        return parse_eval_set(document.get("eval_set", document)).evaluators


EVAL_SETS: Final = EvalSetDocument()
