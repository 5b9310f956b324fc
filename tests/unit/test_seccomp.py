"""The declared policy is compiled to a filter that decides as the policy says; a BPF interpreter in this file runs the
filter.
"""

import json
import struct

import pytest

from evaluator_host.engine.config import settings as config
from evaluator_host.engine.config.settings import SANDBOX_IMAGES_DIR
from evaluator_host.engine.sandbox.bubblewrap.seccomp import (
    MAX_INSTRUCTIONS,
    SYSCALL_NUMBERS,
    UnknownPolicy,
    compile_policy,
    read_policy,
    without_unix_sockets,
)
from evaluator_host.types.errors import SandboxUnavailable

POLICY = json.loads((SANDBOX_IMAGES_DIR / "seccomp.json").read_text())
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
I386, ARM = 0x40000003, 0x40000028
ALLOW, KILL, EPERM, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT = "allow", "kill", 1, 38, 97, 93


def decide(program: bytes, number: int, args: tuple[int, ...] = (), *, arch: int) -> str | int:
    """Run the filter on one system call, as the kernel's documentation of classic BPF describes."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *(*args, *[0] * (6 - len(args))))
    code = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    at = accumulator = 0
    while True:
        opcode, if_true, if_false, operand = code[at]
        at += 1
        match opcode:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, operand)
            case 0x54:
                accumulator &= operand
            case 0x15:
                at += if_true if accumulator == operand else if_false
            case 0x25:
                at += if_true if accumulator > operand else if_false
            case 0x06:
                return {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(operand, operand & 0xFFFF)
            case _:
                raise AssertionError(f"this interpreter does not know the opcode {opcode:#x}")


@pytest.fixture(params=sorted(MACHINES), name="ask")
def ask_fixture(request):
    column, arch = MACHINES[request.param]
    program = compile_policy(POLICY, request.param)

    def ask(name: str, *args: int) -> str | int:
        return decide(program, SYSCALL_NUMBERS[name][column], args, arch=arch)

    ask.number = lambda number: decide(program, number, arch=arch)
    ask.foreign = lambda: decide(program, 1, arch=ARM if request.param == "x86_64" else I386)
    ask.has = lambda name: SYSCALL_NUMBERS[name][column] is not None
    return ask


def test_fits_the_kernel_on_every_machine():
    for machine in MACHINES:
        assert 0 < len(compile_policy(POLICY, machine)) // 8 < MAX_INSTRUCTIONS


@pytest.mark.parametrize("machine", MACHINES)
def test_a_guest_with_network_gets_no_unix_socket_by_which_it_would_reach_the_hosts(machine):
    column, arch = MACHINES[machine]
    ordinary, connected = compile_policy(POLICY, machine), compile_policy(without_unix_sockets(POLICY), machine)

    def both(name: str, *args: int) -> tuple[str | int, str | int]:
        number = SYSCALL_NUMBERS[name][column]
        return decide(ordinary, number, args, arch=arch), decide(connected, number, args, arch=arch)

    assert both("socket", 1, 1) == (ALLOW, EAFNOSUPPORT)
    assert both("socket", 2, 1) == both("socket", 10, 2) == both("socketpair", 1, 1) == (ALLOW, ALLOW)
    assert both("socket", 16, 3) == (EAFNOSUPPORT, EAFNOSUPPORT)
    assert both("socketpair", 1, 2 | 0o2000000) == (ALLOW, EAFNOSUPPORT), (
        "a pair of datagram sockets must be refused, because they could connect to other sockets"
    )


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"defaultAction": "SCMP_ACT_ALLOW"}', '{"syscalls": 1}'])
def test_without_a_policy_no_backend_starts_a_sandbox(content, tmp_path, monkeypatch):
    if content is not None:
        (tmp_path / "seccomp.json").write_text(content)
    monkeypatch.setattr(config, "SANDBOX_IMAGES_DIR", tmp_path)
    with pytest.raises(SandboxUnavailable, match="no sandbox starts without it"):
        read_policy()


def test_every_call_without_conditions_is_refused_with_its_error(ask):
    for rule in POLICY["syscalls"]:
        if "args" not in rule:
            for name in filter(ask.has, rule["names"]):
                assert ask(name) == rule["errnoRet"], name


@pytest.mark.parametrize("flag", [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000])
def test_clone_is_refused_with_any_namespace_flag(ask, flag):
    assert ask("clone", flag | 17) == EPERM
    assert ask("clone", 0x7E020000 | flag) == EPERM


def test_clone_of_threads_and_processes_is_allowed(ask):
    assert ask("clone", 0x3D0F00) == ALLOW  # pthread_create
    assert ask("clone", 17 | 0x1200000) == ALLOW  # fork: SIGCHLD, CHILD_SETTID, CHILD_CLEARTID


def test_clone3_does_not_exist_so_that_libc_falls_back(ask):
    assert ask("clone3") == ENOSYS


@pytest.mark.parametrize(
    ("family", "kind", "protocol", "answer"),
    [
        (1, 1, 0, ALLOW),  # AF_UNIX
        (2, 1 | 0o2000000, 6, ALLOW),  # AF_INET, SOCK_STREAM | SOCK_CLOEXEC
        (10, 2, 17, ALLOW),  # AF_INET6, SOCK_DGRAM
        (16, 3, 0, EAFNOSUPPORT),  # AF_NETLINK
        (17, 3, 0, EAFNOSUPPORT),  # AF_PACKET
        (38, 5, 0, EAFNOSUPPORT),  # AF_ALG
        (40, 1, 0, EAFNOSUPPORT),  # AF_VSOCK
        (3, 2, 0, EAFNOSUPPORT),  # AF_AX25
        (9, 2, 0, EAFNOSUPPORT),  # AF_X25
        (2 | 1 << 32, 1, 0, EAFNOSUPPORT),  # refused, because the kernel would read only the lower 32 bits
        (2, 3, 1, EPERM),  # SOCK_RAW
        (2, 3 | 0o4000, 1, EPERM),  # SOCK_RAW | SOCK_NONBLOCK
        (2, 10, 0, EPERM),  # SOCK_PACKET
        (2, 1, 132, EPROTONOSUPPORT),  # SCTP
        (10, 2, 115, EPROTONOSUPPORT),  # L2TP
    ],
)
def test_sockets_by_family_kind_and_protocol(ask, family, kind, protocol, answer):
    assert ask("socket", family, kind, protocol) == answer


def test_terminal_injection_is_refused_whatever_the_upper_half_of_the_argument(ask):
    for command in (0x5412, 0x541C):
        assert ask("ioctl", 0, command) == EPERM
        assert ask("ioctl", 0, command | 1 << 32) == EPERM
    assert ask("ioctl", 0, 0x5413) == ALLOW  # TIOCGWINSZ


def test_nobody_watches_or_leases_the_files_that_all_sandboxes_share(ask):
    for name in filter(ask.has, ("inotify_init", "inotify_init1", "inotify_add_watch")):
        assert ask(name) == ENOSYS
    for command in (1024, 1026, 1040):  # F_SETLEASE, F_NOTIFY, F_SETDELEG
        assert ask("fcntl", 3, command) == EPERM
        assert ask("fcntl", 3, command | 1 << 32) == EPERM
    for command in (0, 1, 2, 3, 4, 6, 1030, 1031):  # duplicates, flags, locks, F_DUPFD_CLOEXEC, F_SETPIPE_SZ
        assert ask("fcntl", 3, command) == ALLOW


@pytest.mark.parametrize("name", ["sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity"])
def test_a_process_schedules_itself_only(ask, name):
    assert ask(name, 0) == ALLOW
    assert ask(name, 1) == ask(name, 4711) == EPERM


def test_a_process_sets_its_own_priority_only(ask):
    assert ask("setpriority", 0, 0, 19) == ask("ioprio_set", 1, 0) == ALLOW
    assert ask("setpriority", 0, 1, 19) == ask("ioprio_set", 1, 1) == EPERM
    assert ask("setpriority", 2, 0, 19) == ask("ioprio_set", 3, 0) == EPERM, (
        "this call must be refused, because it would change all processes of the user"
    )


def test_personality_may_only_be_asked_for(ask):
    assert ask("personality", 0xFFFFFFFF) == ALLOW
    assert ask("personality", 0x0040000) == EPERM
    assert ask("personality", 0) == EPERM


def test_another_architecture_is_killed_and_unknown_calls_do_not_exist(ask):
    assert ask.foreign() == KILL
    assert ask.number(469) == ALLOW
    assert ask.number(470) == ENOSYS
    assert ask.number(0x40000000 | 59) == ENOSYS  # x32


def test_calls_that_every_program_needs_are_allowed():
    program = compile_policy(POLICY, "x86_64")
    for number in (0, 1, 3, 9, 10, 11, 13, 57, 58, 59, 60, 61, 105, 117, 202, 231, 257, 302, 318, 334):
        assert decide(program, number, arch=0xC000003E) == ALLOW, number


@pytest.mark.parametrize(
    "change",
    [
        {"defaultAction": "SCMP_ACT_ERRNO"},
        {"syscalls": [{"names": ["mount"], "action": "SCMP_ACT_LOG"}]},
        {"syscalls": [{"names": ["no_such_call"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]},
        {
            "syscalls": [
                {
                    "names": ["socket"],
                    "action": "SCMP_ACT_ERRNO",
                    "errnoRet": 1,
                    "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_LE"}],
                }
            ]
        },
        {
            "syscalls": [
                {
                    "names": ["socket"],
                    "action": "SCMP_ACT_ERRNO",
                    "errnoRet": 1,
                    "args": [{"index": i, "value": 1, "op": "SCMP_CMP_EQ"} for i in (0, 1)],
                }
            ]
        },
    ],
)
def test_a_policy_that_is_not_understood_is_an_error(change):
    with pytest.raises(UnknownPolicy):
        compile_policy({**POLICY, **change}, "x86_64")


def test_a_machine_without_a_table_is_an_error():
    with pytest.raises(UnknownPolicy, match="riscv64"):
        compile_policy(POLICY, "riscv64")


def test_names_every_call_once_per_processor():
    for column in (0, 1):
        numbers = [pair[column] for pair in SYSCALL_NUMBERS.values() if pair[column] is not None]
        assert len(numbers) == len(set(numbers))
