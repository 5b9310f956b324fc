"""Compiles the system call policy (sandbox_images/seccomp.json) to the BPF program that the kernel runs.

Both backends enforce the same file, a seccomp profile in Docker's format. Docker reads the file itself; bubblewrap
reads the program that `compile_policy` returns. The compiler supports only the part of the format that the policy uses.
The compiler refuses everything else, so that no rule is ignored.
"""

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evaluator_host.engine.config import settings as config
from evaluator_host.types.errors import SandboxUnavailable

MAX_INSTRUCTIONS: Final = 4096  # the kernel's limit, BPF_MAXINSNS

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

# Offsets in struct seccomp_data: nr, arch, instruction pointer (8 bytes), six arguments of 8 bytes; little-endian on
# both processors.
_NR_OFFSET: Final = 0
_ARCH_OFFSET: Final = 4
_ARGS_OFFSET: Final = 16

_NO_UNIX_SOCKETS: Final = (
    {
        "names": ["socket"],
        "action": "SCMP_ACT_ERRNO",
        "errnoRet": 97,
        "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}],
    },
    {
        "names": ["socketpair"],  # forbids pairs of datagram sockets, which can connect to other sockets
        "action": "SCMP_ACT_ERRNO",
        "errnoRet": 97,
        "args": [{"index": 1, "value": 15, "valueTwo": 2, "op": "SCMP_CMP_MASKED_EQ"}],
    },
)

_NEWEST_REVIEWED: Final = 469  # file_setattr, Linux 6.17; later calls are forbidden, because nobody has reviewed them


@dataclass(frozen=True, slots=True)
class _Processor:
    column: int
    audit_arch: int


_PROCESSORS: Final = {"x86_64": _Processor(0, 0xC000003E), "aarch64": _Processor(1, 0xC00000B7)}

_Instruction = tuple[int, int, int, int]  # opcode, jump if true, jump if false, operand


class UnknownPolicy(ValueError):
    """The policy file contains something that this compiler does not support."""


def without_unix_sockets(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy without Unix sockets.

    This policy is for sandboxes in the host's network: with Unix sockets, they could reach the host's abstract sockets.

    Stream socket pairs stay allowed, because they connect to nothing else.
    """
    return {**policy, "syscalls": [*policy["syscalls"], *_NO_UNIX_SOCKETS]}


def read_policy() -> dict[str, Any]:
    """Return the policy of `sandbox_images/seccomp.json`. Without this policy, no sandbox may start.

    Raises:
      SandboxUnavailable: the file is missing, or is not a policy of this version.
    """
    path = config.SANDBOX_IMAGES_DIR / "seccomp.json"
    try:
        policy: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        compile_policy(policy, next(iter(_PROCESSORS)))
    except (OSError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise SandboxUnavailable(
            f"the system call policy {path} cannot be used ({error!r}); no sandbox starts without it: "
            "reinstall Evaluator Host"
        ) from error
    return policy


def compile_policy(policy: Mapping[str, Any], machine: str) -> bytes:
    """Return the BPF program (struct sock_filter[]) of a policy, for `--seccomp` of bubblewrap.

    A system call of another architecture kills the process; x32 calls and calls newer than this module fail with "no
    such call".

    Args:
      policy: Decoded JSON in the shape of Docker's profiles; `defaultAction` allows, the rules forbid.
      machine: As `platform.machine()` returns it: `x86_64` or `aarch64`.

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
        raise UnknownPolicy(f"the filter has {len(program)} instructions; the maximum is {MAX_INSTRUCTIONS}")
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _prologue(processor: _Processor) -> Iterator[_Instruction]:
    yield (_LOAD, 0, 0, _ARCH_OFFSET)
    yield (_JEQ, 1, 0, processor.audit_arch)
    yield (_RETURN, 0, 0, _KILL_PROCESS)
    yield (_LOAD, 0, 0, _NR_OFFSET)
    yield (_JGT, 0, 1, _NEWEST_REVIEWED)  # x32 calls count as newer calls, because their numbers have bit 30 set
    yield (_RETURN, 0, 0, _ERRNO | _ENOSYS)


def _rule(rule: Mapping[str, Any], processor: _Processor) -> list[_Instruction]:
    if rule.get("action") != "SCMP_ACT_ERRNO":
        raise UnknownPolicy(f"unknown action {rule.get('action')!r} for {rule.get('names')}")
    verdict: _Instruction = (_RETURN, 0, 0, _ERRNO | int(rule["errnoRet"]))
    checks = [_comparison(argument) for argument in rule.get("args", ())]
    if len(checks) > 1:
        raise UnknownPolicy(
            "a rule may compare only one argument: engines combine conditions on several arguments in different ways"
        )
    program: list[_Instruction] = []
    for name in rule["names"]:
        number = _number(name, processor)
        if number is not None:
            body = [*(checks[0] if checks else ()), verdict]
            # after a mismatch the program continues here: load the call's number again, because the comparison replaced
            # it
            if checks:
                body.append((_LOAD, 0, 0, _NR_OFFSET))
            program += [(_JEQ, 0, len(body), number), *body]
    return program


def _number(name: str, processor: _Processor) -> int | None:
    if name not in SYSCALL_NUMBERS:
        raise UnknownPolicy(f"unknown system call {name!r}")
    return SYSCALL_NUMBERS[name][processor.column]


def _comparison(argument: Mapping[str, Any]) -> list[_Instruction]:
    """Return instructions that compare an argument, and that skip the next instruction if it does not match."""
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

SYSCALL_NUMBERS: Final[dict[str, tuple[int | None, int | None]]] = json.loads(
    (config.SANDBOX_IMAGES_DIR / "syscalls.json").read_bytes()
)
"""System call numbers by name: (x86_64, aarch64), as in the kernel's headers; None where a processor lacks the call."""
