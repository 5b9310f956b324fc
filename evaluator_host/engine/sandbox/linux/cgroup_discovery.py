"""Finds where this host may create cgroups: hierarchy, parent group and controllers."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_host.engine.sandbox.linux.cgroups import CPU, MEMORY, PIDS, PREFIX, Cgroups, home_name

_WANTED: Final = (MEMORY, PIDS, CPU)
_UNIFIED: Final = ""  # the version 2 hierarchy has an empty name in /proc/self/cgroup
_PROC: Final = Path("/proc/self")
_HOST: Final = f"{PREFIX}host"  # name of the group to which the host moves itself, if it has to leave its own group


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted cgroup hierarchy."""

    mount: Path  # mount point of the hierarchy
    own: Path  # folder of this process's group in the hierarchy


def find_cgroups(instance: str, *, proc: Path = _PROC) -> Cgroups | None:
    """Create a folder for this host's cgroups and return it; None if this machine does not let the host set limits.

    Args:
      instance: Name of the host, from `instance.this_instance`.
      proc: `/proc/self`, or a copy of it.
    """
    hierarchies = find_hierarchies(proc)
    unified = hierarchies.get(_UNIFIED)
    if unified is not None and MEMORY in _words(unified.mount / "cgroup.controllers"):
        return _unified(unified, instance)
    homes = {}
    for controller in _WANTED:
        hierarchy = hierarchies.get(controller)
        if hierarchy is not None:
            home = hierarchy.own / home_name(instance)
            if _make_home(home, instance):
                homes[controller] = home
    found = Cgroups(1, homes, instance)
    if MEMORY in homes or PIDS in homes:
        return found.weigh()
    found.close()
    return None


def cgroup_mounts(proc: Path = _PROC) -> tuple[Path, ...]:
    """Return the mount points of the cgroup hierarchies that `cgroups.sweep` searches."""
    hierarchies = find_hierarchies(proc)
    return tuple(dict.fromkeys(h.mount for name, h in hierarchies.items() if name in (_UNIFIED, *_WANTED)))


def find_hierarchies(proc: Path) -> dict[str, Hierarchy]:
    """Return the mounted cgroup hierarchies by controller, such as `memory`; version 2 has the key `""`."""
    groups: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in (proc / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            groups.update(dict.fromkeys(controllers.split(","), path))
    found = {}
    for root, mount, kind, options in _mounts(proc):
        names = [_UNIFIED] if kind == "cgroup2" else options
        for name in names:
            if name in groups and name not in found:
                found[name] = Hierarchy(mount, _own_group(mount, root, groups[name]))
    return found


def _mounts(proc: Path) -> Iterator[tuple[str, Path, str, list[str]]]:
    """Yield the root, mount point, type and options of each mounted hierarchy (proc(5), mountinfo)."""
    with contextlib.suppress(OSError):
        for line in (proc / "mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            kind, _, options = after.split(" ", 2)
            if kind in ("cgroup", "cgroup2"):
                fields = before.split(" ")
                yield fields[3], Path(fields[4]), kind, options.split(",")


def _own_group(mount: Path, root: str, path: str) -> Path:
    """Return the folder of the cgroup at `path` in the hierarchy that is mounted at `mount`.

    `root` is the group at the mount point. In a container, this may be a group below the root of the hierarchy. If the
    group cannot be seen here, return `mount`.
    """
    if path.startswith("/.."):  # the group is outside the part of the hierarchy that this process can see
        return mount
    if root != "/" and (path == root or path.startswith(root + "/")):
        path = path[len(root) :]
    own = mount / path.lstrip("/")
    return own if own.is_dir() else mount


def _unified(hierarchy: Hierarchy, instance: str) -> Cgroups | None:
    """Return cgroup folders in this process's version 2 group or in one above it; None if no group permits this."""
    own = hierarchy.own.parent if hierarchy.own.name == _HOST else hierarchy.own
    for parent in (own, *own.parents):
        home = parent / home_name(instance)
        if os.access(parent / "cgroup.procs", os.W_OK) and _make_home(home, instance):
            controllers = _delegate(parent, home, own=parent == hierarchy.own)
            if MEMORY in controllers and PIDS in controllers:
                return Cgroups(2, dict.fromkeys(controllers, home), instance).weigh()
            Cgroups(2, {MEMORY: home}, instance).close()
        if parent == hierarchy.mount:
            break
    return None


def _delegate(parent: Path, home: Path, *, own: bool) -> list[str]:
    """Enable the controllers of `parent` for the groups below `home`; return the controllers that are enabled there.

    `own` says whether this process itself is in `parent`.
    """
    offered = [name for name in _WANTED if name in _words(parent / "cgroup.controllers")]
    # A group that has processes cannot enable controllers for its children. If the host is alone in its group (a
    # systemd service with Delegate=yes), it moves into a child of that group.
    if own and _words(parent / "cgroup.procs") == [str(os.getpid())]:
        leaf = parent / _HOST
        if _make_group(leaf):
            _try_write(leaf / "cgroup.procs", str(os.getpid()))
    for folder in (parent, home):
        for name in offered:
            if name not in _words(folder / "cgroup.subtree_control"):
                _try_write(folder / "cgroup.subtree_control", f"+{name}")
    return [name for name in offered if name in _words(home / "cgroup.subtree_control")]


def _make_home(folder: Path, instance: str) -> bool:
    """Create the folder of a host's cgroups, and an empty group in it. Return whether this worked.

    The empty group has the name of the host's process, so that `cgroups.sweep` finds out whose folder this is.
    """
    if not _make_group(folder):
        return False
    try:
        (folder / instance).mkdir(exist_ok=True)
    except OSError:
        return False
    return True


def _make_group(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder / "cgroup.procs", os.W_OK)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _try_write(path: Path, text: str) -> None:
    with contextlib.suppress(OSError):
        path.write_text(text)
