"""Checks whether bubblewrap works on this machine, and gives advice on each problem."""

import os
import re
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_host.engine.sandbox.base import Finding
from evaluator_host.engine.sandbox.isolation_notes import isolation_finding
from evaluator_host.engine.sandbox.linux.cgroups import CPU, MEMORY, PIDS, host_weight
from evaluator_host.engine.system.processes import Command, run
from evaluator_host.types.errors import SandboxUnavailable, refusal_of

INSTALL: Final = (
    "install bubblewrap 0.7 or newer: `apt-get install bubblewrap` (Debian 12, Ubuntu 24.04), "
    "`dnf install bubblewrap` or `pacman -S bubblewrap`"
)
_VERSION_S: Final = 10.0
_REINSTALL: Final = "reinstall the host's dependencies (`make setup`)"
# the first version that has --size; without this option, a guest could fill the host's memory with files in /tmp
_OLDEST: Final = (0, 7)
_DISABLE_USERNS: Final = (0, 8)
_PROC_SYS: Final = Path("/proc/sys")

_IN_A_CONTAINER: Final = (
    "start the container with --security-opt seccomp=unconfined, apparmor=unconfined and systempaths=unconfined, as "
    "deploy/compose.yaml does (Kubernetes: seccompProfile and appArmorProfile Unconfined, procMount Unmasked), "
    "or use the docker backend"
)
_USERNS_OFF: Final = (
    ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=10000"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "give bwrap an AppArmor profile with `userns,`, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """The bubblewrap program installed on this machine."""

    path: Path
    version: tuple[int, ...]

    @property
    def can_disable_userns(self) -> bool:
        """Return whether this bubblewrap can forbid user namespaces inside a sandbox."""
        return self.version >= _DISABLE_USERNS


async def find_bubblewrap() -> Bubblewrap:
    """Return the installed bubblewrap.

    Raises:
      SandboxUnavailable: no usable bubblewrap is installed; the detail says what to install.
    """
    path = _installed()
    if path is None:
        raise SandboxUnavailable(f"bubblewrap is not installed: {INSTALL}")
    try:
        done = await run(Command((str(path), "--version"), Path("/"), {}), _VERSION_S)
        if done.code < 0:
            raise InterruptedError(f"signal {-done.code} ended the program")
    except OSError as error:  # includes TimeoutError, which is an OSError
        raise SandboxUnavailable(f"{path} cannot be run: {refusal_of(error)}. Otherwise {INSTALL}") from error
    version = version_of(done.stdout)
    if not version:
        raise SandboxUnavailable(f"{path} is not bubblewrap, or is damaged: {INSTALL}")
    if version < _OLDEST:
        raise SandboxUnavailable(f"{done.stdout.strip()} is too old: {INSTALL}")
    if path.stat().st_mode & stat.S_ISUID:
        raise SandboxUnavailable(f"{path} is setuid root, so it cannot limit the size of /tmp: run `chmod u-s {path}`")
    return Bubblewrap(path, version)


def _installed() -> Path | None:
    found = shutil.which("bwrap")
    return None if found is None else Path(found).resolve()


def version_of(output: str) -> tuple[int, ...]:
    """Parse the version in the output of `bwrap --version`, such as `(0, 8, 0)`; return `()` if there is none."""
    match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", output)
    return tuple(int(part) for part in match.groups(default="0")) if match else ()


def advice(stderr: str) -> str:
    """Return a sentence with bubblewrap's error message (`stderr`) and advice on what to do."""
    said = stderr.strip() or "it ended without a message"
    return f"bubblewrap could not start a sandbox: {said}. {remedy(said)}"


def require_program(path: Path) -> None:
    """Check that a file begins like an executable.

    Bubblewrap and Node would run any other file with a shell.

    Raises:
      SandboxUnavailable: the file is not an executable.
      OSError: the file cannot be read.
    """
    with path.open("rb") as opened:
        if not opened.read(4).startswith((b"\x7fELF", b"#!")):
            raise SandboxUnavailable(f"{path} is damaged: it is not an executable; {_REINSTALL}")


def binary_finding(bwrap: Bubblewrap) -> Finding:
    """Return a finding with the path and version of bubblewrap."""
    version = ".".join(map(str, bwrap.version))
    note = (
        ""
        if bwrap.can_disable_userns
        else "; only the system call filter keeps sandboxes from making user namespaces (bubblewrap 0.8 could, too)"
    )
    return Finding("bubblewrap", ok=True, detail=f"{bwrap.path} {version}{note}")


def confinement_findings() -> list[Finding]:
    """Return findings about how sandboxes are isolated: the user that they start as, and the filter of system calls."""
    who = (
        "root, and then change to a user of their own" if os.geteuid() == 0 else "an ordinary user, in a user namespace"
    )
    return [
        Finding("user", ok=True, detail=f"sandboxes start as {who}"),
        Finding("seccomp", ok=True, detail="our filter is in force (sandbox_images/seccomp.json)"),
        isolation_finding(),
    ]


def limits_finding(version: int | None, controllers: Sequence[str]) -> Finding:
    """Return the finding about what limits memory, processes and CPU: cgroups, or rlimits and the watchdog."""
    weight = (
        f"a busy processor gives all sandboxes together {host_weight():g} times the share of an ordinary process"
        if CPU in controllers
        else "a busy processor gives each process of a sandbox the same share as any other process"
    )
    if version is not None and {MEMORY, PIDS} <= set(controllers):
        return Finding("limits", ok=True, detail=f"cgroup v{version}: {', '.join(controllers)}; {weight}")
    granted = (
        f"cgroup v{version} grants only {', '.join(controllers)}; the rest is limited by "
        if controllers
        else "no cgroup is granted; limits are enforced by "
    )
    return Finding(
        "limits",
        ok=True,
        detail=f"{granted}rlimits, and a watchdog that checks 20 times a second; {weight}",
        fix="to let the kernel enforce the limits, run the host as a systemd service with `Delegate=yes`, or as root",
    )


def remedy(said: str, *, proc_sys: Path = _PROC_SYS, euid: int | None = None) -> str:
    """Return advice on how to make bubblewrap work after it failed with an error message.

    Args:
      said: The error message of bubblewrap.
      proc_sys: Folder of the kernel's settings.
      euid: Effective user id with which bubblewrap ran; None for the user id of this process.
    """
    if "execvp" in said:
        return f"That program is missing or damaged: {_REINSTALL}"
    if "proc" in said and "mount" in said.lower():
        return f"This looks like a container that hides parts of /proc: {_IN_A_CONTAINER}"
    if (os.geteuid() if euid is None else euid) == 0:
        return "Root needs CAP_SYS_ADMIN here (in a container: --privileged), or use Docker instead"
    for name, off, fix in _USERNS_OFF:
        try:
            value = (proc_sys / name).read_text().strip()
        except OSError:
            continue
        if value == off:
            return f"User namespaces are off for ordinary users ({name.replace('/', '.')} = {value}): {fix}"
    if _is_container():
        return f"The container engine forbids user namespaces: {_IN_A_CONTAINER}"
    return "Try `bwrap --unshare-all --ro-bind / / true` to see whether user namespaces work, or use Docker instead"


def _is_container() -> bool:
    signs = ("/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io")
    return any(os.path.exists(sign) for sign in signs)  # noqa: PTH110 - shorter
