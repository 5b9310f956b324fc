"""Python attacks on the kernel: calls that reach other processes, make namespaces, or have a record of exploits."""

from typing import Final

from evaluator_host.selftest.attack import Attack
from evaluator_host.selftest.python_calls import FILTER_AND_RIGHTS, calls

ATTACKS: Final[tuple[Attack, ...]] = (
    calls(
        "ptrace",
        """
import signal
found = [call(101, 117, 0x4206, os.getppid(), 0, 0), call(101, 117, 16, 1, 0, 0)]
child = os.fork()
if child == 0:
    signal.pause()
return allowed(*found, call(101, 117, 0x4206, child, 0, 0))
""",
    ),
    calls(
        "read-memory-of-processes",
        """
size = ctypes.create_string_buffer(16)
return allowed(call(310, 270, os.getppid(), size, 1, size, 1, 0), call(311, 271, os.getppid(), size, 1, size, 1, 0))
""",
    ),
    calls(
        "take-descriptors-of-processes",
        """
own = os.pidfd_open(os.getpid())
return allowed(call(438, 438, own, 1, 0), call(312, 272, os.getpid(), os.getpid(), 0, 0, 0))
""",
    ),
    calls(
        "mount",
        """
os.mkdir("m")
found = [call(165, 40, b"none", b"/tmp/m", b"tmpfs", 0, 0)]
found.append(call(165, 40, b"/", b"/tmp/m", 0, 4096, 0))
return [answer for answer in found if answer == 0]
""",
        why="mounting takes CAP_SYS_ADMIN, and the filter has no mount",
        without=FILTER_AND_RIGHTS,
    ),
    calls(
        "mount-by-new-calls",
        """
return allowed(call(430, 430, b"tmpfs", 0), call(428, 428, -100, b"/", 1), call(442, 442, -1, b"", 0, 0, 0))
""",
        without=FILTER_AND_RIGHTS,
    ),
    calls(
        "unmount-and-remount",
        """
found = [call(166, 39, b"/proc", 2), call(166, 39, b"/opt/runner", 2), call(165, 40, b"none", b"/", 0, 32, 0)]
return [answer for answer in found if answer not in ("EPERM", "EINVAL", "ENOENT", "EBUSY")]
""",
        why="what is mounted stays as it is: no capability, and a filter",
        without=FILTER_AND_RIGHTS,
    ),
    calls(
        "chroot-and-pivot",
        """
os.mkdir("r")
return allowed(call(161, 51, b"/tmp/r"), call(155, 41, b"/tmp", b"/tmp/r"))
""",
        without=FILTER_AND_RIGHTS,
    ),
    calls(
        "unshare",
        """
found = []
for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000):
    pid = os.fork()
    if pid == 0:
        os._exit(7 if call(272, 97, flag) == 0 else 0)
    found.append(os.waitpid(pid, 0)[1])
return any(found)
""",
        why="no namespace can be made inside: by the filter, and by bubblewrap's --disable-userns",
        without=FILTER_AND_RIGHTS,
    ),
    calls(
        "clone-into-namespaces",
        """
found = []
for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000):
    answer = call(56, 220, flag | 17, 0, 0, 0, 0)
    if answer == 0:
        os._exit(0)
    found.append(isinstance(answer, int))
found.append(call(435, 435, 0, 0) != "ENOSYS")
return any(found)
""",
        why="the filter looks at the flags of clone, and has no clone3, whose flags it could not see",
    ),
    calls(
        "enter-namespaces",
        """
found = []
for name in ("mnt", "net", "user", "pid", "ipc", "uts", "cgroup"):
    try:
        descriptor = os.open(f"/proc/1/ns/{name}", os.O_RDONLY)
    except OSError:
        descriptor = os.open(f"/proc/self/ns/{name}", os.O_RDONLY)
    found.append(call(308, 268, descriptor, 0))
return allowed(*found)
""",
    ),
    calls("bpf", "return allowed(call(321, 280, 0, 0, 0), call(321, 280, 5, 0, 0))", without=FILTER_AND_RIGHTS),
    calls("perf-events", "return allowed(call(298, 241, 0, 0, -1, -1, 0))", without=FILTER_AND_RIGHTS),
    calls(
        "io-uring",
        "return allowed(call(425, 425, 1, 0), call(426, 426, -1, 0, 0, 0, 0, 0), call(427, 427, -1, 0, 0, 0))",
    ),
    calls("userfaultfd", "return allowed(call(323, 282, 1))"),
    calls(
        "keyrings",
        """
return allowed(
    call(248, 217, b"user", inputs["mark"].encode(), b"secret", 6, -4),
    call(250, 219, 0, -4, 0), call(249, 218, b"user", b"x", 0, -4),
)
""",
        why="keyrings belong to a user, not to a namespace: the filter has none",
    ),
    calls("hidden-memory", "return allowed(call(447, 447, 0), call(319, 279, b'x', 0))"),
    calls(
        "shared-objects-of-system-v",
        """
found = [call(29, 194, 0x6568, 4096, 0o1666), call(68, 186, 0x6568, 0o1666), call(64, 190, 0x6568, 1, 0o1666)]
for answer, destroy in zip(found, ((31, 195), (71, 187), (66, 191))):
    if isinstance(answer, int):
        call(*destroy, answer, 0, 0, 0)
return allowed(*found)
""",
        why="they would outlive the row: the filter has none",
    ),
    calls(
        "message-queues",
        """
answer = call(240, 180, inputs["mark"].encode(), 0o102, 0o600, 0)
if isinstance(answer, int):
    call(241, 181, inputs["mark"].encode())
return allowed(answer)
""",
        why="they would outlive the row: the filter has none",
    ),
    calls(
        "files-by-handle",
        """
handle = ctypes.create_string_buffer(136)
return allowed(call(303, 264, -100, b"/", handle, handle, 0), call(304, 265, -100, handle, 0))
""",
    ),
)
