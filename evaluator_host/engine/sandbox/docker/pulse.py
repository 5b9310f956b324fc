"""Tells whether the engine answers, so that a row is not blamed for an engine that hangs."""

import asyncio
import logging
import time
from typing import Final

from evaluator_host.engine.sandbox.docker.attach import EngineAddress, open_streams

_LOG: Final = logging.getLogger(__name__)
_EVERY_S: Final = 1.0
# seconds to wait for an answer on one connection: if the peer has vanished, only a new connection reaches the engine
_ANSWER_S: Final = 5.0


class Pulse:
    """Sends the engine a small request when `silent_s` is called, but at most once a second.

    If there is no answer, it repeats the request until the engine answers.
    """

    def __init__(self) -> None:
        self._asked_at = -_EVERY_S
        self._question: asyncio.Task[None] | None = None

    def silent_s(self, endpoint: EngineAddress) -> float:
        """Return for how many seconds the last request has had no answer; 0 if it was answered. Never wait."""
        now = time.monotonic()
        if self._question is not None and not self._question.done():
            return now - self._asked_at
        if now - self._asked_at >= _EVERY_S:
            self._asked_at = now
            self._question = asyncio.create_task(_ask(endpoint))
        return 0.0

    async def stop(self) -> None:
        """Stop sending requests."""
        if self._question is not None:
            self._question.cancel()
            await asyncio.wait([self._question])


async def _ask(endpoint: EngineAddress) -> None:
    while not await _answers(endpoint):
        _LOG.debug("ping: no answer for %g s", _ANSWER_S)


async def _answers(endpoint: EngineAddress) -> bool:
    """Return True if the engine answers on a new connection, or if nothing listens there.

    Return False if no answer comes.
    """
    try:
        async with asyncio.timeout(_ANSWER_S):
            reader, writer = await open_streams(endpoint)
            try:
                writer.write(f"GET /_ping HTTP/1.0\r\nHost: {endpoint.host or 'localhost'}\r\n\r\n".encode("ascii"))
                await reader.readline()
            finally:
                writer.transport.abort()
    except TimeoutError:
        return False
    except OSError as error:  # nothing listens there, so the containers' streams have ended too
        _LOG.debug("ping: %s", error)
    return True
