"""Lets single calls go before the rows of batches.

One event loop serves both, and a batch alone would keep it busy.
"""

import asyncio
import time
from contextlib import AbstractContextManager, suppress
from typing import Final

SLICE_S: Final = 0.0005  # seconds of work on the rows of all batches together, until the host looks for calls again
LONGEST_PAUSE_S: Final = 0.025  # longest pause of a batch, so that it continues slowly even if calls never stop


class CallsFirst(AbstractContextManager[None]):
    """Counts the single calls that are running. Bound to one event loop."""

    def __init__(self) -> None:
        self._under_way = 0
        self._none = asyncio.Event()  # set when a batch need not wait any more
        self._slice_until = 0.0

    def call(self) -> AbstractContextManager[None]:
        """Return a context in which a call counts as running."""
        return self

    def __enter__(self) -> None:
        self._under_way += 1

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._none.set()

    async def give_way(self) -> None:
        """Wait for running calls if the rows of batches have used up their time; otherwise return at once."""
        if time.monotonic() < self._slice_until:
            return
        await asyncio.sleep(0)  # give calls that have just arrived a chance to begin
        if self._under_way:
            self._none.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_PAUSE_S):
                    await self._none.wait()
        self._slice_until = time.monotonic() + SLICE_S
