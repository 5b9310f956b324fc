"""Streams of server-sent events end quietly when their readers vanish, whatever the events wait for."""

import asyncio
from collections.abc import AsyncGenerator

from starlette.types import Message

from evaluator_host.web.http.event_streams import EventStreams


async def slowly_closed(log: list[str]) -> AsyncGenerator[tuple[str, object], None]:
    """One event, then nothing; its end takes a few turns of the loop, as a look at a database does."""
    try:
        yield "progress", 1
        await asyncio.Event().wait()
    finally:
        for _ in range(5):
            await asyncio.sleep(0)
        log.append("closed")


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
