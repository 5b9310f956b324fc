"""How faults are logged: what kind, and where in the code; the message may quote somebody's data and is left out."""

import asyncio
import logging
import sys
import traceback
from types import TracebackType
from typing import Any, Final, TypeAlias

from evaluator_host.web.http.log_stream import BesideHandler

_FRAMES: Final = 30
_Fault: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

_log = logging.getLogger("evaluator_host.fault")


class DataFreeFormatter(logging.Formatter):
    """Formats a record whose exception, when it has one, is reduced to its kind and its places."""

    def formatException(self, ei: _Fault) -> str:  # noqa: N802 - the name that logging calls
        """Return the chain of exceptions, the cause first, without what they say."""
        parts, error = list[str](), ei[1]
        while error is not None and len(parts) < _FRAMES:
            frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
            places = "".join(f"\n  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
            parts.append(f"{type(error).__module__}.{type(error).__qualname__}{places}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\nwhich led to\n".join(reversed(parts))


def log_to_stderr(*, debug: bool) -> None:
    """Log warnings of everything, and what this package says, to standard error.

    Args:
      debug: Say what exceptions say, too.
    """
    kind = logging.Formatter if debug else DataFreeFormatter
    handler = BesideHandler(sys.stderr.fileno())
    handler.setFormatter(kind("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("evaluator_host").setLevel(logging.INFO)


def log_loop_fault(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what the event loop has to say; its own way would print tasks with the message of their exception."""
    error = context.get("exception")
    fault = (type(error), error, error.__traceback__) if error is not None else None
    _log.error("%s", context.get("message", "a fault in the event loop"), exc_info=fault)
