"""The security policy of the bubblewrap backend: pure functions that make bubblewrap's arguments from a spec.

tests/unit/test_bubblewrap_args.py checks the policy line by line. This module does not inspect the machine; `HostFiles`
contains the files found there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Final

from evaluator_host.engine.sandbox.bubblewrap.mounts import RUNNER_HOME, Bind, HostLibraries, HostPython
from evaluator_host.engine.sandbox.linux.masked_paths import PROC_FOLDERS
from evaluator_host.types.evaluator import Environment, Language, SandboxSpec

NOBODY: Final = 65534
_NODE: Final = Path("/opt/node/bin/node")
_ESBUILD: Final = Path("/opt/esbuild/esbuild")
_RESTRICTED: Final = Path("/opt/restricted")
_PACKAGES: Final = Path("/opt/packages")
DATA: Final = Path("/opt/data")
_ZONES: Final = Path("/usr/share/zoneinfo")
_SHELL: Final = Path("/bin")
DEVICES: Final = ("null", "zero", "full", "random", "urandom")
DEVICE_LINKS: Final = (
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
)
_MB: Final = 1024 * 1024

COMMANDS: Final = "/opt/commands"  # folder of the commands that start the interpreter of a guest's language

ENVIRONMENT: Final[Mapping[str, str]] = {
    "PATH": f"{COMMANDS}:/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - the guest's own tmpfs
    "TMPDIR": "/tmp",  # noqa: S108
    "USER": "sandbox",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",  # one thread only, because a row's process is forked, and a fork does not copy threads
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
}


@dataclass(frozen=True, slots=True)
class HostFiles:
    """The files of this machine that sandboxes can read."""

    python: HostPython
    libraries: HostLibraries
    node: Path
    esbuild: Path
    restricted: Path
    runtimes: Path  # the sources of the runners
    javascript: Path  # the built JavaScript runner
    node_flags: tuple[str, ...] = ()  # flags of Node, which come before the runner's name
    zones: Path | None = None  # the time zone database; None if the machine has none
    shell: Path | None = None  # folder of a shell and text tools
    python_with_node: bool = False  # whether sandboxes for Python have Node too
    disable_userns: bool = True  # whether bubblewrap can forbid further user namespaces (0.8 and later)
    # paths in /proc that look empty in a sandbox, from `masked_paths.masked_paths_on`
    masked_paths: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """The user id of a sandboxed program, and whether the program starts as root and then changes to this id."""

    uid: int = NOBODY  # user id and group id
    drop: bool = False  # whether bubblewrap runs as root without a user namespace, and the runner changes to `uid`


@dataclass(frozen=True, slots=True)
class Descriptors:
    """The numbers of the file descriptors that bubblewrap inherits."""

    seccomp: int  # descriptor of the compiled filter
    info: int  # descriptor to which bubblewrap writes the id of the first process
    block: int  # descriptor of a pipe: bubblewrap reads a byte from it before it starts anything in the sandbox
    files: Mapping[str, int]  # descriptors from which to read the contents of files under /etc, by file name


def bubblewrap_args(spec: SandboxSpec, host: HostFiles, *, identity: Identity, descriptors: Descriptors) -> list[str]:
    """Return bubblewrap's arguments for a sandbox, except the program name and the runner's command."""
    return [
        *_namespaces(spec, host, identity),
        *("--die-with-parent", "--new-session"),
        *("--hostname", "sandbox"),
        *_environment(spec, host),
        *_files(spec, host),
        *_own_files(spec, host, descriptors),
        *("--remount-ro", "/"),
        *("--chdir", "/tmp"),  # noqa: S108
        *("--seccomp", str(descriptors.seccomp)),
        *("--info-fd", str(descriptors.info)),
        *("--block-fd", str(descriptors.block)),
    ]


def template_args(host: HostFiles, identity: Identity) -> list[str]:
    """Return bubblewrap's arguments for a template: a process from which sandboxes are forked.

    A template keeps the rights to make namespaces and mounts, and has no system call filter, because it never runs code
    of a guest. After the fork, each sandbox adds the rest of the isolation.
    """
    spec = SandboxSpec(Language.PYTHON, Environment(digest="", language=Language.PYTHON, runtime=""))
    user = () if identity.drop else ("--unshare-user", "--uid", str(identity.uid), "--gid", str(identity.uid))
    rights = ("CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_SETPCAP", "CAP_SETUID", "CAP_SETGID")
    return [
        *user,
        *("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup", "--unshare-net"),
        *("--cap-drop", "ALL", *(word for right in rights for word in ("--cap-add", right))),
        *("--die-with-parent", "--new-session"),
        *_environment(spec, host),
        *_files(spec, host),
        *("--proc", "/proc"),
        *_devices(),
        *_parents(("/tmp/-", "/dev/shm/-", "/etc/-", f"{_PACKAGES}/-", f"{DATA}/-")),  # noqa: S108
        *("--remount-ro", "/"),
    ]


def own_folders(spec: SandboxSpec) -> dict[str, Path]:
    """Return the host's folders for sandboxes of this spec (packages, data files), by their paths in the sandbox."""
    found = {} if spec.environment.path is None else {str(_PACKAGES): spec.environment.path}
    return found if spec.data is None else {**found, str(DATA): spec.data.path}


