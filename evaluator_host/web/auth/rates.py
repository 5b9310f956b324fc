"""How often a key may ask: a bucket of tokens per key that fills at a steady rate."""

import time
from collections.abc import Callable
from typing import Final

from evaluator_host.model.errors import RateLimited

_KEPT: Final = 10_000  # buckets; a full one need not be kept


class Rates:
    """The buckets of one host.

    Args:
      per_s: Requests per second of one key; None: as many as it likes.
      burst: Requests that may come at once.
      clock: Seconds that only grow.
    """

    def __init__(self, per_s: float | None, *, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._burst = float(burst)
        self._clock = clock
        self._forget_at = 0.0
        self._buckets: dict[str | None, tuple[float, float]] = {}  # what is left, and when

    def take(self, key_id: str | None) -> None:
        """Count a request.

        Raises:
          RateLimited: there were too many; nothing was counted.
        """
        if self._per_s is None:
            return
        now = self._clock()
        left, at = self._buckets.get(key_id, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_s)
        if left < 1.0:
            wait_s = (1.0 - left) / self._per_s
            raise RateLimited(
                f"this key may ask {self._per_s:g} times a second; come back in {max(1, round(wait_s))} s, "
                "or send more rows with each request",
                retry_after_s=wait_s,
            )
        self._buckets[key_id] = (left - 1.0, now)
        if len(self._buckets) > _KEPT and now >= self._forget_at:
            self._forget_full(now)

    def _forget_full(self, now: float) -> None:
        per_s = self._per_s or 1.0
        self._forget_at = now + self._burst / per_s  # by then all of today's are full, unless they ask again
        self._buckets = {
            key: (left, at) for key, (left, at) in self._buckets.items() if left + (now - at) * per_s < self._burst
        }
