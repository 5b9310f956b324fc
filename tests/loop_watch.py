"""Watches event loops, and measures how much processor time each callback takes."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from unittest.mock import patch

LOOPS: Final = 4_300_000  # time limit of a callback, as iterations of an empty `for` loop: 50 ms on a fast machine


def held_s() -> float:
    """Return the processor time that a callback may take, in seconds."""

    def measured() -> float:
        began = time.thread_time()
        for _ in range(LOOPS):
            pass
        return time.thread_time() - began

    return min(measured() for _ in range(3))


@dataclass
class LoopWatch:
    """The longest callback so far: its processor time in seconds, and which callback it was."""

    longest_s: float = 0.0
    longest: str = ""
    started: float = field(default_factory=time.thread_time)

    def note(self, took_s: float, handle: asyncio.Handle) -> None:
        if took_s > self.longest_s:
            self.longest_s, self.longest = took_s, f"{took_s * 1000:.0f} ms: {handle!r:.500}"


@contextmanager
def watching() -> Iterator[LoopWatch]:
    """Watch every event loop of this process. Only processor time counts, so waiting and a busy machine change nothing."""
    watch, run = LoopWatch(), asyncio.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        before = time.thread_time()
        run(handle)
        watch.note(time.thread_time() - before, handle)

    with patch.object(asyncio.Handle, "_run", measured):
        yield watch
