"""A stream of server-sent events ends without an error when its reader closes the connection, even while the stream
waits for its next event.
"""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from starlette.types import Message

from evaluator_host.platform.http.event_streams import EventStreams
from evaluator_host.types.errors import StoreUnavailable


async def outage() -> AsyncGenerator[tuple[str, object], None]:
    """Yield one event, then raise the error of a database that does not answer."""
    yield "progress", 1
    raise StoreUnavailable("the database does not answer")


async def slowly_closed(log: list[str]) -> AsyncGenerator[tuple[str, object], None]:
    """Yield one event, then nothing. Like a database query, this generator needs a few iterations of the event loop to
    close.
    """
    try:
        yield "progress", 1
        await asyncio.Event().wait()
    finally:
        for _ in range(5):
            await asyncio.sleep(0)
        log.append("closed")


async def test_a_stream_whose_events_cannot_be_read_any_more_ends(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("nobody hangs up")

    await EventStreams(1).respond(None, outage())({"type": "http", "asgi": {"spec_version": "2.3"}}, receive, send)
    assert [message.get("more_body", True) for message in sent] == [True, True, False]
    assert "the database does not answer" in caplog.text


async def test_a_reader_that_vanishes_while_the_next_event_is_awaited() -> None:
    log: list[str] = []
    sent = asyncio.Event()

    async def receive() -> Message:
        await sent.wait()
        await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message.get("body"):
            sent.set()

    response = EventStreams(1).respond(None, slowly_closed(log))
    await response({"type": "http", "asgi": {"spec_version": "2.3"}}, receive, send)
    assert log == ["closed"]
