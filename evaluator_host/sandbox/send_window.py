"""How many rows a sandbox is sent ahead of its answers: enough to hide the host, few enough to leave others some."""

import time
from collections import deque
from typing import Final

from evaluator_host.sandbox.protocol import BYTES_AHEAD, CALLS_AHEAD

_AHEAD_S: Final = 0.02  # enough to hide the host's own latency


class Window:
    """How far rows are sent ahead: as many rows as finish in `_AHEAD_S`, between 2 and `CALLS_AHEAD`."""

    def __init__(self) -> None:
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._calls = 2
        self._answered = 0
        self._since = time.monotonic()

    @property
    def open(self) -> bool:
        """Whether one more may be sent."""
        return not self._sizes or (len(self._sizes) < self._calls and self._bytes < BYTES_AHEAD)

    def sent(self, size: int) -> None:
        """Count a call of `size` bytes as under way."""
        self._sizes.append(size)
        self._bytes += size

    def answered(self) -> None:
        """Count the oldest call as answered, and look again at how fast the rows are."""
        self._bytes -= self._sizes.popleft()
        self._answered += 1
        if self._answered % 8 == 0:
            now = time.monotonic()
            rate = 8 / max(now - self._since, 1e-6)
            self._since = now
            self._calls = max(2, min(CALLS_AHEAD, int(rate * _AHEAD_S)))
