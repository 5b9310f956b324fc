"""Tries every system call of the kernel from inside a sandbox: exactly the declared calls are refused.

This test reads the declaration (sandbox_images/seccomp.json) with its own code, and takes names and numbers from the
kernel's own tables (tests/fixtures/syscalls.json). From the same declaration, this project compiles the filter for
bubblewrap, and libseccomp the filter for Docker. A call that is not refused must have the same result as in a process
on this machine without a filter.
"""

import errno
import json
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.config.settings import SANDBOX_IMAGES_DIR
from evaluator_host.engine.sandbox.bubblewrap.seccomp import SYSCALL_NUMBERS
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Limits, Row
from tests.attacks.ordinary_host import evaluate_as_ordinary_user

FIXTURES = Path(__file__).parents[1] / "fixtures"
GUEST = (FIXTURES / "guests" / "system_calls.py").read_text()
TABLES: dict[str, dict[str, int]] = json.loads((FIXTURES / "syscalls.json").read_text())
POLICY: dict[str, Any] = json.loads((SANDBOX_IMAGES_DIR / "seccomp.json").read_text())

NUMBER = TABLES[platform.machine()]
NAME = {number: name for name, number in NUMBER.items()}
NEWEST = max(NUMBER.values())
OLDEST_UNKNOWN_TO_LIBSECCOMP = 451  # Docker's libseccomp may be years older than the kernel; see docs/sandbox.md
X32 = 1 << 30
WAITS = ("pause", "sync")
PROCESSES = ("fork", "vfork", "clone")
ENOSYS, EPERM = 38, 1
# the call is refused, or the process is killed by the filter or by a kernel without this way to make calls
NOT_THERE = (ENOSYS, "signal 31", "signal 11")
ALL_ONES = (1 << 64) - 1
NAMESPACES = (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
SIGCHLD = 17

Call = tuple[str, int, tuple[int, ...]]  # the way in which the call is made, the call's number and its arguments
Outcome = int | str


def calls() -> list[Call]:
    """Return every system call number with harmless arguments. If a rule limits a call's arguments, also return it with
    values around the limits.
    """
    made = [(way(n), n, () if NAME.get(n) in PROCESSES else (ALL_ONES,) * 6) for n in range(NEWEST + 130)]
    made += [("plain", n, (0,) * 6) for name, n in NUMBER.items() if (name, n) in unconditional()]
    made += [(way(NUMBER[name]), NUMBER[name], arguments) for name, arguments in conditional()]
    if platform.machine() == "x86_64":
        made += [("plain", X32 | n, (ALL_ONES,) * 6) for n in (*range(0, NEWEST, 7), *range(512, 548))]
        # numbers of getpid, mount, ptrace, clone and unshare in the 32-bit table
        made += [("compat", n, ()) for n in (20, 21, 26, 120, 310)]
    return made


def way(number: int) -> str:
    forking = NAME.get(number) in PROCESSES and platform.machine() == "x86_64"
    return "forking" if forking else "plain"


def unconditional() -> set[tuple[str, int]]:
    return {(name, NUMBER[name]) for rule in POLICY["syscalls"] if "args" not in rule for name in rule["names"] if name in NUMBER}  # fmt: skip


def conditional() -> list[tuple[str, tuple[int, ...]]]:
    asked: list[tuple[str, tuple[int, ...]]] = [("clone", (flag | SIGCHLD,)) for flag in (0, *NAMESPACES)]
    asked += [("clone", (sum(NAMESPACES) | SIGCHLD,)), ("clone", (0x10000000 | 1 << 32 | SIGCHLD,))]
    asked += [(name, (family, 1, 0)) for name in ("socket", "socketpair") for family in (*range(48), 1 << 32 | 2)]
    asked += [("socket", (family, kind, 0)) for family in (1, 2, 10, 16, 17) for kind in (2, 3, 5, 10, 3 | 0o4000)]
    asked += [
        ("socket", (2, kind, protocol)) for kind in (1, 2) for protocol in (6, 17, 18, 33, 115, 132, 262, 1 << 32)
    ]
    asked += [("ioctl", (0, command | high)) for command in (0x5411, 0x5412, 0x541C) for high in (0, 1 << 32)]
    asked += [("personality", (value,)) for value in (0, 0x40000, 0xFFFFFFFE, 0xFFFFFFFF, 1 << 32 | 0xFFFFFFFF)]
    asked += [("fcntl", (ALL_ONES, command | high)) for command in (1024, 1026, 1030, 1040) for high in (0, 1 << 32)]
    for name in ("sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity"):
        asked += [(name, (pid,)) for pid in (0, 1, 1 << 32)]
    asked += [("setpriority", (which, who, 0)) for which in (0, 1, 2) for who in (0, 1)]
    asked += [("ioprio_set", (which, who, 0)) for which in (1, 2, 3) for who in (0, 1)]
    return asked


MATCHES = {
    "SCMP_CMP_EQ": lambda value, rule: value == rule["value"],
    "SCMP_CMP_NE": lambda value, rule: value != rule["value"],
    "SCMP_CMP_GT": lambda value, rule: value > rule["value"],
    "SCMP_CMP_MASKED_EQ": lambda value, rule: value & rule["value"] == rule["valueTwo"],
}


def declared(number: int, arguments: tuple[int, ...]) -> set[int]:
    """Return the error numbers with which a call may be refused according to the declaration. If several rules match, a
    sandbox may return the error of any of them.
    """
    padded = (*arguments, *[0] * 6)
    return {
        rule["errnoRet"]
        for rule in POLICY["syscalls"]
        if NAME.get(number) in rule["names"]
        and all(MATCHES[check["op"]](padded[check["index"]], check) for check in rule.get("args", ()))
    }


def question() -> dict[str, Any]:
    return {
        "calls": [[how, number, *arguments] for how, number, arguments in calls()],
        "waiters": [NUMBER[name] for name in WAITS if name in NUMBER],
    }


@cache
def without_a_filter() -> list[Outcome]:
    """Make all `calls()` in a process that has as few rights as a sandbox, but no filter; return the results."""
    script = (
        "import ctypes, json, os, sys\n"
        "asked = json.load(sys.stdin)\n"
        f"{GUEST}\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setresgid(*[65534] * 3); os.setresuid(*[65534] * 3)\n"
        "ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)\n"  # sets PR_SET_NO_NEW_PRIVS
        "print(json.dumps(evaluate(asked, None, None)['details']))\n"
    )
    command = [sys.executable, "-I", "-S", "-c", script]
    done = subprocess.run(command, input=json.dumps(question()), capture_output=True, text=True, timeout=60, check=True)
    outcomes: list[Outcome] = json.loads(done.stdout)
    return outcomes


def deviations(outcomes: list[Outcome], *, knows: int = NEWEST) -> list[str]:
    """Return every call that did not end as declared. `knows` is the highest call number for which the filter's
    compiler has a name.
    """
    assert len(outcomes) == len(calls())
    found = []
    for (how, number, arguments), outcome, free in zip(calls(), outcomes, without_a_filter(), strict=True):
        expected: set[Outcome] = set(declared(number, arguments)) or {free}
        if how == "compat" or number >= X32:
            expected = set(NOT_THERE)
        elif NAME.get(number) == "sync":
            expected = {0, "blocked"}  # the time of these calls depends on the machine's disks
        elif NAME.get(number) == "restart_syscall":
            expected |= {errno.EINTR}  # the result of a call that a signal interrupted
        elif number > knows:
            expected |= {free}
        if outcome not in expected:
            found.append(f"{how} {NAME.get(number, hex(number))}{arguments}: {outcome}, not {expected}")
    return found


@pytest.mark.long
async def test_the_filter_refuses_what_is_declared_and_nothing_else(service: Service) -> None:
    evaluator = Evaluator(GUEST, limits=Limits(timeout_s=100))
    result = await service.evaluate(evaluator, Row(inputs=question()))
    assert result.error is None
    assert isinstance(result.value, dict)
    docker = service.pool.backend.name == "docker"
    outcomes: list[Outcome] = result.value["details"]  # type: ignore[assignment]
    assert deviations(outcomes, knows=OLDEST_UNKNOWN_TO_LIBSECCOMP - 1 if docker else NEWEST) == []


@pytest.mark.long
async def test_the_filter_of_an_ordinary_user_does_the_same(tmp_path: Path) -> None:
    asked = {"code": GUEST, "language": "python", "inputs": question(), "timeout_s": 100}
    [result] = await evaluate_as_ordinary_user([asked], tmp_path)
    assert result["error"] is None
    assert deviations(result["value"]["details"]) == []


NEW_CALLS_IN_EARNEST = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def refused(number, *arguments):
    ctypes.set_errno(0)
    return ctypes.get_errno() if libc.syscall(number, *arguments) == -1 else 0
def evaluate(inputs, outputs, trace):
    here, clone = ctypes.c_long(-100), ctypes.c_uint(1)
    return {"score": 1, "details": refused(inputs["open_tree_attr"], here, b"/", clone, None, ctypes.c_size_t(0))}
"""


async def test_a_call_that_an_engine_cannot_name_gets_a_guest_no_mount(service: Service) -> None:
    result = await service.evaluate(Evaluator(NEW_CALLS_IN_EARNEST), Row(inputs=NUMBER))
    assert isinstance(result.value, dict), result.error
    assert result.value["details"] in (EPERM, ENOSYS)


@pytest.mark.parametrize(("column", "machine"), [(0, "x86_64"), (1, "aarch64")])
def test_the_numbers_are_the_kernels(column: int, machine: str) -> None:
    ours = {name: pair[column] for name, pair in SYSCALL_NUMBERS.items()}
    assert ours == {name: TABLES[machine].get(name) for name in ours}
    named = {name for rule in POLICY["syscalls"] for name in rule["names"]}
    assert named == set(ours)
