"""Compiles the system call policy (sandbox_images/seccomp.json) to the BPF program that the kernel runs.

Both backends enforce the same file, a seccomp profile in Docker's format: Docker reads the file itself, bubblewrap the
program that `compile_policy` returns. The compiler knows only the part of the format that the policy uses, and raises
an error for anything else, so that no rule is silently without effect.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_INSTRUCTIONS: Final = 4096  # BPF_MAXINSNS

# Opcodes (linux/bpf_common.h): class | size or operation | source.
_LOAD: Final = 0x20  # A = the 32-bit word at offset k of struct seccomp_data
_AND: Final = 0x54  # A &= k
_JEQ: Final = 0x15
_JGT: Final = 0x25
_RETURN: Final = 0x06

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_KILL_PROCESS: Final = 0x80000000
_ENOSYS: Final = 38

# struct seccomp_data: nr, arch, instruction pointer (8 bytes), six arguments of 8 bytes; little-endian on both.
_NR_OFFSET: Final = 0
_ARCH_OFFSET: Final = 4
_ARGS_OFFSET: Final = 16

_NO_UNIX_SOCKETS: Final = {
    "names": ["socket"],
    "action": "SCMP_ACT_ERRNO",
    "errnoRet": 97,
    "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}],
}

_NEWEST_REVIEWED: Final = 469  # file_setattr, Linux 6.17: guests may not use later calls, which nobody has reviewed


@dataclass(frozen=True, slots=True)
class _Processor:
    column: int
    audit_arch: int


_PROCESSORS: Final = {"x86_64": _Processor(0, 0xC000003E), "aarch64": _Processor(1, 0xC00000B7)}

_Instruction = tuple[int, int, int, int]  # opcode, jump if true, jump if false, operand


class UnknownPolicy(ValueError):
    """The policy file uses a part of the format that this compiler does not know."""


def without_unix_sockets(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy of a guest in the host's network: it may make no Unix socket, which reaches abstract ones.

    Socket pairs stay allowed; they connect to nothing else.
    """
    return {**policy, "syscalls": [*policy["syscalls"], _NO_UNIX_SOCKETS]}


def compile_policy(policy: Mapping[str, Any], machine: str) -> bytes:
    """Return the BPF program (struct sock_filter[]) of a policy, for `--seccomp` of bubblewrap.

    Calls of another architecture kill the process; x32 calls and calls newer than this module answer "no such call".

    Args:
      policy: Decoded JSON in the shape of Docker's profiles; `defaultAction` allows, the rules forbid.
      machine: As `platform.machine()` says: `x86_64` or `aarch64`.

    Raises:
      UnknownPolicy: the machine, an action, a comparison or a system call's name is not known.
    """
    processor = _PROCESSORS.get(machine)
    if processor is None:
        raise UnknownPolicy(f"no seccomp filter for {machine}, only for {', '.join(_PROCESSORS)}")
    if policy.get("defaultAction") != "SCMP_ACT_ALLOW":
        raise UnknownPolicy("the policy must allow by default: it is a deny list")
    program = [*_prologue(processor)]
    for rule in policy["syscalls"]:
        program += _rule(rule, processor)
    program.append((_RETURN, 0, 0, _ALLOW))
    if len(program) > MAX_INSTRUCTIONS:
        raise UnknownPolicy(f"the filter has {len(program)} instructions, the kernel takes {MAX_INSTRUCTIONS}")
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _prologue(processor: _Processor) -> Iterator[_Instruction]:
    yield (_LOAD, 0, 0, _ARCH_OFFSET)
    yield (_JEQ, 1, 0, processor.audit_arch)
    yield (_RETURN, 0, 0, _KILL_PROCESS)
    yield (_LOAD, 0, 0, _NR_OFFSET)
    yield (_JGT, 0, 1, _NEWEST_REVIEWED)  # x32 calls too: they have bit 30 set
    yield (_RETURN, 0, 0, _ERRNO | _ENOSYS)


