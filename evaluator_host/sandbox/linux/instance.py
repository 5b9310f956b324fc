"""Names this host process, so that a later host can tell whether it has ended and remove its leftovers."""

import functools
import os
import re
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r"host-(?P<namespace>\d+)-(?P<pid>\d+)-(?P<started>\d+)(\.\d+)?")


def this_instance() -> str:
    """Return the name of this process: `host-<pid namespace>-<pid>-<start in ticks since boot>`.

    `.<number>` may be appended where one process has several of a thing.
    """
    return _named(os.getpid())


@functools.cache
def _named(pid: int) -> str:
    """Return the name of this process; kept, since a process that is out of descriptors cannot ask when it started."""
    return f"host-{_namespace()}-{pid}-{_started(pid)}"


def is_dead(instance: str) -> bool:
    """Whether the process of that name has ended.

    False when nobody can know here: the name has another form, or belongs to another pid namespace, or this process
    is out of descriptors.
    """
    match = _NAME.fullmatch(instance)
    if match is None or match["namespace"] != _namespace():
        return False
    try:
        return _started(int(match["pid"])) != match["started"]
    except OSError:  # out of descriptors
        return False


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:  # no /proc: macOS
        return "0"


def _started(pid: int) -> str | None:
    """Return when a process started, in ticks since boot; None when there is no such process.

    Raises:
      OSError: this process cannot look now.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else fields[18]  # field 22 of proc(5); the name in field 2 may hold blanks