def runner_command(spec: SandboxSpec, host: HostFiles, *, identity: Identity) -> list[str]:
    """Return the runner's command line inside the sandbox."""
    if spec.language is Language.PYTHON:
        command = [*python_command(host), "--restricted", str(_RESTRICTED)]
        command += ["--node"] if host.python_with_node else []
    else:
        command = [str(_NODE), *host.node_flags, str(RUNNER_HOME / "runner.cjs"), "--esbuild", str(_ESBUILD)]
        command += ["--memory-mb", str(spec.memory_mb)]
    if spec.environment.path is not None:
        command += ["--packages", str(_PACKAGES)]
    if spec.data is not None:
        command += ["--data", str(DATA)]
    if spec.stand_in is not None:
        command += ["--sdk", str(RUNNER_HOME / spec.stand_in.folder)]
    if identity.drop:
        command += ["--drop-to", f"{identity.uid}:{identity.uid}"]
    return [*command, "--private-tmp"]


def python_command(host: HostFiles) -> list[str]:
    """Return the first words of the Python runner's command line: interpreter, flags and program."""
    return [str(host.python.executable), "-I", "-S", "-B", "-X", "utf8", str(RUNNER_HOME / "runner.py")]


def etc_files(identity: Identity) -> dict[str, bytes]:
    """Return the files of /etc in a sandbox: one user, no name service. Without `localtime`, the time zone is UTC."""
    return {
        "passwd": f"sandbox:x:{identity.uid}:{identity.uid}::/tmp:/nonexistent\n".encode(),
        "group": f"sandbox:x:{identity.uid}:\n".encode(),
        "nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
        "hosts": b"127.0.0.1 localhost sandbox\n::1 localhost\n",
    }


def _namespaces(spec: SandboxSpec, host: HostFiles, identity: Identity) -> Iterator[str]:
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup")
    if not spec.network:
        yield "--unshare-net"
    if identity.drop:
        # Without a user namespace, root stays root, so that it can bind files below a home folder with mode 0700. It
        # keeps only the rights that the runner needs to become `uid`, and then loses these too. The bounding set stays
        # full, because bubblewrap drops it only with a user namespace; with `no_new_privs`, no program gets rights
        # from it.
        yield from ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
        return
    yield from ("--unshare-user", "--uid", str(identity.uid), "--gid", str(identity.uid), "--cap-drop", "ALL")
    if host.disable_userns:
        yield "--disable-userns"
    if spec.language is Language.PYTHON:
        # Without this option, bubblewrap would stay process 1. Bubblewrap runs as the guest's user and keeps the
        # channel's descriptors open, so a row could open them through /proc/1/fd. When the Python runner is process 1,
        # it forbids this. Node cannot forbid it, so the option would not help there.
        yield "--as-pid-1"


