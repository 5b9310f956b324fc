"""Python attacks on rights: to be somebody else, to administer the machine, to shake off limits and filter."""

from typing import Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import NOTHING, Attack, Guard, fails
from evaluator_host.selftest.python_calls import FILTER_AND_RIGHTS, calls

_NOBODY: Final = "the guest is an unprivileged user without capabilities who can gain none"

ATTACKS: Final[tuple[Attack, ...]] = (
    calls(
        "become-somebody",
        """
found = []
for change in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgroups([0]),
               lambda: os.setreuid(1, 1)):
    try:
        change()
        found.append("changed")
    except OSError:
        pass
return found
""",
        why=_NOBODY,
        without=Guard.CAPABILITIES,
    ),
    calls(
        "capabilities-and-new-privileges",
        """
fields = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
found = [name for name in ("CapPrm", "CapEff", "CapAmb") if int(fields[name], 16)]
return found + (["NoNewPrivs"] if fields["NoNewPrivs"] != "1" else []) + (["uid 0"] if os.getuid() == 0 else [])
""",
        why=_NOBODY,
        without=Guard.CAPABILITIES,
    ),
    calls(
        "no-filter",
        """
return "Seccomp:\\t2" not in open("/proc/self/status").read()
""",
        why="the filter is in force for every process of the sandbox",
    ),
    calls(
        "programs-that-lend-rights",
        """
import stat
found = []
for folder, folders, files in os.walk("/"):
    if folder == "/":
        folders[:] = [name for name in folders if name not in ("proc", "sys")]
    for name in files:
        mode = os.lstat(f"{folder}/{name}").st_mode
        if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
            found.append(f"{folder}/{name}")
return found if "NoNewPrivs:\\t0" in open("/proc/self/status").read() else None
""",
        why="no new privileges: a set-uid program, should the host's libraries hold one, runs as the guest",
        without=(),
        seen="run outside any sandbox it names mount, passwd and su",
    ),
    calls(
        "raise-limits",
        """
import resource
found = []
for kind in (resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_CORE):
    soft, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        try:
            resource.setrlimit(kind, (hard + 1, hard + 1))
            found.append(kind)
        except (OSError, ValueError):
            pass
try:
    os.nice(-5)
    found.append("nice")
except OSError:
    pass
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    found.append("real time")
except OSError:
    pass
return found
""",
        why=_NOBODY,
        without=Guard.CAPABILITIES,
    ),
    calls(
        "administration",
        """
return allowed(
    call(175, 105, 0, 0, b""), call(313, 273, -1, b"", 0), call(176, 106, b"no-such-module", 0),
    call(246, 104, 0, 0, 0, 0), call(320, 294, -1, -1, 0, 0, 0), call(169, 142, 0, 0, 0, 0),
    call(167, 224, b"/nowhere", 0), call(168, 225, b"/nowhere"), call(163, 89, b"/nowhere"),
    call(170, 161, b"x", 1), call(171, 162, b"x", 1), call(103, 116, 10, 0, 0), call(153, 58),
)
""",
        why="no capability, and a filter",
        without=FILTER_AND_RIGHTS,
    ),
    calls("hardware", "return allowed(call(172, None, 3), call(173, None, 0, 1, 1), call(154, None, 1, 0, 0))"),
    calls("watch-the-machine", "return allowed(call(300, 262, 0x200, 0), call(103, 116, 3, 0, 0))"),
    calls(
        "calls-of-another-kind",
        """
return allowed(*(call(number, 470) for number in (0x40000000 + 39, 0x40000000 + 101, 470, 600)))
""",
        NOTHING,
        fails(ErrorCode.CRASHED, mentions="SIGSYS"),  # Docker's filter kills what is of another architecture
        why="x32 calls and calls newer than the policy do not exist",
        without=(),
        seen="the kernels of today have none of them either; tests/unit/test_seccomp.py asks the filter itself",
    ),
    calls(
        "type-into-a-terminal",
        """
import fcntl
try:
    fcntl.ioctl(0, 0x5412, b"x")
except PermissionError:
    return None
except OSError as error:
    return errno.errorcode[error.errno]
return "typed"
""",
    ),
    calls(
        "address-layout",
        """
return allowed(call(135, 92, 0x0040000), call(135, 92, 0x0400000))
""",
        why="the filter lets personality say what it is, and nothing else",
    ),
)
