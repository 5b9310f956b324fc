"""The audit log of a host that runs: entries are gathered in memory and written in batches, off the way of calls.

A host that is killed loses the entries of its last second; one whose database does not answer keeps the newest of them.
"""

import time
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Final

from evaluator_host.model.errors import StoreUnavailable
from evaluator_host.store.audit import Audit, AuditEntry

KEPT: Final = 20_000  # entries that wait for a database; some megabytes
_BATCH: Final = 1_000
_FORGET_EVERY_S: Final = 3600.0


class AuditLog:
    """Entries on their way to the store. Bound to one event loop.

    Attributes:
      dropped: Entries that were lost because the database did not answer for too long.

    Args:
      audit: Where they go.
      days: How long they stay there; 0 for ever.
    """

    def __init__(self, audit: Audit, *, days: int) -> None:
        self.dropped = 0
        self._audit = audit
        self._days = days
        self._waiting: deque[AuditEntry] = deque()
        self._forget_at = time.monotonic()

    def note(self, entry: AuditEntry) -> None:
        """Take an entry; never waits."""
        if len(self._waiting) >= KEPT:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(entry)

    async def write(self) -> None:
        """Write what waits; once an hour, forget what is too old.

        Raises:
          StoreUnavailable: the database does not answer; the entries wait for the next try.
        """
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            try:
                await self._audit.append_entries(batch)
            except StoreUnavailable:
                self._waiting.extendleft(reversed(batch))
                raise
        if self._days and time.monotonic() >= self._forget_at:
            self._forget_at = time.monotonic() + _FORGET_EVERY_S
            await self._audit.delete_before(datetime.now(UTC) - timedelta(days=self._days))
