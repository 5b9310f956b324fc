"""Finds what a host has left behind: its processes, cgroups, containers, files."""

import contextlib
import fnmatch
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from evaluator_host.engine.sandbox.linux.cgroups import PREFIX, instance_of
from evaluator_host.engine.sandbox.linux.instance import is_instance
from tests.engines import docker_command


def left_behind(host_pid: int, *, docker: list[str] | None = None) -> list[str]:
    """Return what is left of a host, by the name it gives to containers and control groups (`sandbox.instance`).

    Args:
      host_pid: Its process id; that process itself is not counted.
      docker: Command line of the engine to ask; the tests' own when None, none when empty.
    """
    mine = f"-{host_pid}-"
    homes = cgroup_folders(f"*{mine}*")
    found = [f"cgroup {home}" for home in homes]
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            groups = (process / "cgroup").read_text()
            if any(f"/{home.name}/" in groups for home in homes):
                found.append(f"process {process.name}: {(process / 'cmdline').read_bytes()!r}")
    command = docker_command() if docker is None else docker
    if not command:
        return found
    listed = subprocess.run(
        [*command, "ps", "-a", "--format", "{{.ID}} {{.Label \"evaluator-host.instance\"}}"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return found + [f"container {line}" for line in listed.stdout.splitlines() if mine in line]


def until_nothing_runs(host_pid: int) -> None:
    """Wait for the processes of a host to go, and fail when they do not; cgroups of a killed one go with the next."""
    _wait(lambda: [line for line in left_behind(host_pid, docker=[]) if line.startswith("process ")], seconds=15)


def until_nothing_is_left(host_pid: int, *, seconds: float = 15, docker: list[str] | None = None) -> None:
    """Wait for the rest to go, and fail when it does not."""
    _wait(lambda: left_behind(host_pid, docker=docker), seconds=seconds)


def _wait(look: Callable[[], list[str]], *, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := look()) and time.monotonic() < until:
        time.sleep(0.2)
    assert left == [], left


def cgroup_folders(instance: str) -> list[Path]:
    """Return the folders of the control groups of a host; `instance` is the beginning of its name, or a pattern."""
    walked = os.walk("/sys/fs/cgroup")  # a walk that does not mind folders which vanish meanwhile
    homes = [Path(at, name) for at, names, _ in walked for name in names if name.startswith(PREFIX)]
    return [home for home in homes if fnmatch.fnmatch(instance_of(home) or "", f"{instance}*")]


def sandbox_cgroups(instance: str) -> set[str]:
    """Return the names of the sandboxes that have a control group."""
    inside = [inner.name for folder in cgroup_folders(instance) for inner in folder.iterdir() if inner.is_dir()]
    return {name for name in inside if not is_instance(name)}
