"""Reads large bodies of evaluations in a child process: the host decodes the evaluator, and keeps the rows as JSON."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from pydantic import ValidationError

from evaluator_host.dialects.row_binding import encoded_fields
from evaluator_host.model.errors import InvalidRequest
from evaluator_host.model.evaluator import EncodedRow
from evaluator_host.model.json_values import (
    LARGE_BYTES,
    InvalidJson,
    decode_json,
    encode_json,
    memory_bytes,
    takes_more_memory,
)
from evaluator_host.model.outcome import EvaluationError
from evaluator_host.system.limited_process import CallLimits
from evaluator_host.web.api.bodies import BatchIn, EvaluateIn, RowIn
from evaluator_host.web.auth.access import caller_of
from evaluator_host.web.http.error_responses import invalid_request
from evaluator_host.web.http.json_routes import JsonRequest, JsonRoute, require_few_rows, too_many_values

_LIMITS: Final = CallLimits(cpu_s=20, memory_mb=2048, result_bytes=128 << 20)
_DECODED_MB: Final = 512  # of the child process: more than a body of 32 MB of ordinary text can take
_HEAD: Final = 4  # bytes of the length of the head
_MODELS: Final[dict[str, type[EvaluateIn | BatchIn]]] = {one.__name__: one for one in (EvaluateIn, BatchIn)}


def split_rows(model: str, body: bytes, max_rows: int) -> bytes:
    """Return the body of an evaluation for `joined_rows`, with its rows as JSON; runs in a child process.

    Args:
      model: `EvaluateIn` or `BatchIn`.
      body: The request's body.
      max_rows: Ceiling of a batch.

    Raises:
      InvalidRequest: it is no such body; every faulty field is named.
    """
    if takes_more_memory(body, _DECODED_MB << 20):
        raise too_many_values(memory_bytes(body))
    try:
        value = decode_json(body)
    except InvalidJson as error:
        fault = {"type": "json_invalid", "loc": (), "msg": "", "ctx": {"error": str(error)}}
        raise invalid_request([fault]) from error
    require_few_rows(value, max_rows)
    try:
        _MODELS[model].model_validate(value)
    except ValidationError as error:
        raise invalid_request(error.errors(include_url=False, include_input=False)) from error
    rows = value.pop("rows", None)
    if rows is None:
        rows = [{name: value.pop(name) for name in RowIn.model_fields if name in value}]
    made = list(map(_row, rows))
    sizes = [(sum(map(len, texts)), of_fields) for texts, of_fields in made]
    head = encode_json({"body": value, "sizes": sizes})
    return b"".join((len(head).to_bytes(_HEAD), head, *(text for texts, _ in made for text in texts)))


def _row(row: dict[str, Any]) -> tuple[list[bytes], dict[str, int]]:
    made = encoded_fields(row)
    if isinstance(made, EvaluationError):
        raise InvalidRequest(made.message)
    return made


def joined_rows(model: str, answer: bytes) -> EvaluateIn | BatchIn:
    """Return the body whose rows `split_rows` left as JSON."""
    start = _HEAD + int.from_bytes(answer[:_HEAD])
    head = decode_json(answer[_HEAD:start])
    parts = _rows(answer, start, head["sizes"])
    if model == BatchIn.__name__:
        return BatchIn.model_validate({**head["body"], "rows": [RowIn().keep_encoded(part) for part in parts]})
    return EvaluateIn.model_validate(head["body"]).keep_encoded(next(parts))


def _rows(answer: bytes, start: int, sizes: list[tuple[int, dict[str, int]]]) -> Iterator[EncodedRow]:
    for size, of_fields in sizes:
        yield EncodedRow(answer[start : start + size], sizes=of_fields)
        start += size


class _RowsRequest(JsonRequest):
    async def decoded(self, body: bytes) -> Any:
        if len(body) <= LARGE_BYTES or self.model is None:
            return await super().decoded(body)
        state, name = self.app.state, self.model.__name__
        work = (split_rows, name, body, state.max_rows)
        answer = await state.service.processes.call(caller_of(self.scope).workspace, *work, limits=_LIMITS)
        return await asyncio.to_thread(joined_rows, name, answer)


class RowsRoute(JsonRoute):
    """A route whose body is an `EvaluateIn` or a `BatchIn`; a child process reads a large one."""

    request_class = _RowsRequest
