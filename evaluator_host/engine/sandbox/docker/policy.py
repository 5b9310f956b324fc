"""The security policy of the Docker backend: a pure function that makes the request for a container from a spec.

tests/unit/test_docker_args.py checks the policy line by line. Nothing in this module talks to an engine.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from evaluator_host.engine.config.settings import RUNTIMES_DIR, SANDBOX_IMAGES_DIR
from evaluator_host.engine.sandbox.bubblewrap.policy import ENVIRONMENT
from evaluator_host.engine.sandbox.bubblewrap.seccomp import read_policy
from evaluator_host.engine.sandbox.linux.masked_paths import docker_masked_paths
from evaluator_host.engine.sandbox.linux.rlimits import (
    GVISOR_MEMORY_MB,
    GVISOR_PROCESSES,
    NOFILE,
    is_gvisor,
    process_limit,
)
from evaluator_host.types.evaluator import Language, SandboxSpec

_SECCOMP: Final = SANDBOX_IMAGES_DIR / "seccomp.json"
_NODE_FLAGS: Final = RUNTIMES_DIR / "javascript" / "node_flags.json"

IMAGE_RUNNERS: Final = "/opt/runner"
IMAGE_NODE: Final = "/opt/node/bin/node"
IMAGE_ESBUILD: Final = "/opt/esbuild/esbuild"
IMAGE_RESTRICTED: Final = "/opt/restricted"
IMAGE_PACKAGES: Final = "/opt/packages"
IMAGE_DATA: Final = "/opt/data"

# Each container has its own uid, because the kernel counts some things per user across containers (pipe pages, inotify
# watches, pending signals). These uids are below 65,536, the number of ids that a rootless engine maps, and above those
# of Debian's users.
UID_FIRST: Final = 20_000
UID_COUNT: Final = 40_000
# Process limit for each user. It is above every cgroup limit that the settings allow, so that two containers with the
# same uid do not reach it together. Without a value, Podman would set a million, which fails on a host that may not
# raise limits.
USER_PROCESSES: Final = 4096
# Runtimes that make an empty network namespace by themselves. With `NetworkDisabled` they start a container in half the
# time that they need with network "none", for which the engine prepares a namespace. The documentation of runsc and
# kata uses "none".
_MAKES_NAMESPACES: Final = frozenset({"", "runc", "crun", "io.containerd.runc.v2"})
# A row is one thread of user code; the supervisor sleeps while a row runs. With more processors, one evaluator could
# take a whole small host.
CPUS: Final = 1.0
# Replaces the engine's file system for message queues, because queues would outlive the row that made them.
_NO_QUEUES: Final = "ro,noexec,nosuid,nodev,mode=0555,size=4k"
# One inode for each 4 KiB, the size of a page, so that empty files use up the limit as fast as files of that size.
INODES_PER_MB: Final = 256


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """The abilities of an engine, according to `/info` and `/version`."""

    address: str
    name: str = ""  # name of the engine's machine; "" when the engine does not report it
    version: str = ""
    podman: bool = False  # whether the engine is Podman, which also serves Docker's API
    # whether the engine's address is a Unix socket, so that the engine probably runs on this machine
    local: bool = True
    cpus: int = 1
    arch: str = ""
    cgroup_version: str = ""  # "1", "2", or "" when the engine does not report it
    memory_limit: bool = True
    swap_limit: bool = True
    pids_limit: bool = True
    cpu_quota: bool = True
    seccomp: bool = True
    rootless: bool = False
    runtimes: tuple[str, ...] = ()  # names of the OCI runtimes that the engine offers
    unlimited_runtimes: tuple[str, ...] = ()  # runtimes that enforce no limits (gVisor's `--ignore-cgroups`)
    default_runtime: str = ""


@dataclass(frozen=True, slots=True)
class ContainerPolicy:
    """The part of the request to create a container that is the same for every sandbox spec."""

    # the runtime image, or the image of a package set (`environment_images`), which has one more layer and its own name
    image: str
    runtime: str | None  # OCI runtime, or None for the engine's default
    # value for `seccomp=`: a profile (Docker) or a profile's path (Podman); None for the engine's default
    seccomp: str | None
    node_flags: tuple[str, ...]  # flags for Node, which come before the runner's name
    labels: Mapping[str, str]  # labels by which `sweep` finds the container
    python_with_node: bool = False  # whether rows of Python may start the image's Node


def container_policy(
    facts: EngineFacts, *, image: str, runtime: str | None, labels: Mapping[str, str], python_with_node: bool = False
) -> ContainerPolicy:
    """Return the policy for containers of an image, with our seccomp profile if the engine supports one.

    `python_with_node` says whether sandboxes for Python also have Node.

    Raises:
      SandboxUnavailable: the profile cannot be read.
    """
    return ContainerPolicy(image, runtime, _seccomp(facts), _node_flags(), labels, python_with_node)


def create_body(spec: SandboxSpec, *, policy: ContainerPolicy, engine: EngineFacts, uid: int) -> dict[str, Any]:
    """Return the body of `POST /containers/create` for one sandbox.

    With `OpenStdin` and `StdinOnce`, the engine closes the runner's standard input when the attached client is gone,
    and the runner then ends. So when a host dies, its containers end too.
    """
    return {
        "Image": policy.image,
        "Entrypoint": [],
        "Cmd": command(spec, node_flags=policy.node_flags, python_with_node=policy.python_with_node),
        "Hostname": "sandbox",
        "User": f"{uid}:{uid}",
        "WorkingDir": "/tmp",  # noqa: S108
        "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
        "Labels": dict(policy.labels),
        "Tty": False,
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "NetworkDisabled": not spec.network and (policy.runtime or engine.default_runtime) in _MAKES_NAMESPACES,
        "StopTimeout": 0,  # the engine kills the runner at once, because a runner has nothing to save
        "HostConfig": _host_config(spec, policy=policy, engine=engine),
    }


def command(spec: SandboxSpec, *, node_flags: tuple[str, ...] = (), python_with_node: bool = False) -> list[str]:
    """Return the runner's command line inside the image."""
    runner = f"{IMAGE_RUNNERS}/{spec.language.runner}"
    folders = [] if spec.environment.path is None else ["--packages", IMAGE_PACKAGES]
    folders += [] if spec.data is None else ["--data", IMAGE_DATA]
    if spec.language is Language.PYTHON:
        python = ["/usr/bin/python3", "-I", "-S", "-B", "-X", "utf8", f"{runner}/runner.py"]
        sdk = [] if spec.stand_in is None else ["--sdk", f"{runner}/{spec.stand_in.folder}"]
        node = ["--node"] if python_with_node else []
        return [*python, "--restricted", IMAGE_RESTRICTED, *folders, *sdk, *node, "--private-tmp"]
    node = [IMAGE_NODE, *node_flags, f"{runner}/runner.cjs", "--esbuild", IMAGE_ESBUILD]
    return [*node, "--memory-mb", str(spec.memory_mb), *folders, "--private-tmp"]


