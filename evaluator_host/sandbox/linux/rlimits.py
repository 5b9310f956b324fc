"""Resource limits of a process that has just started; it cannot raise them, and all that it starts inherits them."""

import contextlib
import platform
import re
import resource
from typing import Final

from evaluator_host.model.evaluator import Language, SandboxSpec
from evaluator_host.sandbox.linux.overhead import NOFILE, process_limit

# RLIMIT_DATA counts what is reserved, not what is touched: thread stacks, arenas, and 512 MB for V8's machine code.
_DATA_MARGIN_MB: Final = {True: 256, False: 1024}  # by whether it is Python
_NPROC_PER_NAMESPACE: Final = (5, 14)  # older kernels count all processes of the user on the machine
_MB: Final = 1024 * 1024


def limit_sandbox(pid: int, spec: SandboxSpec, *, memory: bool, own_user: bool) -> None:
    """Set the limits of a sandbox's first process, before it starts any other.

    Args:
      pid: The first process.
      spec: Of the sandbox.
      memory: Limit memory too, because no cgroup does.
      own_user: The guest's user has no processes outside the sandbox.
    """
    limits = {
        resource.RLIMIT_CORE: 1,  # 1 rather than 0: 0 would still start a `|program` of kernel.core_pattern
        resource.RLIMIT_NOFILE: NOFILE,
        resource.RLIMIT_MEMLOCK: 64 * 1024,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_NICE: 0,
    }
    if own_user or _kernel() >= _NPROC_PER_NAMESPACE:
        limits[resource.RLIMIT_NPROC] = process_limit(spec.language, spec.processes)
    if memory:
        margin = _DATA_MARGIN_MB[spec.language is Language.PYTHON]
        limits[resource.RLIMIT_DATA] = (spec.memory_mb + margin) * _MB
    for kind, value in limits.items():
        with contextlib.suppress(OSError, ValueError):  # it has ended, or the host itself has less
            lower_rlimit(pid, kind, value)


def lower_rlimit(pid: int, kind: int, value: int) -> None:
    """Set one limit (`resource.RLIMIT_…`), or the process's own hard limit where that is lower.

    Raises:
      ProcessLookupError: the process has ended.
    """
    hard = resource.prlimit(pid, kind)[1]
    lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.prlimit(pid, kind, (lowest, lowest))


def _kernel() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", platform.release())[:2])
