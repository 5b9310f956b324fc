"""Repeats the work of a job after temporary faults."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from evaluator_host.types.errors import (
    Busy,
    IndexUnavailable,
    MachineExhausted,
    SandboxLost,
    SandboxUnavailable,
    StoreUnavailable,
)

_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 15.0
_PATIENCE: Final = 40  # number of attempts in a row without a result (about ten minutes) after which the job fails
_TRANSIENT: Final = (Busy, SandboxUnavailable, SandboxLost, IndexUnavailable, StoreUnavailable, MachineExhausted)

_log = logging.getLogger(__name__)


class Retries:
    """Repeats a part of a job's work after each temporary fault, at most 40 times without progress."""

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._done = 0
        self._tries = 0
        self._pause_s = _PAUSE_S

    def add_done(self, rows: int) -> None:
        """Count rows that are done, as a sign of progress."""
        self._done += rows

    async def run(self, work: Callable[["Retries"], Awaitable[None]]) -> None:
        """Run `work` until it succeeds. `work` gets this object as its argument, and reports progress to it.

        Raises:
          HostError: the work failed 40 times in a row without progress.
          Exception: a fault of the work that is not temporary.
        """
        while True:
            self._done = 0
            try:
                await work(self)
            except (*_TRANSIENT, OSError) as error:
                transient = MachineExhausted.cause_of(error) if isinstance(error, OSError) else error
                self._tries = 1 if self._done else self._tries + 1
                if transient is None or self._tries >= _PATIENCE:
                    raise
                self._pause_s = _PAUSE_S if self._done else min(self._pause_s * 2, _LONGEST_PAUSE_S)
                _log.warning("job %s pauses for %g s: %s", self._job_id, self._pause_s, transient.detail)
                await asyncio.sleep(self._pause_s)
            else:
                return
