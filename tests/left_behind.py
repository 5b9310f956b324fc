"""Finds what a host has left behind: its processes, cgroups, containers, files; all are named after it."""

import contextlib
import fnmatch
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from evaluator_host.engine.sandbox.linux.cgroups import PREFIX
from tests.engines import docker_command


def left_behind(host_pid: int, *, docker: list[str] | None = None) -> list[str]:
    """Return what is left of a host, by the name it gives to all it makes (`sandbox.instance`).

    Args:
      host_pid: Its process id; that process itself is not counted.
      docker: Command line of the engine to ask; the tests' own when None, none when empty.
    """
    mine = f"-{host_pid}-"
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mine in (process / "cgroup").read_text():
                found.append(f"process {process.name}: {(process / 'cmdline').read_bytes()!r}")
    for parent, names, _ in os.walk("/sys/fs/cgroup"):  # cgroups of others appear and vanish meanwhile
        found += [f"cgroup {parent}/{name}" for name in names if mine in name]
        names[:] = [name for name in names if not name.startswith(PREFIX)]
    command = docker_command() if docker is None else docker
    if not command:
        return found
    listed = subprocess.run(
        [*command, "ps", "-a", "--format", "{{.ID}} {{.Label \"evaluator-host.instance\"}}"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return found + [f"container {line}" for line in listed.stdout.splitlines() if mine in line]


def until_nothing_runs(host_pid: int) -> None:
    """Wait for the processes of a host to end, and fail if they do not; cgroups of a killed host are removed by the
    next one."""
    _wait(lambda: [line for line in left_behind(host_pid, docker=[]) if line.startswith("process ")], seconds=15)


def until_nothing_is_left(host_pid: int, *, seconds: float = 15, docker: list[str] | None = None) -> None:
    """Wait for everything else to go, and fail if it does not."""
    _wait(lambda: left_behind(host_pid, docker=docker), seconds=seconds)


def _wait(look: Callable[[], list[str]], *, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := look()) and time.monotonic() < until:
        time.sleep(0.2)
    assert left == [], left


def cgroup_folders(instance: str) -> list[Path]:
    """Return the control groups that a host has for itself and for its sandboxes."""
    walked = os.walk("/sys/fs/cgroup")  # a walk that does not mind folders which vanish meanwhile
    return [Path(at, name) for at, names, _ in walked for name in fnmatch.filter(names, f"{PREFIX}{instance}*")]


def sandbox_cgroups(instance: str) -> set[str]:
    """Names of the sandboxes that have a control group."""
    return {inner.name for folder in cgroup_folders(instance) for inner in folder.iterdir() if inner.is_dir()}
