"""Notices child processes that hang.

A child that does not answer is reported. If it stays silent, it is killed, so that its owner starts another one.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

PERIOD_S: Final = 5.0
_SILENT: Final = 2  # after this many periods without an answer, `/readyz` reports the child
# after this many periods without an answer, the child is killed, unless the machine did not let it run
_HUNG: Final = 6
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_TIMES: Final = slice(11, 13)  # fields of proc(5) stat, counted from the state: utime and stime

_log = logging.getLogger(__name__)


async def watch_child(name: str, pid: Callable[[], int], ask: Callable[[], Awaitable[None]], silent: set[str]) -> None:
    """Check every few seconds whether a child answers, until cancelled; kill the child if it stays silent.

    This function does not read the clock, so that a child does not seem to hang after the whole host or machine was
    stopped.

    Args:
      name: Name of the child, for the log and for `/readyz`.
      pid: Returns the child's process id.
      ask: Returns when the child has answered or ended; the child's owner notices its end by itself.
      silent: Names of the children that do not answer now; this function adds and removes the child's name.
    """
    while True:
        await asyncio.sleep(PERIOD_S)
        asked = asyncio.ensure_future(ask())
        try:
            await _answered(name, pid, asked, silent)
        finally:
            asked.cancel()
            silent.discard(name)


async def _answered(name: str, pid: Callable[[], int], asked: asyncio.Future[None], silent: set[str]) -> None:
    periods, hung_s, used_s = 0, 0.0, _look(pid())[1]
    while not (await asyncio.wait([asked], timeout=PERIOD_S))[0]:
        wants, now_s = _look(pid())
        periods, hung_s = periods + 1, hung_s + (min(PERIOD_S, now_s - used_s) if wants else PERIOD_S)
        used_s = now_s
        if periods == _SILENT:
            silent.add(name)
            _log.warning("%s (process %d) has not answered for %g s", name, pid(), periods * PERIOD_S)
        if periods >= _HUNG and hung_s > (_HUNG - 1) * PERIOD_S:
            _log.error("%s (process %d) hangs and is killed: no answer for %g s", name, pid(), periods * PERIOD_S)
            with suppress(ProcessLookupError):
                os.kill(pid(), signal.SIGKILL)
            periods, hung_s = _SILENT, 0.0
    await asked


async def until_it_moves(pid: int) -> None:
    """Wait until a process is running or ready to run.

    A child that is busy computing thus counts as alive, although it does not answer.
    """
    _, before_s = _look(pid)
    while True:
        await asyncio.sleep(PERIOD_S)
        if _look(pid) != (False, before_s):
            return


def _look(pid: int) -> tuple[bool, float]:
    """Return whether a process is ready to run or waits for a disk, and how much processor time it has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
    except OSError:
        return True, 0.0  # the process has ended
    return fields[0] in "RD", sum(map(int, fields[_TIMES])) / _TICKS
