"""Finds resources that sandboxes left on this machine: processes, descriptors, mounts, cgroups, containers, files."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_host.engine.sandbox.linux.cgroup_discovery import cgroup_mounts
from evaluator_host.engine.sandbox.linux.cgroups import PREFIX
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.system.extras import extra
from evaluator_host.engine.system.tree import walk
from evaluator_host.types.errors import SandboxUnavailable

_PROC: Final = Path("/proc")
# maximum number of bytes to read of a command line; one argument has at most 128 KB
_MOST_BYTES: Final = 1 << 20
# number of new descriptors that are allowed: some, such as a resolver's socket, are opened once and kept, while a real
# leak grows with every sandbox
_SPARE_DESCRIPTORS: Final = 8


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The machine's resources that this process uses."""

    children: frozenset[int]
    descriptors: int
    mounts: frozenset[str]
    cgroups: frozenset[str]
    containers: frozenset[str]
    memory_mb: float


def take_snapshot(engine: str | None) -> Snapshot:
    """Return the resources that this process uses now.

    Args:
      engine: Address of the container engine, to list its containers; None for no engine.
    """
    return Snapshot(
        children=frozenset(_children(os.getpid())),
        descriptors=len(os.listdir("/proc/self/fd")),  # noqa: PTH208
        mounts=frozenset(_mounts()),
        cgroups=frozenset(_cgroups()),
        containers=frozenset(_containers(engine)) if engine is not None else frozenset(),
        memory_mb=_memory_mb(os.getpid()),
    )


def leaks(before: Snapshot, after: Snapshot) -> list[str]:
    """Return a sentence for each kind of resource that has grown since a snapshot."""
    found = []
    for name in ("children", "mounts", "cgroups", "containers"):
        more = sorted(map(str, getattr(after, name) - getattr(before, name)))
        if more:
            found.append(f"{name} were left: {', '.join(more[:5])}")
    if after.descriptors > before.descriptors + _SPARE_DESCRIPTORS:
        found.append(f"{after.descriptors - before.descriptors} descriptors were left open")
    return found


def marked_processes(marks: Iterable[str]) -> dict[str, list[int]]:
    """Return the ids of processes on this machine with a mark in their name or command line, by mark."""
    wanted = [(mark, mark.encode()) for mark in marks]
    found: dict[str, list[int]] = {}
    for entry in os.listdir(_PROC):  # noqa: PTH208 - many times a second
        if entry.isdigit():
            text = _read_quickly(f"/proc/{entry}/cmdline") + _read_quickly(f"/proc/{entry}/comm")
            for mark, raw in wanted:
                if raw in text:
                    found.setdefault(mark, []).append(int(entry))
    return found


def marked_files(mark: str, data_dir: Path) -> list[str]:
    """Return the files of the host with a mark in their names. Search the folders in which a program could write."""
    folders = {Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), data_dir}  # noqa: S108
    found: list[str] = []
    for folder in folders:
        with suppress(OSError):
            found += [str(folder / name) for name in os.listdir(folder) if mark in name]  # noqa: PTH208
    return found


def _children(pid: int) -> Iterator[int]:
    for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
        yield from map(int, _read(_PROC / str(pid) / "task" / task / "children").split())


def _mounts() -> Iterator[str]:
    """Yield the mount points in this namespace that may come from a sandbox."""
    for line in _read(_PROC / "self" / "mountinfo").decode(errors="replace").splitlines():
        point = line.split(" ")[4]
        if any(word in point for word in ("/newroot", "/oldroot", "/bwrap")):
            yield point


def _cgroups() -> Iterator[str]:
    instance = this_instance()
    for mount in cgroup_mounts():
        for entry in walk(mount, only_folders=True, strict=False):
            if entry.name.startswith(PREFIX):
                entry.enter = False
                if entry.name.removeprefix(PREFIX).partition(".")[0] == instance:
                    yield str(mount / entry.path)


def _containers(engine: str) -> list[str]:
    with extra("docker", "the backend docker", SandboxUnavailable):
        import docker  # noqa: PLC0415 - a host without Docker does not have it
        import docker.errors  # noqa: PLC0415
        import requests  # noqa: PLC0415

        from evaluator_host.engine.sandbox.docker.cleanup import LABEL_INSTANCE  # noqa: PLC0415 - imports docker

    try:
        with closing(docker.APIClient(base_url=engine)) as client:
            listed = client.containers(all=True, filters={"label": f"{LABEL_INSTANCE}={this_instance()}"})
    except (docker.errors.DockerException, requests.RequestException, OSError):
        return []
    return [str(one["Names"][0]) for one in listed]


def _memory_mb(pid: int) -> float:
    return int(_read(_PROC / str(pid) / "statm").split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1024 * 1024)


def _read_quickly(path: str) -> bytes:
    """Return the start of a file.

    This must be quick, because each attack needs two files of every process on the machine.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, _MOST_BYTES)
    except OSError:
        return b""
    finally:
        os.close(file)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
