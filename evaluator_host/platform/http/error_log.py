"""Logs errors without users' data, in lines that no user's data can forge, and without blocking the event loop.

Only the class of an exception and its code locations are logged, since its message may quote a user's data. A separate
thread writes the lines. So the host keeps working even if nobody reads the terminal or the pipe.
"""

import asyncio
import contextlib
import logging
import os
import queue
import sys
import threading
import traceback
from types import TracebackType
from typing import Any, Final, TypeAlias

from evaluator_host.types.names import counted

_FRAMES: Final = 30
_LINES: Final = 10_000  # maximum number of lines that wait to be written; further lines are dropped and counted
_CHARACTERS: Final = 4000  # maximum number of characters in one line
_LAST_S: Final = 1.0  # seconds for writing the waiting lines when the process exits
_Fault: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

_log = logging.getLogger("evaluator_host.fault")


class CutOff(Exception):
    """Raised to break off a response that has begun. The reason was already logged, so the web server logs nothing."""


class LineFormatter(logging.Formatter):
    """Formats a log record as one line, and its exception as indented lines. Control characters are escaped."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name that logging calls
        r"""Format a record as one line: a line feed is written as `\n`, a terminal's escape as `\x1b`."""
        return escaped(super().formatMessage(record)[:_CHARACTERS])

    def formatException(self, ei: _Fault) -> str:  # noqa: N802 - as above
        """Return the tracebacks of an exception and of its causes, with their messages, as indented lines."""
        return "\n".join(f"  {escaped(line[:_CHARACTERS])}" for line in super().formatException(ei).splitlines())


class DataFreeFormatter(LineFormatter):
    """Formats log records. Only the class and the code locations of an exception appear."""

    def formatException(self, ei: _Fault) -> str:  # noqa: N802 - as above
        """Return the chain of exceptions, the cause first, without their messages."""
        parts, error = list[str](), ei[1]
        while error is not None and len(parts) < _FRAMES:
            frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
            places = "".join(f"\n  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
            parts.append(f"{type(error).__module__}.{type(error).__qualname__}{places}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\nwhich led to\n".join(reversed(parts))


def escaped(text: str) -> str:
    r"""Return a string in which Python escapes replace all characters that are not printable: `\n`, `\u202e`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


class NonBlockingHandler(logging.Handler):
    """Passes formatted lines to a separate thread, so that `emit` never blocks.

    Args:
      descriptor: File descriptor of the log. A thread blocked in a buffered stream would keep Python from exiting.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lines: queue.Queue[str] = queue.Queue(_LINES)
        self._dropped = 0
        threading.Thread(target=self._write, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the line of a log record, or drop it when too many wait."""
        line = self.format(record) + "\n"
        if self._dropped:
            line = f"({counted(self._dropped, 'line')} dropped, because nobody read the log)\n{line}"
        try:
            self._lines.put_nowait(line)
            self._dropped = 0
        except queue.Full:
            self._dropped += 1

    def flush(self) -> None:
        """Wait until every line is written, but for at most one second."""
        with self._lines.all_tasks_done:
            self._lines.all_tasks_done.wait_for(lambda: not self._lines.unfinished_tasks, _LAST_S)

    def _write(self) -> None:
        while True:
            rest = self._lines.get().encode("utf-8", "backslashreplace")
            with contextlib.suppress(OSError):  # the log is closed, and there is no other place to report to
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            self._lines.task_done()


def log_to_stderr(*, debug: bool) -> None:
    """Log to standard error: warnings from all packages, and also `INFO` messages from this package.

    Args:
      debug: Include the messages of exceptions.
    """
    kind = LineFormatter if debug else DataFreeFormatter
    handler = NonBlockingHandler(sys.stderr.fileno())
    handler.setFormatter(kind("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("evaluator_host").setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").addFilter(is_news)


def is_news(record: logging.LogRecord) -> bool:
    """Return whether to log a record. A `CutOff` is not logged, because its reason is in the log already."""
    return record.exc_info is None or record.exc_info[0] is not CutOff


def log_loop_fault(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an event loop error without exception messages. The loop's own handler would print them."""
    error = context.get("exception")
    fault = (type(error), error, error.__traceback__) if error is not None else None
    said, task = context.get("message", "a fault in the event loop"), context.get("task")
    _log.error("%s", said if task is None else f"{said} {_place(task)}", exc_info=fault)


def _place(task: asyncio.Task[Any]) -> str:
    """Return the functions in which a task is waiting, the outermost first."""
    names: list[str] = []
    waits: Any = task.get_coro()
    while (code := getattr(waits, "cr_code", None)) is not None:
        names.append(code.co_qualname)
        waits = getattr(waits, "cr_await", None)
    return " > ".join(names)
