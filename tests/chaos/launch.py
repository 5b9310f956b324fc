"""`python -m tests.chaos.launch CLOCK ENVIRONMENT ARGUMENT…`: runs the command line with a wall clock that a file
changes.

CLOCK is a file with a double (8 bytes): the number of seconds to add whenever this process reads the time of day. The
monotonic clock and the clocks of child processes do not change. ENVIRONMENT is a JSON object with variables to set
first.
"""

import asyncio
import contextlib
import datetime as dt
import json
import mmap
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import Pool, QueuePool


def move_clock(file: Path) -> None:
    """Shift the time of day of this process by the offset in the file, now and whenever the file changes."""
    with file.open("rb") as opened:
        moved = mmap.mmap(opened.fileno(), 8, access=mmap.ACCESS_READ)
    real, real_datetime = time.time, dt.datetime

    def offset_s() -> float:
        return float(struct.unpack("d", moved[:8])[0])

    class Same(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, real_datetime)

    class Datetime(real_datetime, metaclass=Same):  # type: ignore[misc, valid-type]
        def __new__(cls, *parts: Any, **more: Any) -> Any:
            return real_datetime(*parts, **more)  # a real datetime, because orjson does not encode subclasses

        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
            return real_datetime.now(tz) + dt.timedelta(seconds=offset_s())

    time.time = lambda: real() + offset_s()
    time.time_ns = lambda: int(time.time() * 1e9)
    dt.datetime = Datetime  # type: ignore[misc]


def set_offset(file: Path, seconds: float) -> None:
    """Set the number of seconds by which the clock is wrong in each process that watches the file."""
    with file.open("r+b" if file.exists() else "wb") as opened:
        opened.write(struct.pack("d", seconds))


def tell_holders() -> None:
    """Whenever a task has waited too long for a connection to the database, print which tasks hold the connections."""
    held: dict[int, tuple[float, Any]] = {}
    get = QueuePool._do_get

    @event.listens_for(Pool, "checkout")
    def take(_connection: Any, record: Any, _proxy: Any) -> None:
        with contextlib.suppress(RuntimeError):  # migrations run without an event loop
            held[id(record)] = (time.monotonic(), asyncio.current_task())

    @event.listens_for(Pool, "checkin")
    def give(_connection: Any, record: Any) -> None:
        held.pop(id(record), None)

    def get_or_tell(pool: Any) -> Any:
        try:
            return get(pool)
        except PoolTimeout:
            for since, task in held.values():
                print(f"held for {time.monotonic() - since:.1f} s by {_place(task)}", file=sys.stderr, flush=True)
            raise

    QueuePool._do_get = get_or_tell  # type: ignore[method-assign]


def _place(task: Any) -> str:
    """Return where a task is waiting, as a chain of functions."""
    names, waits = [], task.get_coro() if task else None
    while (code := getattr(waits, "cr_code", None)) is not None:
        names.append(f"{code.co_qualname}:{waits.cr_frame.f_lineno if waits.cr_frame else 0}")
        waits = waits.cr_await
    return " > ".join(names)


def main() -> None:
    """Set up the clock and the environment, then run the command line in this process."""
    move_clock(Path(sys.argv[1]))
    tell_holders()
    os.environ.update(json.loads(sys.argv[2]))
    sys.argv = ["evaluator-host", *sys.argv[3:]]
    from evaluator_host.__main__ import main as command  # noqa: PLC0415 - after the clock

    command()


if __name__ == "__main__":
    main()
