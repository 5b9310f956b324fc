"""The security policy of builds, as arguments of bubblewrap.

tests/unit/test_builder_args.py checks the policy line by line. The functions are pure: they get the paths on this
machine as arguments.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from evaluator_host.engine.sandbox.bubblewrap.mounts import Bind
from evaluator_host.engine.sandbox.bubblewrap.policy import DEVICE_LINKS, DEVICES, Descriptors, Identity
from evaluator_host.engine.system.processes import PLAIN_PATH

_SCRATCH: Final = ("/tmp", "/dev/shm")  # noqa: S108 - a tmpfs of its own
_SCRATCH_BYTES: Final = 512 * 1024 * 1024
_EMPTY_BYTES: Final = 4096
# Program that sets the umask and the user of a build. Without a sandbox, it also sets the limits, and makes the build
# die with the host. A sandbox that starts as root becomes an ordinary user here, before it reads anything that came
# from outside.
_ENTER: Final = """
import os, resource, sys
limits, user, bound, folder = sys.argv[1:5]
os.umask(0o022)
os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
for limit in filter(None, limits.split(",")):
    name, _, value = limit.partition("=")
    kind = getattr(resource, "RLIMIT_" + name)
    hard = resource.getrlimit(kind)[1]
    value = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
    resource.setrlimit(kind, (value, value))
if bound == "bound":
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)
if user:
    user = int(user)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    if {*os.getresuid(), *os.getresgid()} != {user} or os.getgroups():
        sys.exit("the builder cannot become an ordinary user")
os.chdir(folder)
os.execv(sys.argv[5], sys.argv[5:])
"""


@dataclass(frozen=True, slots=True)
class BuildView:
    """The files of this machine that one build sees, at the same paths as on the host."""

    seen: tuple[Bind, ...]  # read-only files: interpreter, libraries, uv, node, npm, DNS configuration
    writable: tuple[Bind, ...]  # folders to write to: the stage, the download cache, the command's own folder
    links: tuple[tuple[str, Path], ...] = ()  # symbolic links (see `HostLibraries`)
    # folders that look empty in the sandbox: third-party packages of the interpreter, other builds' folders
    empty: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # all environment variables of the build


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of one process; a limit is None if a cgroup or the watchdog enforces it instead."""

    file_mb: int  # maximum size of one file, in MB
    data_mb: int | None = None  # maximum private memory of each process, in MB
    processes: int | None = None  # maximum number of processes that the builds' user may have in all builds together

    @property
    def limits(self) -> dict[str, int]:
        """Return the limits by the names of their constants without `RLIMIT_`: `CORE` for `resource.RLIMIT_CORE`.

        CORE is 1, because with 0 the kernel still starts programs that handle core dumps.
        """
        found = {"CORE": 1, "FSIZE": self.file_mb << 20, "NOFILE": 8192, "MEMLOCK": 65_536, "MSGQUEUE": 0}
        if self.data_mb is not None:
            found["DATA"] = self.data_mb << 20
        if self.processes is not None:
            found["NPROC"] = self.processes
        return found


def builder_args(view: BuildView, *, identity: Identity, descriptors: Descriptors, disable_userns: bool) -> list[str]:
    """Return bubblewrap's arguments for a build, except the program name and the command.

    The build shares only the network with the host.
    """
    return [
        *_namespaces(identity, disable_userns=disable_userns),
        *("--die-with-parent", "--new-session", "--hostname", "builder", "--clearenv"),
        *_environment(view),
        *_own_files(descriptors),
        *_files(view),  # bind these files after the folders above, because some of the files are below /tmp
        *("--remount-ro", "/", "--chdir", "/"),
        *("--seccomp", str(descriptors.seccomp)),
        *("--info-fd", str(descriptors.info), "--block-fd", str(descriptors.block)),
    ]


def entry_command(
    argv: tuple[str, ...], cwd: Path, *, python: Path, bounds: ProcessLimits | None = None, user: int | None = None
) -> tuple[str, ...]:
    """Return a command line that starts `argv` with this user and these limits.

    Args:
      argv: Command to run; its program is a path.
      cwd: Working directory; entered as the final user, because root without its capabilities may not enter it.
      python: Interpreter that sets the user and the limits.
      bounds: Limits of each process; with limits, the process also ends when this host ends. None in a sandbox, which
        limits and ends processes itself.
      user: User id to change to, if the command starts as root; None to keep the user.
    """
    listed = ",".join(f"{name}={value}" for name, value in bounds.limits.items()) if bounds else ""
    who = "" if user is None else str(user)
    return (str(python), "-I", "-S", "-c", _ENTER, listed, who, "bound" if bounds else "free", str(cwd), *argv)


def etc_files(identity: Identity) -> dict[str, bytes]:
    """Return the contents of `/etc/passwd` and `/etc/group` in a build sandbox, which has only one user."""
    return {
        "passwd": f"builder:x:{identity.uid}:{identity.uid}::/tmp:/nonexistent\n".encode(),
        "group": f"builder:x:{identity.uid}:\n".encode(),
    }


def _namespaces(identity: Identity, *, disable_userns: bool) -> Iterator[str]:
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup")
    if identity.drop:
        # As in `bubblewrap_args`, root stays root until `_ENTER`, so that it can bind files in a home with mode 0700.
        yield from ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
        return
    yield from ("--unshare-user", "--uid", str(identity.uid), "--gid", str(identity.uid), "--cap-drop", "ALL")
    if disable_userns:
        yield "--disable-userns"


def _environment(view: BuildView) -> Iterator[str]:
    for name, value in {"PATH": PLAIN_PATH, "LANG": "C.UTF-8", **view.environment}.items():
        yield from ("--setenv", name, value)


def _files(view: BuildView) -> Iterator[str]:
    binds = (*view.seen, *view.writable)
    parents = {str(parent) for bind in binds for parent in bind.target.parents} - {"/"}
    for parent in sorted(parents):  # if bubblewrap made these folders itself, the builds' user could not enter them
        yield from ("--perms", "0755", "--dir", parent)
    for bind in view.seen:
        yield from ("--ro-bind", str(bind.source), str(bind.target))
    for source, target in view.links:
        yield from ("--symlink", source, str(target))
    for bind in sorted(view.writable, key=lambda bind: len(bind.target.parts)):
        yield from ("--bind", str(bind.source), str(bind.target))
        for folder in view.empty:
            if folder.is_relative_to(bind.target):
                yield from _emptied(folder)
    for folder in view.empty:
        if not any(folder.is_relative_to(bind.target) for bind in view.writable):
            yield from _emptied(folder)


def _emptied(folder: Path) -> Iterator[str]:
    yield from ("--perms", "0555", "--size", str(_EMPTY_BYTES), "--tmpfs", str(folder), "--remount-ro", str(folder))


def _own_files(descriptors: Descriptors) -> Iterator[str]:
    yield from ("--proc", "/proc", "--perms", "0755", "--dir", "/dev", "--perms", "0755", "--dir", "/etc")
    for device in DEVICES:
        yield from ("--dev-bind", f"/dev/{device}", f"/dev/{device}")
    for source, target in DEVICE_LINKS:
        yield from ("--symlink", source, target)
    for folder in _SCRATCH:
        yield from ("--perms", "1777", "--size", str(_SCRATCH_BYTES), "--tmpfs", folder)
    for name, descriptor in descriptors.files.items():
        yield from ("--perms", "0444", "--file", str(descriptor), f"/etc/{name}")