def _environment(spec: SandboxSpec, host: HostFiles) -> Iterator[str]:
    yield "--clearenv"
    for name, value in ENVIRONMENT.items():
        yield from ("--setenv", name, value)
    if spec.language is Language.PYTHON and host.python.library_path is not None:
        yield from ("--setenv", "LD_LIBRARY_PATH", str(host.python.library_path))


def _files(spec: SandboxSpec, host: HostFiles) -> Iterator[str]:
    binds = _binds(spec, host)
    yield from _parents(tuple(str(bind.target) for bind in binds))
    for bind in binds:
        yield from ("--ro-bind", str(bind.source), str(bind.target))
    if spec.language is Language.PYTHON:
        for folder in host.python.masked:
            yield from ("--perms", "0555", "--size", "4096", "--tmpfs", str(folder), "--remount-ro", str(folder))
    for source, target in host.libraries.links:
        yield from ("--symlink", source, str(target))
    yield from _commands(spec, host)


def _commands(spec: SandboxSpec, host: HostFiles) -> Iterator[str]:
    programs = {"python3": host.python.executable, "python": host.python.executable}
    if spec.language is not Language.PYTHON:
        programs = {"node": _NODE}
    elif host.python_with_node:
        programs["node"] = _NODE
    yield from _parents((f"{COMMANDS}/-",))
    for name, program in programs.items():
        yield from ("--symlink", str(program), f"{COMMANDS}/{name}")
    if host.shell is not None:  # scripts name the path /usr/bin/env in their first lines
        yield from (*_parents(("/usr/bin/-",)), "--symlink", str(_SHELL / "env"), "/usr/bin/env")


def _binds(spec: SandboxSpec, host: HostFiles) -> list[Bind]:
    binds = [*host.libraries.binds]
    if spec.language is Language.PYTHON:
        binds += [Bind(host.runtimes / "python", RUNNER_HOME), *host.python.binds, Bind(host.restricted, _RESTRICTED)]
        if host.zones is not None:  # not needed for Node, which contains a time zone database
            binds.append(Bind(host.zones, _ZONES))
        if host.python_with_node:
            binds.append(Bind(host.node, _NODE))
    else:
        binds += [Bind(host.javascript, RUNNER_HOME), Bind(host.node, _NODE), Bind(host.esbuild, _ESBUILD)]
    if host.shell is not None:
        binds.append(Bind(host.shell, _SHELL))
    return [*binds, *(Bind(source, Path(target)) for target, source in own_folders(spec).items())]


def _own_files(spec: SandboxSpec, host: HostFiles, descriptors: Descriptors) -> Iterator[str]:
    yield from ("--proc", "/proc")
    for path in map(str, host.masked_paths):
        if path in PROC_FOLDERS:
            yield from ("--perms", "0555", "--size", "4096", "--tmpfs", path, "--remount-ro", path)
        else:
            yield from ("--ro-bind", "/dev/null", path)
    yield from _parents(tuple(f"/etc/{name}" for name in descriptors.files))
    yield from _devices()
    for folder in ("/tmp", "/dev/shm"):  # noqa: S108
        yield from ("--perms", "1777", "--size", str(spec.disk_mb * _MB), "--tmpfs", folder)
    for name, descriptor in descriptors.files.items():
        yield from ("--perms", "0444", "--file", str(descriptor), f"/etc/{name}")


def _devices() -> Iterator[str]:
    yield from _parents(("/dev/null",))
    for device in DEVICES:
        yield from ("--dev-bind", f"/dev/{device}", f"/dev/{device}")
    for source, target in DEVICE_LINKS:
        yield from ("--symlink", source, target)


@lru_cache(64)
def _parents(targets: tuple[str, ...]) -> tuple[str, ...]:
    """Return arguments that create the folders above each target.

    The guest's user would not have access to folders that bubblewrap created by itself.
    """
    folders = {parent for target in targets for parent in PurePosixPath(target).parents if parent != PurePosixPath("/")}
    return tuple(word for folder in sorted(folders) for word in ("--perms", "0755", "--dir", str(folder)))
