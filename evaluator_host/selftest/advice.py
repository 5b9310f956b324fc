"""What an operator is told to do about an attack that got through, by the guard that should have stopped it."""

from typing import Final

from evaluator_host.selftest.attack import Attack, Guard

_RUNNER: Final = (
    "the runner in the sandbox is not the one of this version: install Evaluator Host anew, and on docker run "
    "`evaluator-host images build`"
)
_LIMITS: Final = (
    "grant the host cgroups with memory and pids (systemd: Delegate=yes), or use docker; `evaluator-host doctor` says "
    "which limits are in force"
)
_OTHERWISE: Final = "serve nobody you do not trust from this host, and report it as SECURITY.md says"

_BY_GUARD: Final[dict[Guard, str]] = {
    Guard.NETWORK: "sandboxes have a network: look for an engine, wrapper or OCI hook that adds one to containers",
    Guard.ROOT: "sandboxes see files of this machine: look for an engine or OCI hook that mounts into containers",
    Guard.READ_ONLY: "sandboxes can write to their root: look for a runtime that ignores a read-only root",
    Guard.PROC: "sandboxes see processes of this machine: look for a runtime that shares the pid namespace",
    Guard.IPC: "sandboxes share IPC objects: look for a runtime that shares the ipc namespace",
    Guard.SECCOMP: "the seccomp filter is not in force: use a kernel, engine and runtime with seccomp",
    Guard.CAPABILITIES: "the guest has rights: look for an engine that adds capabilities or ignores the user",
    Guard.ENVIRONMENT: "the host's environment reaches sandboxes: look for an engine or wrapper that passes it on",
    Guard.MEMORY: _LIMITS,
    Guard.PROCESSES: _LIMITS,
    Guard.DISK: "sandboxes may write without limit: look for a runtime that ignores the size of a tmpfs",
}


def advice(attack: Attack) -> str:
    """Return what to do when this attack got through."""
    known = [_BY_GUARD[guard] for guard in sorted(attack.without) if guard in _BY_GUARD]
    return "; ".join([known[0] if known else _RUNNER, _OTHERWISE])
