"""Checks templates, and makes rows from them, in limited processes, because callers write the templates."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from evaluator_host.engine.system.limited_process import CallLimits, LimitedProcesses
from evaluator_host.platform.datasets.mapping import BadRow, Mapping, to_row
from evaluator_host.platform.datasets.template import BadTemplate, compiled, names_needed
from evaluator_host.types.errors import InvalidRequest, LimitExceeded, Problem
from evaluator_host.types.evaluator import ROW_FIELDS, Row
from evaluator_host.types.json_values import decode_json, encode_json

_BATCH_S: Final = 2.0  # seconds of processor time after which a call returns the rows that it has made so far
_BATCH_BYTES: Final = 16 << 20
_ROW_BYTES: Final = 64 << 20  # maximum size, in bytes, of a row made by templates, which may repeat values
_LIMITS: Final = CallLimits(cpu_s=10, memory_mb=1024, result_bytes=_BATCH_BYTES + _ROW_BYTES)


async def require_templates(processes: LimitedProcesses, workspace: str, templates: Sequence[tuple[str, str]]) -> None:
    """Check templates, each given with the path of its field in the request.

    Raises:
      InvalidRequest: a template cannot be parsed, or uses a construct that is not allowed.
      HostError: for the reasons given at `LimitedProcesses.call`.
    """
    if not templates:
        return
    try:
        faults = await processes.call(
            workspace, template_faults, [template for _, template in templates], limits=_LIMITS
        )
    except LimitExceeded as error:
        raise type(error)(f"the templates are not valid: {error.detail}") from error
    problems = [
        Problem(field, f"the template is not valid: {fault}")
        for (field, _), fault in zip(templates, faults, strict=True)
        if fault is not None
    ]
    if problems:
        raise InvalidRequest(f"{problems[0].field}: {problems[0].message}", problems=tuple(problems))


async def read_names(processes: LimitedProcesses, workspace: str, templates: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns that each template needs, see `names_in_templates`.

    Raises:
      HostError: for the reasons given at `LimitedProcesses.call`.
    """
    return await processes.call(workspace, names_in_templates, templates, limits=_LIMITS) if templates else {}


async def render_records(
    processes: LimitedProcesses,
    workspace: str,
    lines: Sequence[bytes],
    function: Callable[[Any, dict[str, Any]], Any],
    given: Any,
    *,
    refusal: str = "the templates cannot be rendered with the rows",
) -> list[Any]:
    """Return the result of `function(given, record)` for the record in each JSON line, or the `BadRow` that it raises.

    Raises:
      LimitExceeded: one record takes too much processor time or memory. Its message begins with `refusal`.
      HostError: for the reasons given at `LimitedProcesses.call`.
    """
    made: list[Any] = []
    while len(made) < len(lines):
        data = b"".join(lines[len(made) :])
        limits = replace(_LIMITS, argument_bytes=len(data) + _BATCH_BYTES)
        try:
            answer = await processes.call(workspace, rendered_lines, data, function, given, limits=limits)
        except LimitExceeded as error:
            raise type(error)(f"{refusal}: {error.detail}") from error
        made += await asyncio.to_thread(_decoded_lines, answer)
    return made


async def mapped_rows(
    processes: LimitedProcesses,
    workspace: str,
    lines: Sequence[bytes],
    mapping: Mapping,
    numbers: Sequence[int | None] | None = None,
) -> list[Row | BadRow]:
    """Return the row that the record in each JSON line maps to, or a `BadRow` if it cannot become a row.

    `numbers` are the rows' positions in a data set.

    Raises:
      LimitExceeded: the templates take too much processor time or memory.
      HostError: for the reasons given at `LimitedProcesses.call`.
    """
    numbers = numbers or [None] * len(lines)
    if not mapping.templates:
        return await asyncio.to_thread(lambda: [*map(partial(_mapped, mapping), lines, numbers)])
    made = await render_records(processes, workspace, lines, row_fields, mapping)
    found = zip(made, numbers, strict=True)
    return [one if isinstance(one, BadRow) else Row(**one, index=number) for one, number in found]


def _mapped(mapping: Mapping, line: bytes, number: int | None) -> Row | BadRow:
    try:
        return to_row(decode_json(line), mapping, number)
    except BadRow as error:
        return error


def _decoded_lines(answer: bytes) -> list[Any]:
    made = map(decode_json, answer.split(b"\n"))
    return [BadRow(one["fault"]) if "fault" in one else one["made"] for one in made]


def names_in_templates(templates: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns that each template needs. The list is empty if a template tests whether a column exists."""
    return {one: names_needed(one) for one in templates}


def template_faults(templates: Sequence[str]) -> list[str | None]:
    """Return an error message for each template, or None if the template is valid."""
    return [_fault(template) for template in templates]


def _fault(template: str) -> str | None:
    try:
        compiled(template)
    except BadTemplate as error:
        return str(error)
    return None


def row_fields(mapping: Mapping, record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the row that a record maps to: `{"inputs": {…}, "outputs": …, …}`."""
    row = to_row(record, mapping)
    return {name: getattr(row, name) for name in ROW_FIELDS}


def rendered_lines(data: bytes, function: Callable[[Any, dict[str, Any]], Any], given: Any) -> bytes:
    """Call `function(given, record)` for the record in each line. Return JSON lines: a result (`made`) or a `fault`.

    If the time is up, or the results are too large together, the remaining lines get no result.
    """
    end_s = time.process_time() + _BATCH_S
    made: list[bytes] = []
    size = 0
    for line in data.splitlines():
        made.append(_rendered(line, function, given))
        size += len(made[-1])
        if size > _BATCH_BYTES or time.process_time() > end_s:
            break
    return b"\n".join(made)


def _rendered(line: bytes, function: Callable[[Any, dict[str, Any]], Any], given: Any) -> bytes:
    try:
        text = encode_json({"made": function(given, decode_json(line))})
        if len(text) <= _ROW_BYTES:
            return text
        fault = f"it has more than {_ROW_BYTES >> 20} MB"
    except (BadRow, BadTemplate) as error:
        fault = str(error)
    except MemoryError:
        fault = "it takes too much memory"
    except (TypeError, ValueError, RecursionError) as error:
        fault = f"a template's value cannot be written as JSON: {error}"
    return encode_json({"fault": fault})
