"""Reads large request bodies with rows. The host decodes the evaluator, but keeps the rows as JSON.

If the rows are JSON that all decoders read in the same way, the host keeps them as they were sent. Otherwise a child
process decodes them and encodes them again.
"""

import asyncio
import mmap
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any, Final

from pydantic import ValidationError

from evaluator_host.engine.contracts.row_binding import encoded_fields
from evaluator_host.engine.system.limited_process import CallLimits
from evaluator_host.platform.evaluators.bodies import BatchIn, EncodedEvaluateIn, EncodedRowIn, EvaluateIn, RowIn
from evaluator_host.platform.http.auth.access import caller_of
from evaluator_host.platform.http.error_responses import invalid_request
from evaluator_host.platform.http.json_routes import BodyRoute, JsonRequest, require_few_rows, too_many_values
from evaluator_host.platform.http.middleware import headers_of
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import EncodedRow
from evaluator_host.types.json_texts import NotPlain, Octets, item_texts, part, plain_fields
from evaluator_host.types.json_values import (
    LARGE_BYTES,
    InvalidJson,
    decode_given,
    decode_json,
    encode_json,
    memory_bytes,
    require_single_keys,
    takes_more_memory,
)
from evaluator_host.types.outcome import EvaluationError

_LIMITS: Final = CallLimits(cpu_s=20, memory_mb=2048, result_bytes=128 << 20)
_DECODED_MB: Final = 512  # memory limit of the child process, in MB; 32 MB of ordinary text never need as much
# maximum size of a body that a thread of the host cuts into rows, which takes at most 40 ms
_CUT_BYTES: Final = 8 << 20
# maps the first byte of a JSON value to a short value of the same type, which stands for it when types are checked
_SHAPES: Final[dict[bytes, Any]] = {
    b"{": {},
    b"[": [0],
    b'"': "",
    b"n": None,
}
_PAGE_BYTES: Final = 2 << 20
# minimum size of a body in mapped memory; a smaller one would take more memory than is reserved for it
_MAPPED_BYTES: Final = _PAGE_BYTES // 2
_HEAD: Final = 4  # number of bytes for the length of the head (the body without its rows, and the rows' sizes)
_MODELS: Final[dict[str, type[EvaluateIn | BatchIn]]] = {one.__name__: one for one in (EvaluateIn, BatchIn)}


def split_rows(model: str, body: bytes, max_rows: int) -> bytes:
    """Check the body of an evaluation request, and serialize it for `joined_rows`. Runs in a child process.

    Args:
      model: Name of the body's class, `EvaluateIn` or `BatchIn`.
      body: The request's body.
      max_rows: Maximum number of rows in a batch.

    Raises:
      InvalidRequest: the body is not valid for the model; the error names the faulty fields.
    """
    if takes_more_memory(body, _DECODED_MB << 20):
        raise too_many_values(memory_bytes(body))
    try:
        value = decode_given(body)
        require_single_keys(body, value)
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
    sizes = [{name: len(text) for name, text in texts.items()} for texts in made]
    head = encode_json({"body": value, "sizes": sizes})
    return b"".join((len(head).to_bytes(_HEAD), head, *(text for texts in made for text in texts.values())))


def _row(row: dict[str, Any]) -> dict[str, bytes]:
    made = encoded_fields(row)
    if isinstance(made, EvaluationError):
        raise InvalidRequest(made.message)
    return made


def joined_rows(model: str, answer: bytes) -> EvaluateIn | BatchIn:
    """Parse the bytes that `split_rows` returned into a request body. Its rows stay JSON (see `EncodedRowIn`)."""
    start = _HEAD + int.from_bytes(answer[:_HEAD])
    head = decode_json(answer[_HEAD:start])
    rows = list(_rows(memoryview(answer), start, head["sizes"]))
    return _joined(model, head["body"], rows, [{} for _ in rows])


