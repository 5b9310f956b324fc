"""Routes that read and return JSON or server-sent events; bodies that would fill the host's memory are refused.

A body of 32 MB may hold ten million small objects. Each takes about sixty bytes in Python, hundreds as a row, and each
may cause an error message. So the memory is estimated before decoding, and rows are counted before validation.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Final

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from evaluator_host.dialects.table import row_document
from evaluator_host.model.errors import Busy, InvalidRequest, Problem
from evaluator_host.model.json_values import InvalidJson, decode_json, encode_json

DECODED_MB: Final = 512  # more than a body of 32 MB of ordinary text can take
_WEIGHED_FROM: Final = 4 << 20  # a smaller body cannot reach DECODED_MB
_WEIGHTS: Final = ((b"{", 64), (b"[", 56), (b":", 110), (b",", 56))  # bytes of a dict, a list, an entry, an element


class JsonRequest(Request):
    """A request whose body is decoded by orjson."""

    async def body(self) -> bytes:
        """Return the whole body.

        Raises:
          InvalidRequest: the body is compressed; its decompressed size is unknown until it has filled the memory.
        """
        encoding = self.headers.get("content-encoding", "identity").lower()
        if encoding != "identity":
            raise InvalidRequest(f"Content-Encoding {encoding[:40]!r} is not accepted; send uncompressed JSON")
        return await super().body()

    async def json(self) -> Any:
        """Return the decoded body; integers beyond 64 bits stay exact.

        Raises:
          InvalidRequest: the body has too many values, or more rows than one request may have.
        """
        body = await self.body()
        _weigh(body)
        try:
            value = decode_json(body)
        except InvalidJson as error:
            raise json.JSONDecodeError(str(error), "", 0) from error
        if isinstance(value, dict):
            _require_few_rows(value, self.app.state.max_rows)
        return value


class JsonRoute(APIRoute):
    """A route that reads bodies with `JsonRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the route's handler, wrapped to receive a `JsonRequest`."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(JsonRequest(request.scope, request.receive))

        return handle


def _require_few_rows(body: dict[str, Any], ceiling: int) -> None:
    """Check the number of rows in the body of a batch or a job."""
    if isinstance(rows := body.get("rows"), list):
        require_rows(len(rows), ceiling)
    dataset = body.get("dataset")
    if isinstance(dataset, dict) and (brought := _row_count(dataset)) > ceiling:
        message = f"{brought} rows are more than the {ceiling} that the body of a job may have"
        hint = "upload them as a data set (POST /v1/datasets, client.datasets.upload) and give its name"
        raise InvalidRequest("too many rows in the body of a job", problems=(Problem("dataset.rows", message, hint),))


def _row_count(dataset: dict[str, Any]) -> int:
    """Return the number of rows, or test cases, in the body of a job."""
    rows = dataset.get("rows")
    document = row_document(dataset)
    return max(len(rows) if isinstance(rows, list) else 0, document.row_count(dataset) if document is not None else 0)


def require_rows(rows: int, ceiling: int) -> None:
    """Check that a batch does not have too many rows.

    Raises:
      InvalidRequest: it is over the ceiling.
    """
    if rows > ceiling:
        problem = Problem("rows", f"{rows} rows are more than this host's limit of {ceiling}", "send fewer per request")
        raise InvalidRequest("too many rows in one batch", problems=(problem,))


def _weigh(body: bytes) -> None:
    if len(body) < _WEIGHED_FROM:
        return
    weight = len(body) + sum(body.count(mark) * size for mark, size in _WEIGHTS)
    if weight > DECODED_MB << 20:
        raise InvalidRequest(
            f"the body has so many values that they would take about {weight >> 20} MB; send fewer per request"
        )


def json_response(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a value as JSON; dataclasses become objects, integers of any size stay exact."""
    return Response(encode_json(value), status, headers, media_type="application/json")


class EventStreams:
    """The streams of server-sent events that callers have open; all of them end when the host stops.

    Args:
      most: Streams that one key may have open.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str | None] = Counter()
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End every stream now, and later ones at once."""
        self._closing.set()

    def respond(self, key_id: str | None, events: AsyncGenerator[tuple[str, object], None]) -> Response:
        """Return `(event name, value)` pairs as server-sent events of a key.

        Sending it raises `Busy` when the key has its streams open already.
        """
        return _EventResponse(self, key_id, self._lines(events))

    @contextmanager
    def counted(self, key_id: str | None) -> Iterator[None]:
        """Count one stream of a key during the block.

        Raises:
          Busy: the key has its streams open already.
        """
        if self._open[key_id] >= self._most:
            raise Busy(
                f"this key has {self._most} streams of events open, and may have no more "
                "(EVALUATOR_HOST_EVENT_STREAMS); end one, or ask for the state now and then",
                retry_after_s=2,
            )
        self._open[key_id] += 1
        try:
            yield
        finally:
            self._open[key_id] -= 1

    async def _lines(self, events: AsyncGenerator[tuple[str, object], None]) -> AsyncGenerator[bytes, None]:
        waits: list[asyncio.Future[Any]] = [closing := asyncio.ensure_future(self._closing.wait())]
        async with aclosing(events) as named:
            try:
                while not closing.done():
                    waits[1:] = [coming := asyncio.ensure_future(anext(named, None))]
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                    if not coming.done() or (event := coming.result()) is None:
                        return
                    yield b"event: " + event[0].encode() + b"\ndata: " + encode_json(event[1]) + b"\n\n"
            finally:
                for wait in waits:
                    wait.cancel()
                await asyncio.wait(waits)


class _EventResponse(StreamingResponse):
    """Server-sent events; counted while they are sent."""

    def __init__(self, streams: EventStreams, key_id: str | None, lines: AsyncGenerator[bytes, None]) -> None:
        super().__init__(lines, media_type="text/event-stream")
        self._streams, self._key_id = streams, key_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until they end, the caller hangs up, or the host stops."""
        with self._streams.counted(self._key_id):
            await super().__call__(scope, receive, send)
