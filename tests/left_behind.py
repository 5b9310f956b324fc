"""Finds what a host has left behind: processes, cgroups, containers, files."""

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
    """Return what a host has left behind, found by the host's process id in names of containers and control groups.

    Args:
      host_pid: The host's process id; that process itself is not counted.
      docker: Command line for the engine to check; None for the tests' own engine, empty for no engine.
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
    """Wait until a host's processes have ended, and fail if they do not end. Cgroups are not checked, because the next
    host removes a killed host's cgroups.
    """
    _wait(lambda: [line for line in left_behind(host_pid, docker=[]) if line.startswith("process ")], seconds=15)


def until_nothing_is_left(host_pid: int, *, seconds: float = 15, docker: list[str] | None = None) -> None:
    """Wait until a host has left nothing behind, and fail if that takes too long."""
    _wait(lambda: left_behind(host_pid, docker=docker), seconds=seconds)


def _wait(look: Callable[[], list[str]], *, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := look()) and time.monotonic() < until:
        time.sleep(0.2)
    assert left == [], left


def cgroup_folders(instance: str) -> list[Path]:
    """Return the folders of a host's control groups; `instance` is the beginning of the host's name, or a pattern."""
    walked = os.walk("/sys/fs/cgroup")  # `os.walk` ignores folders that are removed while it runs
    homes = [Path(at, name) for at, names, _ in walked for name in names if name.startswith(PREFIX)]
    return [home for home in homes if fnmatch.fnmatch(instance_of(home) or "", f"{instance}*")]


def sandbox_cgroups(instance: str) -> set[str]:
    """Return the names of sandboxes that have a control group."""
    inside = [inner.name for folder in cgroup_folders(instance) for inner in folder.iterdir() if inner.is_dir()]
    return {name for name in inside if not is_instance(name)}