def _rows(answer: memoryview, start: int, sizes: list[dict[str, int]]) -> Iterator[dict[str, Octets]]:
    for of_fields in sizes:
        texts = dict[str, Octets]()
        for name, size in of_fields.items():
            texts[name] = part(answer[start : start + size])
            start += size
        yield texts


def cut_rows(model: str, body: Octets, max_rows: int) -> EvaluateIn | BatchIn:
    """Parse the body of an evaluation request, except its rows. The rows stay JSON, exactly as they were sent.

    Raises:
      NotPlain: the body cannot be read without decoding its rows; use `split_rows`.
    """
    fields = plain_fields(body)
    if model == BatchIn.__name__:
        rows = item_texts(fields.pop("rows", b""))
    else:
        rows = [{name: fields.pop(name) for name in RowIn.model_fields if name in fields}]
    if len(rows) > max_rows or sum(map(len, fields.values())) > LARGE_BYTES:
        raise NotPlain("the body has large fields besides its rows")
    try:
        shapes = [{name: _SHAPES.get(bytes(text[:1]), 0) for name, text in row.items()} for row in rows]
        return _joined(model, {name: decode_json(bytes(text)) for name, text in fields.items()}, rows, shapes)
    except ValueError as error:
        raise NotPlain(str(error)) from error


def _joined(
    model: str, others: dict[str, Any], rows: list[dict[str, Octets]], shapes: list[dict[str, Any]]
) -> EvaluateIn | BatchIn:
    """Return the validated body; its rows stay encoded as JSON.

    `others` are the fields besides the rows. Pydantic checks `shapes`, small values with the same JSON types, instead
    of the real rows.
    """
    kept = [EncodedRow(row) for row in rows]
    if model != BatchIn.__name__:
        return EncodedEvaluateIn.model_validate({**others, **shapes[0]}).keep_encoded(kept[0])
    given = [EncodedRowIn.model_validate(shape).keep_encoded(row) for shape, row in zip(shapes, kept, strict=True)]
    return BatchIn.model_validate({**others, "rows": given})


async def _mapped(chunks: AsyncIterator[bytes], size: int) -> memoryview:
    """Collect a body of at most `size` bytes in mapped memory, in pages of 2 MB if the kernel has them.

    Each chunk is copied as soon as it arrives, so that the next chunk can use the same memory.
    """
    block = mmap.mmap(-1, -(-size // _PAGE_BYTES) * _PAGE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # raised when the kernel has no large pages
        block.madvise(mmap.MADV_HUGEPAGE)
    held = 0
    async for chunk in chunks:
        block[held : held + len(chunk)] = chunk
        held += len(chunk)
    return memoryview(block)[:held]


class _RowsRequest(JsonRequest):
    async def arrived(self) -> Octets:
        length = headers_of(self.scope).get(b"content-length", "")
        if self.model is None or not length.isdecimal() or int(length) < _MAPPED_BYTES:
            return await super().arrived()
        if not hasattr(self, "_mapped"):
            self._mapped = await _mapped(self.stream(), int(length))
        return self._mapped

    async def decoded(self, body: Octets) -> Any:
        if len(body) <= LARGE_BYTES or self.model is None:
            return await super().decoded(bytes(body))
        state, workspace = self.app.state, caller_of(self.scope).workspace
        name, most = self.model.__name__, state.max_rows
        if len(body) <= _CUT_BYTES:
            with suppress(NotPlain):
                async with state.reading.turn(workspace):
                    return await asyncio.to_thread(cut_rows, name, body, most)
        answer = await state.service.processes.call(workspace, split_rows, name, bytes(body), most, limits=_LIMITS)
        return await asyncio.to_thread(joined_rows, name, answer)


class RowsRoute(BodyRoute):
    """A route for an `EvaluateIn` or a `BatchIn`. Large bodies are read in a thread or in a child process."""

    request_class = _RowsRequest
