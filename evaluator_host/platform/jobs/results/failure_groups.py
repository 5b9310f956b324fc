"""Groups the failures of an evaluator in a job by kind."""

import re
from collections.abc import AsyncIterable
from dataclasses import replace
from typing import Any, Final

from evaluator_host.platform.jobs.queue import StoredResult
from evaluator_host.types.json_values import decode_large
from evaluator_host.types.results import FailureGroup

GROUPS: Final = 200
_EXAMPLES: Final = 5
_MESSAGE: Final = 300
_NUMBERS: Final = re.compile(r"\d+")


async def failure_groups(label: str, failures: AsyncIterable[StoredResult]) -> list[FailureGroup]:
    """Return the groups of an evaluator's failures, the largest first.

    If there are more than `GROUPS` groups, further failures are grouped only by error code. `label` names the
    evaluator.
    """
    groups: dict[tuple[Any, ...], tuple[FailureGroup, list[int], int]] = {}
    async for one in failures:
        error = (await decode_large(one.result.encode()))["error"]
        message = str(error["message"])[:_MESSAGE]
        key: tuple[Any, ...] = (error["code"], error["type"], error["line"], _NUMBERS.sub("#", message))
        if key not in groups and len(groups) >= GROUPS:
            key = (error["code"],)
            error, message = {"code": error["code"], "type": None, "line": None}, "other errors of this kind"
        found = groups.get(key)
        if found is None:
            group = FailureGroup(label, error["code"], error["type"], message, error["line"], 0, (), error.get("hint"))
            found = (group, [], 0)
        group, rows, count = found
        if len(rows) < _EXAMPLES:
            rows.append(one.row)
        groups[key] = (group, rows, count + 1)
    made = [replace(group, count=count, rows=tuple(rows)) for group, rows, count in groups.values()]
    return sorted(made, key=lambda group: (-group.count, group.rows))
