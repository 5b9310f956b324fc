"""How Python attacks make system calls by number, on either processor; results are what a filter did not stop."""

import textwrap
from typing import Any, Final

from evaluator_host.selftest.attack import Attack, Expected, Group, Guard, python

FILTER: Final = "the seccomp filter answers EPERM (or: no such call) before the kernel looks at the arguments"
FILTER_AND_RIGHTS: Final = (Guard.SECCOMP, Guard.CAPABILITIES)
"""What is stopped twice."""

_CALLS: Final = '''
import ctypes, errno, os, platform

libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"

def call(x86, arm, *arguments):
    """Return what a system call comes to: a number, or the name of its error."""
    number = x86 if X86 else arm
    if number is None:
        return "EPERM"
    wide = (ctypes.c_long(one) if isinstance(one, int) else one for one in arguments)
    answer = libc.syscall(ctypes.c_long(number), *wide)
    return errno.errorcode.get(ctypes.get_errno(), "?") if answer == -1 else answer

def allowed(*answers):
    """Return those that a filter did not stop: also an error says that the kernel has looked at the arguments."""
    return [answer for answer in answers if answer not in ("EPERM", "ENOSYS")]
'''


def calls(name: str, body: str, *expected: Expected, **details: Any) -> Attack:
    """A program whose `attack` has this body; by default the filter alone stops it."""
    program = _CALLS + "\ndef attack(inputs):\n" + textwrap.indent(body.strip("\n"), "    ")
    return python(name, Group.KERNEL, program, *expected, **{"why": FILTER, "without": Guard.SECCOMP, **details})
