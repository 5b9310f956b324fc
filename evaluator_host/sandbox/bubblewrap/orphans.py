"""First processes of bubblewrap sandboxes whose wrapper died before it had let them go: they would wait for ever.

bubblewrap ties the first process to its wrapper (`--die-with-parent`) only once the wrapper has told it to go on. A
wrapper that is killed in the moment between leaves it behind, in no cgroup yet and with nobody who knows of it.
"""

import contextlib
import os
import signal
from pathlib import Path
from typing import Final

from evaluator_host.sandbox.bubblewrap.descriptors import MEMORY_FILE

_PROC: Final = Path("/proc")
_WRAPPER: Final = "bwrap"
_OURS: Final = f"/memfd:{MEMORY_FILE}"


def sweep() -> int:
    """Kill them, and return how many there were; what other programs start with bubblewrap is theirs."""
    killed = 0
    for process in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):  # it has gone meanwhile, or is another user's
            if _is_orphan(process):
                os.kill(int(process.name), signal.SIGKILL)
                killed += 1
    return killed


def _is_orphan(process: Path) -> bool:
    if _name(process) != _WRAPPER:
        return False
    facts = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
    is_first = facts["NSpid"].split()[1:][-1:] == ["1"]  # in a namespace below ours
    if not is_first or _name(_PROC / facts["PPid"]) == _WRAPPER:
        return False
    return any(str(link.readlink()).startswith(_OURS) for link in (process / "fd").iterdir())


def _name(process: Path) -> str:
    return (process / "comm").read_text().strip()
