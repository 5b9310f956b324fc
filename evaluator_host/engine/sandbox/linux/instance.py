"""Names this host process, so that a later host can find out whether the process has ended, and remove its files.

Hosts on several machines may share a database and a data directory. A process id is valid only for the kernel that
assigned it, and the first pid namespace has the same number on every kernel. Therefore the name also contains the id of
the boot.
"""

import functools
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from evaluator_host.engine.system.tree import remove, temporary_folder
from evaluator_host.types.errors import MachineExhausted

_NAME: Final = re.compile(r"host-(?P<boot>[0-9a-f]{12})-(?P<namespace>\d+)-(?P<pid>\d+)-(?P<started>\d+)(\.\d+)?")
_ABANDONED_S: Final = 86_400.0


def this_instance() -> str:
    """Return the name of this process: `host-<boot>-<pid namespace>-<pid>-<start in ticks since boot>`.

    A caller that needs several names for one process appends `.<number>`.
    """
    return _named(os.getpid())


@functools.cache
def _named(pid: int) -> str:
    """Return the name of this process, which has the id `pid`.

    The name is cached, because a process without free descriptors cannot find out when it started.
    """
    return f"host-{_boot()}-{_namespace()}-{pid}-{_started(pid)}"


def is_instance(name: str) -> bool:
    """Return whether a string is a name in the form of `this_instance`."""
    return _NAME.fullmatch(name) is not None


def is_dead(instance: str) -> bool:
    """Return whether the process with that name has ended.

    Return False if this process cannot find out: the name has another form, or comes from another machine, boot or pid
    namespace, or this process has no free descriptors.
    """
    match = _NAME.fullmatch(instance)
    with suppress(OSError):  # this process has no free descriptors left
        return match is not None and _is_of_here(match) and _started(int(match["pid"])) != match["started"]
    return False


def has_abandoned(instance: str, folder: Path) -> bool:
    """Return whether the process with this name will never again write to `folder`.

    Several machines may share the folder.

    The answer is True if the process has ended. The answer is also True if this host cannot tell whether the process
    has ended, and nothing directly in the folder has changed for a day.
    """
    match = _NAME.fullmatch(instance)
    with suppress(OSError):  # the file is gone, or this process has no free descriptors left
        if match is not None and _is_of_here(match):
            return is_dead(instance)
        if match is not None:
            changed = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
            return time.time() - changed > _ABANDONED_S
    return False


def remove_abandoned(prefix: str, parent: Path | None = None) -> int:
    """Remove the folders of `instance_folder` that killed processes have left; return how many were removed."""
    removed = 0
    for folder in Path(parent or tempfile.gettempdir()).glob(f"{prefix}host-*_*"):
        instance = folder.name.removeprefix(prefix).partition("_")[0]  # the random part may contain "_", too
        if has_abandoned(instance, folder):
            removed += remove(folder)
    return removed


@contextmanager
def instance_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Yield a new folder for temporary files of this process.

    If the process is killed, `remove_abandoned` removes the folder later.
    """
    with temporary_folder(parent, f"{prefix}{this_instance()}_") as folder:
        yield folder


def _is_of_here(name: re.Match[str]) -> bool:
    return (name["boot"], name["namespace"]) == (_boot(), _namespace())


def boot_id() -> str:
    """Return the kernel's id of the current boot; empty if there is none (macOS)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError as error:
        if MachineExhausted.cause_of(error) is not None:
            raise
        return ""


@functools.cache
def _boot() -> str:
    found = boot_id().replace("-", "").lower()[:12]
    return found or hashlib.sha256(os.uname().nodename.encode()).hexdigest()[:12]


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:  # there is no /proc, as on macOS
        return "0"


def _started(pid: int) -> str | None:
    """Return when a process started, in ticks since boot, or None when there is no such process.

    Raises:
      OSError: this process cannot find out now.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else fields[18]  # field 22 in proc(5); the name in field 2 may contain blanks
