"""`python -m tests.chaos.launch CLOCK ENVIRONMENT ARGUMENT…`: the command line, with a wall clock that a file moves.

CLOCK is a file with 8 bytes, a double: seconds that are added to what this process reads as the time of day. The monotonic clock, and
the clocks of its children, stay as they are. ENVIRONMENT is a JSON object of variables to set first.
"""

import datetime as dt
import json
import mmap
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any


def move_clock(file: Path) -> None:
    """Add what the file says to the time of day, from now on and whenever the file changes."""
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
            return real_datetime(*parts, **more)  # orjson encodes no subclass

        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
            return real_datetime.now(tz) + dt.timedelta(seconds=offset_s())

    time.time = lambda: real() + offset_s()
    time.time_ns = lambda: int(time.time() * 1e9)
    dt.datetime = Datetime  # type: ignore[misc]


def set_offset(file: Path, seconds: float) -> None:
    """Let the clocks of the processes that watch this file differ by so many seconds."""
    with file.open("r+b" if file.exists() else "wb") as opened:
        opened.write(struct.pack("d", seconds))


def main() -> None:
    """Become the command line."""
    move_clock(Path(sys.argv[1]))
    os.environ.update(json.loads(sys.argv[2]))
    sys.argv = ["evaluator-host", *sys.argv[3:]]
    from evaluator_host.__main__ import main as command  # noqa: PLC0415 - after the clock

    command()


if __name__ == "__main__":
    main()
