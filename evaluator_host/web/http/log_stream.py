"""Writes log lines beside the event loop: a terminal or a pipe that nobody reads must not stop the host."""

import contextlib
import logging
import os
import queue
import threading
from typing import Final

_LINES: Final = 10_000  # that wait to be written; what comes above that is dropped and counted
_LAST_S: Final = 1.0  # for what waits at the end


class BesideHandler(logging.Handler):
    """Hands formatted lines to a thread of its own; `emit` never blocks.

    Args:
      descriptor: Written to directly: a thread stuck in a buffered stream would keep the interpreter from ending.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lines: queue.Queue[str] = queue.Queue(_LINES)
        self._dropped = 0
        threading.Thread(target=self._write, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record's line, or drop it when too many wait."""
        line = self.format(record) + "\n"
        if self._dropped:
            line = f"({self._dropped} lines were not written: nobody read them)\n{line}"
        try:
            self._lines.put_nowait(line)
            self._dropped = 0
        except queue.Full:
            self._dropped += 1

    def flush(self) -> None:
        """Wait until everything is written, or for a second."""
        with self._lines.all_tasks_done:
            self._lines.all_tasks_done.wait_for(lambda: not self._lines.unfinished_tasks, _LAST_S)

    def _write(self) -> None:
        while True:
            rest = self._lines.get().encode("utf-8", "backslashreplace")
            with contextlib.suppress(OSError):  # closed: there is nobody to tell
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            self._lines.task_done()
