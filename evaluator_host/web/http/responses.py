"""Builds the responses of routes: JSON and server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from fastapi import Response
from fastapi.responses import StreamingResponse

from evaluator_host.model.json_values import encode_json


def json_response(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a value as JSON; dataclasses become objects, integers of any size stay exact."""
    return Response(encode_json(value), status, headers, media_type="application/json")


def event_response(events: AsyncGenerator[tuple[str, object], None]) -> Response:
    """Return `(event name, value)` pairs as server-sent events."""
    return StreamingResponse(_lines(events), media_type="text/event-stream")


async def _lines(events: AsyncGenerator[tuple[str, object], None]) -> AsyncIterator[bytes]:
    async with aclosing(events) as named:
        async for name, value in named:
            yield b"event: " + name.encode() + b"\ndata: " + encode_json(value) + b"\n\n"
