"""Sends server-sent events. Each key may have a limited number of open streams."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from anyio import CancelScope
from fastapi import Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from evaluator_host.types.errors import Busy, HostError
from evaluator_host.types.json_values import encode_json

_log = logging.getLogger(__name__)


class EventStreams:
    """The event streams that callers have open. All of them end when the host stops.

    Args:
      most: Maximum number of streams that one key may have open.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str | None] = Counter()
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End all open streams; a stream that is opened later ends at once."""
        self._closing.set()

    def respond(self, key_id: str | None, events: AsyncGenerator[tuple[str, object], None]) -> Response:
        """Return a response that sends `(event name, value)` pairs as server-sent events to the caller with this key.

        Sending the response raises `Busy` if the key already has the maximum number of open streams.
        """
        return _EventResponse(self, key_id, self._lines(events))

    def require_free(self, key_id: str | None) -> None:
        """Check that a key may open another stream, before anything is read for the stream.

        Raises:
          Busy: the key already has the maximum number of open streams.
        """
        if self._open[key_id] >= self._most:
            raise Busy(
                f"this key has {self._most} event streams open, which is the maximum (EVALUATOR_HOST_EVENT_STREAMS); "
                "close one, or poll the state instead",
                retry_after_s=2,
            )

    @contextmanager
    def counted(self, key_id: str | None) -> Iterator[None]:
        """Count one more open stream of a key during the block. Raise `Busy` if the key has the maximum."""
        self.require_free(key_id)
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
            # an error response is no longer possible, so the stream ends, and the client opens it again
            except HostError as error:
                _log.warning("an event stream was ended: %s", error.detail)
            finally:
                for wait in waits:
                    wait.cancel()
                # the wait is shielded, because Starlette cancels repeatedly, and a generator that is running cannot be
                # closed
                with CancelScope(shield=True):
                    await asyncio.wait(waits)


class _EventResponse(StreamingResponse):
    """A response with server-sent events that counts as an open stream while it is sent."""

    def __init__(self, streams: EventStreams, key_id: str | None, lines: AsyncGenerator[bytes, None]) -> None:
        super().__init__(lines, media_type="text/event-stream")
        self._streams, self._key_id = streams, key_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until they end, the caller hangs up, or the host stops."""
        with self._streams.counted(self._key_id):
            await super().__call__(scope, receive, send)
