"""Who a sandbox's guest is on this machine, and the resource limits of its processes that no cgroup sets."""

import contextlib
import os
import platform
import random
import re
import resource
from pathlib import Path
from typing import Final

from evaluator_host.model.evaluator import Language, SandboxSpec
from evaluator_host.sandbox.bubblewrap.policy import NOBODY, Identity
from evaluator_host.sandbox.linux.overhead import NOFILE, process_limit

# Far above the users of distributions, containers and systemd (which takes up to 1,879,048,191).
_UIDS: Final = range(1_900_000_000, 2_147_000_000)
_FEW_UIDS: Final = range(20_000, 60_000)  # in a container whose user namespace has only 65,536
# RLIMIT_DATA counts what is reserved, not what is touched: thread stacks, arenas, and 512 MB for V8's machine code.
_DATA_MARGIN_MB: Final = {True: 256, False: 1024}  # by whether it is Python
_NPROC_PER_NAMESPACE: Final = (5, 14)  # before, it counted all processes of the user on the machine
_MB: Final = 1024 * 1024


def choose_identity() -> Identity:
    """Return who the next guest is: nobody in a user namespace, or for root a user that nobody else has."""
    if os.geteuid() != 0:
        return Identity()
    # At random from 247 million: two sandboxes that share one would still not see each other.
    mapped = Path("/proc/self/uid_map").read_text()
    for uids in (_UIDS, _FEW_UIDS):
        if _covers(mapped, uids):
            return Identity(random.choice(uids), drop=True)  # noqa: S311 - not a secret
    return Identity(NOBODY, drop=True)


def limit_process(pid: int, spec: SandboxSpec, *, memory: bool, own_user: bool) -> None:
    """Set the limits of a sandbox's first process before it starts any other, which inherits them.

    Args:
      pid: The first process.
      spec: Of the sandbox.
      memory: No cgroup limits memory.
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
    for kind, wanted in limits.items():
        with contextlib.suppress(OSError, ValueError):  # gone already, or the host itself has less
            hard = resource.prlimit(pid, kind)[1]
            value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.prlimit(pid, kind, (value, value))


def _covers(uid_map: str, uids: range) -> bool:
    for line in uid_map.splitlines():
        first, _, count = map(int, line.split())
        if first <= uids.start and uids.stop <= first + count:
            return True
    return False


def _kernel() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", platform.release())[:2])
