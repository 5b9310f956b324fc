"""What routes share: JSON answers, problems as they are documented, events, the audit of a verb."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from fastapi import Response
from fastapi.responses import StreamingResponse

from evaluator_host.model.json_values import encode_json
from evaluator_host.web.auth.audit import Audited
from evaluator_host.web.http.error_responses import described


def problem(status: int, description: str) -> dict[int | str, dict[str, Any]]:
    """Return how a problem is documented."""
    return {status: described(description)}


def json_answer(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a value as JSON; dataclasses are objects, integers of any size stay exact."""
    return Response(encode_json(value), status, headers, media_type="application/json")


def event_answer(events: AsyncGenerator[tuple[str, object], None]) -> Response:
    """Return named values as server-sent events."""
    return StreamingResponse(_lines(events), media_type="text/event-stream")


async def _lines(events: AsyncGenerator[tuple[str, object], None]) -> AsyncIterator[bytes]:
    async with aclosing(events) as named:
        async for name, value in named:
            yield b"event: " + name.encode() + b"\ndata: " + encode_json(value) + b"\n\n"


@contextmanager
def audited(entry: Audited) -> Iterator[None]:
    """Note in the audit log how the block ends."""
    try:
        yield
    except Exception as error:
        entry.failed(error)
        raise
    entry.answered(None)
