"""Limits how many rows a sandbox gets before it has answered earlier ones."""

import time
from collections import deque
from typing import Final

from evaluator_host.engine.sandbox.protocol import BYTES_AHEAD, CALLS_AHEAD

# enough rows for this many seconds are sent in advance, so that the sandbox does not have to wait
_AHEAD_S: Final = 0.04
# from this many unanswered rows on, several answers are read together, because a wake-up costs more than reading an
# answer
_MANY: Final = 6
_PATIENCE_S: Final = 0.016
_SHORTEST_PAUSE_S: Final = 0.002  # shortest pause, in seconds, because timers have a resolution of a millisecond


class SendWindow:
    """Limits how many rows may be sent before earlier rows are answered.

    The limit is how many rows finish in `_AHEAD_S` seconds, but at least 2 and at most `CALLS_AHEAD`. So a sandbox need
    not wait for the host, and other sandboxes still get rows.
    """

    def __init__(self) -> None:
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._calls = 2
        self._answered = 0
        self._rate = 0.0  # answers per second
        self._since = time.monotonic()

    @property
    def empty(self) -> bool:
        """Return whether every sent row was answered."""
        return not self._sizes

    @property
    def open(self) -> bool:
        """Return whether one more row may be sent now."""
        return not self._sizes or (len(self._sizes) < self._calls and self._bytes < BYTES_AHEAD)

    @property
    def patience_s(self) -> float:
        """Return how many seconds to wait before reading, so that several answers arrive together.

        In this time, about half of the sent rows are answered. 0 means that answers should be read as they come.
        """
        if len(self._sizes) < _MANY or not self._rate:
            return 0.0
        half_s = len(self._sizes) / 2 / self._rate
        return min(half_s, _PATIENCE_S) if half_s >= _SHORTEST_PAUSE_S else 0.0

    def sent(self, size: int) -> None:
        """Count a row of `size` bytes as sent and unanswered."""
        self._sizes.append(size)
        self._bytes += size

    def answered(self) -> None:
        """Count the oldest sent row as answered; after every eighth answer, measure the rate again."""
        self._bytes -= self._sizes.popleft()
        self._answered += 1
        if self._answered % 8 == 0:
            now = time.monotonic()
            self._rate = 8 / max(now - self._since, 1e-6)
            self._since = now
            self._calls = max(2, min(CALLS_AHEAD, int(self._rate * _AHEAD_S)))
