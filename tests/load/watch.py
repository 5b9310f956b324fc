"""Watches a host from outside while it is under load: its memory, descriptors and sandboxes."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.processes import resident_mb

_EVERY_S = 0.5


def descriptors(pid: int) -> int:
    """Return how many descriptors a process has open. Connections to the database are not counted, because a pool keeps
    some of them open.
    """
    found = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found += ".db" not in str(entry.readlink())
    return found


@dataclass(slots=True)
class Watch:
    """Watches one process; `run` takes samples until cancelled."""

    pid: int
    memory_mb: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(_EVERY_S)

    def look(self) -> None:
        self.memory_mb.append(resident_mb(self.pid))
        self.descriptors.append(descriptors(self.pid))

    @property
    def grown_mb(self) -> float:
        """Return by how many MB the memory grew from the second fifth of the time, when everything is warm, to the last
        fifth.
        """
        fifth = max(1, len(self.memory_mb) // 5)
        return median(self.memory_mb[-fifth:]) - median(self.memory_mb[fifth : 2 * fifth] or self.memory_mb)
