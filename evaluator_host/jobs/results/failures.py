"""Failures that are alike, put together: the same code and type, on the same line, with the same words."""

import re
from collections.abc import AsyncIterable
from typing import Any, Final

from evaluator_host.model.json_values import decode_json
from evaluator_host.schemas.results import FailureGroup
from evaluator_host.store.job_queue import StoredResult

GROUPS: Final = 200
_EXAMPLES: Final = 5
_MESSAGE: Final = 300
_NUMBERS: Final = re.compile(r"\d+")


async def failure_groups(label: str, failures: AsyncIterable[StoredResult]) -> list[FailureGroup]:
    """Return the groups of an evaluator's failures, the greatest first.

    Once there are `GROUPS` of them, what fits into none is counted by its code alone.
    """
    groups: dict[tuple[Any, ...], tuple[FailureGroup, list[int], int]] = {}
    async for one in failures:
        error = decode_json(one.result.encode())["error"]
        message = str(error["message"])[:_MESSAGE]
        key: tuple[Any, ...] = (error["code"], error["type"], error["line"], _NUMBERS.sub("#", message))
        if key not in groups and len(groups) >= GROUPS:
            key = (error["code"],)
            error, message = {"code": error["code"], "type": None, "line": None}, "other errors of this kind"
        found = groups.get(key)
        if found is None:
            group = FailureGroup(label, error["code"], error["type"], message, error["line"], 0, ())
            found = (group, [], 0)
        group, rows, count = found
        if len(rows) < _EXAMPLES:
            rows.append(one.row)
        groups[key] = (group, rows, count + 1)
    made = [
        FailureGroup(group.evaluator, group.code, group.type, group.message, group.line, count, tuple(rows))
        for group, rows, count in groups.values()
    ]
    return sorted(made, key=lambda group: (-group.count, group.rows))