def _rule(rule: Mapping[str, Any], processor: _Processor) -> list[_Instruction]:
    if rule.get("action") != "SCMP_ACT_ERRNO":
        raise UnknownPolicy(f"unknown action {rule.get('action')!r} for {rule.get('names')}")
    verdict: _Instruction = (_RETURN, 0, 0, _ERRNO | int(rule["errnoRet"]))
    checks = [_comparison(argument) for argument in rule.get("args", ())]
    if len(checks) > 1:
        raise UnknownPolicy("a rule compares one argument: conditions on several are joined differently by the engines")
    program: list[_Instruction] = []
    for name in rule["names"]:
        number = _number(name, processor)
        if number is not None:
            body = [*(checks[0] if checks else ()), verdict]
            if checks:  # the comparison overwrote the number in the accumulator; a mismatch falls through to here
                body.append((_LOAD, 0, 0, _NR_OFFSET))
            program += [(_JEQ, 0, len(body), number), *body]
    return program


def _number(name: str, processor: _Processor) -> int | None:
    if name not in SYSCALL_NUMBERS:
        raise UnknownPolicy(f"unknown system call {name!r}")
    return SYSCALL_NUMBERS[name][processor.column]


def _comparison(argument: Mapping[str, Any]) -> list[_Instruction]:
    """Return instructions that fall through when the argument matches and jump past the next instruction when not."""
    operation = str(argument["op"])
    if operation not in _COMPARISONS:
        raise UnknownPolicy(f"unknown comparison {operation!r}")
    low = _ARGS_OFFSET + 8 * int(argument["index"])
    return _COMPARISONS[operation](low, int(argument["value"]), int(argument.get("valueTwo", 0)))


def _split(value: int) -> tuple[int, int]:
    return value & 0xFFFFFFFF, value >> 32


def _equal(low: int, value: int, _second: int) -> list[_Instruction]:
    value_low, value_high = _split(value)
    return [
        (_LOAD, 0, 0, low + 4),
        (_JEQ, 0, 3, value_high),
        (_LOAD, 0, 0, low),
        (_JEQ, 0, 1, value_low),
    ]


def _not_equal(low: int, value: int, _second: int) -> list[_Instruction]:
    value_low, value_high = _split(value)
    return [
        (_LOAD, 0, 0, low + 4),
        (_JEQ, 0, 2, value_high),
        (_LOAD, 0, 0, low),
        (_JEQ, 1, 0, value_low),
    ]


def _greater(low: int, value: int, _second: int) -> list[_Instruction]:
    value_low, value_high = _split(value)
    return [
        (_LOAD, 0, 0, low + 4),
        (_JGT, 3, 0, value_high),
        (_JEQ, 0, 3, value_high),
        (_LOAD, 0, 0, low),
        (_JGT, 0, 1, value_low),
    ]


def _masked_equal(low: int, mask: int, value: int) -> list[_Instruction]:
    mask_low, mask_high = _split(mask)
    value_low, value_high = _split(value)
    return [
        (_LOAD, 0, 0, low + 4),
        (_AND, 0, 0, mask_high),
        (_JEQ, 0, 4, value_high),
        (_LOAD, 0, 0, low),
        (_AND, 0, 0, mask_low),
        (_JEQ, 0, 1, value_low),
    ]


_COMPARISONS: Final[dict[str, Callable[[int, int, int], list[_Instruction]]]] = {
    "SCMP_CMP_EQ": _equal,
    "SCMP_CMP_NE": _not_equal,
    "SCMP_CMP_GT": _greater,
    "SCMP_CMP_MASKED_EQ": _masked_equal,
}

SYSCALL_NUMBERS: Final[dict[str, tuple[int | None, int | None]]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "unshare": (272, 97),
    "setns": (308, 268),
    "clone": (56, 220),
    "clone3": (435, 435),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "create_module": (174, None),
    "get_kernel_syms": (177, None),
    "query_module": (178, None),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "prlimit64": (302, 261),
    "personality": (135, 92),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "ioctl": (16, 29),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184),
    "mq_getsetattr": (245, 185),
    "lookup_dcookie": (212, 18),
    "vhangup": (153, 58),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
    "set_mempolicy_home_node": (450, 450),
}
"""System call numbers by name: (x86_64, aarch64), as in the kernel's headers; None where a processor lacks the call."""
