"""The sandboxes of several hosts get fair parts of the processor, compared with each other and with an ordinary
process.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from evaluator_host.engine.sandbox.linux.cgroup_discovery import find_cgroups
from evaluator_host.engine.sandbox.linux.cgroups import CPU, Cgroups
from evaluator_host.engine.sandbox.linux.instance import this_instance
from tests.processes import own_seconds

MEASURED_S = 1.5  # seconds of processor time; the clock time may be longer


@contextmanager
def host_folder(number: int) -> Iterator[Cgroups]:
    """Make the cgroup folders of a host; hosts with different numbers have different folders."""
    made = find_cgroups(f"{this_instance()}.9{number}")
    assert made is not None
    assert CPU in made.controllers, "the machine must allow a CPU weight for cgroups"
    try:
        yield made
    finally:
        made.close()


def spin(stack: ExitStack, cpu: int) -> "subprocess.Popen[bytes]":
    """Start a process that computes forever on one processor."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"],
        # a separate session, because the kernel may give all processes of a session one common weight
        start_new_session=True,
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def guest(stack: ExitStack, host: Cgroups, cpu: int) -> "subprocess.Popen[bytes]":
    """Start a process that computes forever, in the cgroup of a host's sandbox."""
    group = host.create(f"guest-{time.monotonic_ns()}", memory_mb=128, processes=10)
    stack.callback(group.remove)
    process = spin(stack, cpu)
    group.add_process(process.pid)
    return process


def test_a_busy_neighbour_takes_no_weight_from_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    affinity = os.sched_getaffinity
    cpu = max(affinity(0))
    # pretend that the machine has two processors: then all sandboxes of a host together weigh as much as one process
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with host_folder(1) as one, host_folder(2) as two, ExitStack() as stack:
        ordinary, alone = spin(stack, cpu), guest(stack, one, cpu)
        flood = [guest(stack, two, cpu) for _ in range(6)]
        everyone = [ordinary, alone, *flood]
        # each process sets its processor before it begins to compute
        while any(affinity(process.pid) != {cpu} for process in everyone):
            time.sleep(0.01)
        before = {process.pid: own_seconds(process.pid) for process in everyone}
        while sum(own_seconds(process.pid) - before[process.pid] for process in everyone) < MEASURED_S:
            time.sleep(0.05)
        spent = {process.pid: own_seconds(process.pid) - before[process.pid] for process in everyone}
    mine, neighbours = spent[alone.pid], sum(spent[process.pid] for process in flood)
    assert mine > 0.7 * spent[ordinary.pid], "one busy sandbox must get as much as an ordinary process"
    assert mine > 0.7 * neighbours, "this host's sandbox must get as much as six sandboxes of a neighbour"
    assert spent[ordinary.pid] > 0.7 * neighbours, "all sandboxes together must get no more than one process"