def _host_config(spec: SandboxSpec, *, policy: ContainerPolicy, engine: EngineFacts) -> dict[str, Any]:
    gvisor = is_gvisor(policy.runtime or engine.default_runtime)
    memory_bytes = (spec.memory_mb + gvisor * GVISOR_MEMORY_MB) * 1024 * 1024
    processes = process_limit(spec.language, spec.processes) + gvisor * GVISOR_PROCESSES
    # if no cgroup limits the number of processes, the user's rlimit must do so
    user_processes = USER_PROCESSES if engine.pids_limit else processes
    config: dict[str, Any] = {
        # the engine's default network: a bridge, or Podman's counterpart
        "NetworkMode": "default" if spec.network else "none",
        "ReadonlyRootfs": True,
        "Privileged": False,
        "CapDrop": ["ALL"],
        "SecurityOpt": security_options(policy),
        "IpcMode": "private",
        "Memory": memory_bytes,
        "MemorySwap": memory_bytes,  # memory and swap together; equal to `Memory`, so that there is no swap
        "OomScoreAdj": 500,  # when memory is short, a sandbox is killed before the host
        "PidsLimit": processes,
        "Tmpfs": {
            **dict.fromkeys(("/tmp", "/dev/shm"), _tmpfs(spec.disk_mb, engine)),  # noqa: S108
            "/dev/mqueue": _NO_QUEUES,
        },
        "Ulimits": [
            {"Name": name, "Soft": most, "Hard": most}
            for name, most in (("core", 0), ("nofile", NOFILE), ("nproc", user_processes))
        ],
        "LogConfig": {"Type": "none", "Config": {}},
        "Init": False,  # the runner itself is process 1 and reaps ended processes
        "AutoRemove": False,  # the exit code is read before the removal
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
    }
    if not spec.network:
        config["Dns"] = ["0.0.0.0"]  # noqa: S104 - else the engine copies the host's resolv.conf into the container
    if engine.cpu_quota:  # an engine without CFS quota would refuse the request
        config["NanoCpus"] = int(min(CPUS, engine.cpus) * 1e9)
    if engine.cgroup_version == "2" or (engine.cgroup_version == "1" and not engine.podman):
        config["CgroupnsMode"] = "private"
    if not engine.podman:  # Podman has its own list of masked paths, and does not accept a list in this form
        config["MaskedPaths"] = docker_masked_paths()
    if policy.runtime:
        config["Runtime"] = policy.runtime
    return config


def security_options(policy: ContainerPolicy) -> list[str]:
    """Return the security options: no process can gain privileges, and our seccomp profile applies."""
    options = ["no-new-privileges"]
    if policy.seccomp is not None:
        options.append(f"seccomp={policy.seccomp}")
    return options


def _tmpfs(size_mb: int, engine: EngineFacts) -> str:
    options = f"rw,noexec,nosuid,nodev,mode=1777,size={size_mb}m"
    if engine.podman:  # Podman lacks the option `nr_inodes`, but counts inodes towards the memory limit
        return options
    return f"{options},nr_inodes={size_mb * INODES_PER_MB}"


def _seccomp(facts: EngineFacts) -> str | None:
    """Return the seccomp profile: its text for Docker, or the path of a file on Podman's machine."""
    if not facts.seccomp:
        return None
    profile = _profile()
    if facts.podman:
        return str(_SECCOMP) if facts.local else None
    return profile


@cache
def _profile() -> str:
    return json.dumps(read_policy(), separators=(",", ":"))


@cache
def _node_flags() -> tuple[str, ...]:
    return tuple(json.loads(_NODE_FLAGS.read_bytes())) if _NODE_FLAGS.is_file() else ()
