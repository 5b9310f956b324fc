"""Rlimits for a sandbox: the evaluator's limits, plus what the runner or gVisor itself needs.

An evaluator may have `SandboxSpec.processes` processes and threads, but the kernel counts the runner's own too
(cgroup `pids.max`, Docker's `PidsLimit`). Both backends add the same number for the runner, so that an evaluator gets
the same with either backend.
"""

import platform
import re
import resource
from typing import Final

from evaluator_host.types.evaluator import Language, SandboxSpec

# RLIMIT_DATA counts memory that is reserved but never used: thread stacks, arenas, and 512 MB for V8's machine code. So
# this many MB are added to the limit: with Node in the sandbox (True), and without (False).
_DATA_MARGIN_MB: Final = {True: 1024, False: 256}
# from this Linux version on, RLIMIT_NPROC counts only the processes in the sandbox; older kernels count all of the
# user's
_NPROC_PER_NAMESPACE: Final = (5, 14)
_MB: Final = 1024 * 1024

# Processes of the runner itself: 1 is for the supervisor (process 1, which reads and writes the channel), 1 for the
# loaded process that forks the rows, and 1 for the row's own first process. The rest is for a new loaded process that
# starts while the old one is still ending, and for processes that are reaped late. CPython itself does not start
# threads.
PYTHON_PROCESSES: Final = 8
# Node 24 starts 1 main thread + 4 V8 platform workers + 1 delayed-task scheduler + 1 signal inspector and, when first
# needed, 4 libuv pool threads: 11. A supervisor next to a row process doubles that; esbuild (a Go program) adds 8 to 10
# threads on two cores while a script is bundled.
JAVASCRIPT_PROCESSES: Final = 32
# gVisor's own kernel runs inside the container's cgroup and is a Go program. With room for 64 processes in all, three
# of four sandboxes died while they started. With room for 128, none did (measured with runsc 2022-12-19).
GVISOR_PROCESSES: Final = 128
# gVisor's kernel takes 30 to 50 MB for itself.
GVISOR_MEMORY_MB: Final = 64
# Number of descriptors that a guest may hold, as many as in a login session of Debian. If a row leaks descriptors, only
# this row fails.
NOFILE: Final = 1024


def is_gvisor(runtime: str | None) -> bool:
    """Return whether an OCI runtime with this name is gVisor.

    gVisor is `runsc`; operators may name variants `runsc-kvm` or `runsc-rootless`.
    """
    return runtime is not None and runtime.startswith("runsc")


def process_limit(language: Language, processes: int) -> int:
    """Return the process limit to set in the kernel for an evaluator with `processes` processes and threads."""
    own = PYTHON_PROCESSES if language is Language.PYTHON else JAVASCRIPT_PROCESSES
    return processes + own


def sandbox_rlimits(spec: SandboxSpec, *, memory: bool, own_user: bool, node: bool = False) -> dict[int, int]:
    """Return the rlimits of a sandbox's first process, by `resource.RLIMIT_…`; all other processes inherit them.

    Args:
      spec: Spec of the sandbox.
      memory: Whether to limit memory too; needed if no cgroup limits memory.
      own_user: Whether no process outside the sandbox has the guest's user.
      node: Whether a sandbox for Python has Node too.
    """
    limits = {
        # 1, not 0: with 0, the kernel would still start the program that kernel.core_pattern names after `|`
        resource.RLIMIT_CORE: 1,
        resource.RLIMIT_NOFILE: NOFILE,
        resource.RLIMIT_MEMLOCK: 64 * 1024,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_NICE: 0,
    }
    if own_user or _kernel() >= _NPROC_PER_NAMESPACE:
        limits[resource.RLIMIT_NPROC] = process_limit(spec.language, spec.processes)
    if memory:
        margin = _DATA_MARGIN_MB[node or spec.language is not Language.PYTHON]
        limits[resource.RLIMIT_DATA] = (spec.memory_mb + margin) * _MB
    return limits


def lower_rlimit(pid: int, kind: int, value: int) -> None:
    """Set an rlimit of a process to `value`, or to the hard limit if that is lower; `kind` is `resource.RLIMIT_…`.

    Raises:
      ProcessLookupError: the process has ended.
    """
    hard = resource.prlimit(pid, kind)[1]
    lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.prlimit(pid, kind, (lowest, lowest))


def _kernel() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", platform.release())[:2])
