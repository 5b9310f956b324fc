"""Removes what killed test runs have left behind: processes, engines with their mounts, and folders.

Every process that a run starts has the run's name in its environment (`RUN`), and the names of the run's folders
contain the run's name. This name identifies the process that began the run (`sandbox.linux.instance`), so that a later
run can find out whether the run has ended.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evaluator_host.engine.sandbox.linux.instance import is_dead, this_instance
from tests.processes import command_line

RUN = "EVALUATOR_HOST_TEST_RUN"

_NAMED = re.compile(rf"\0{RUN}=([^\0]*)\0")
_FOLDER = re.compile(r"(?:eh-pg|eh-engine|eh-chaos)-(host-[0-9a-f]{12}-\d+-\d+-\d+)-\w+")


def begin_run() -> str:
    """Give this run a name, unless it is part of another run, and return the name."""
    return os.environ.setdefault(RUN, this_instance())


def make_folder(prefix: str, *, parent: Path | None = None) -> Path:
    """Make an empty folder for this run. If the caller does not remove the folder, the next run does."""
    return Path(tempfile.mkdtemp(prefix=f"{prefix}-{begin_run()}-", dir=parent))


def remove_leftovers(*parents: Path, spared: str = "") -> None:
    """Kill the processes of runs that have ended, and remove the folders that they made.

    Args:
      parents: Folders in which to look, besides the folder for temporary files.
      spared: Processes with this string in their command line are not killed, such as an engine that another run also
        uses.
    """
    for pid in _processes():
        if not spared or spared not in command_line(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    for parent in (Path(tempfile.gettempdir()), *parents):
        for folder in parent.glob("*-host-*") if parent.is_dir() else ():
            made = _FOLDER.fullmatch(folder.name)
            if made and is_dead(made[1]):
                unmount_below(folder)
                shutil.rmtree(folder, ignore_errors=True)


def engine_processes(folder: Path) -> list[int]:
    """Return the dockerd, containerd and shims that work in a folder."""
    ours = re.compile(rf"(\S*/)?(dockerd|containerd(-shim\S*)?) .*{re.escape(str(folder))}/.*", re.DOTALL)
    pids = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    return [pid for pid in pids if ours.fullmatch(command_line(pid))]


def unmount_below(folder: Path) -> None:
    for mount in mounts_below(folder):
        subprocess.run(["umount", "--lazy", mount], check=True)


def mounts_below(folder: Path) -> list[str]:
    """Return the mounts below a folder, the innermost first."""
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [mount for mount in reversed(mounts) if mount.startswith(f"{folder}/")]


def _processes() -> Iterator[int]:
    """Yield the processes of runs that have ended."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            named = _NAMED.search("\0" + path.read_bytes().decode(errors="replace") + "\0")
        except OSError:
            continue
        if named and is_dead(named[1]):
            yield int(path.parent.name)
