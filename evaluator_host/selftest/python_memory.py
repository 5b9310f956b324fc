"""Python attacks on memory: at once, bit by bit, in children, in the kernel's buffers, in what nobody counts."""

from typing import Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import NOTHING, Attack, Group, Guard, fails, python

_OVER: Final = fails(ErrorCode.MEMORY_LIMIT)
_MB: Final = 300  # of a limit of 128: what an unlimited sandbox would take, and no machine misses

ATTACKS: Final[tuple[Attack, ...]] = (
    python(
        "one-allocation",
        Group.MEMORY,
        f"def attack(inputs): return len(bytearray({_MB} << 20))\n",
        _OVER,
        why="RLIMIT_DATA refuses it, and the cgroup (or watchdog) would end it",
        without=Guard.MEMORY,
    ),
    python(
        "bit-by-bit",
        Group.MEMORY,
        f"""
def attack(inputs):
    held = []
    while len(held) < {_MB * 16}:
        held.append("x" * (1 << 16))
    return len(held)
""",
        _OVER,
        why="RLIMIT_DATA and the cgroup count what is held, however small the pieces",
        without=Guard.MEMORY,
    ),
    python(
        "swallowed-memory-errors",
        Group.MEMORY,
        f"""
def attack(inputs):
    held, refused = [], 0
    while len(held) < {_MB} and refused < 200:
        try:
            held.append(bytearray(1 << 20))
        except MemoryError:
            refused += 1
    return len(held) > 128 and f"{{len(held)}} MB"
""",
        NOTHING,
        _OVER,
        why="an evaluator that catches MemoryError still gets no more",
        without=Guard.MEMORY,
    ),
    python(
        "in-children",
        Group.MEMORY,
        """
import os, time

def stat_of(pid):
    try:
        return open(f"/proc/{pid}/stat").read()
    except OSError:
        return ""

def attack(inputs):
    reader, writer = os.pipe()
    for _ in range(6):
        if os.fork() == 0:
            held = b"x" * (50 << 20)
            os.write(writer, b".")
            time.sleep(60)
    os.close(writer)
    os.set_blocking(reader, False)
    filled, dead, until = 0, 0, time.monotonic() + 15
    while filled < 6 and not dead and time.monotonic() < until:
        time.sleep(0.1)
        try:
            filled += len(os.read(reader, 16))
        except BlockingIOError:
            pass
        dead = sum(line.split()[2:3] == ["Z"] for line in map(stat_of, filter(str.isdigit, os.listdir("/proc"))))
    time.sleep(2)  # a watchdog looks now and then
    return filled == 6 and not dead and "six children hold 50 MB each"
""",
        NOTHING,
        _OVER,
        fails(ErrorCode.CRASHED),
        why="the limit is the whole sandbox's, not a process's",
        without=Guard.MEMORY,
    ),
    python(
        "shared-mappings",
        Group.MEMORY,
        f'''
import mmap, time

def attack(inputs):
    shared = mmap.mmap(-1, {_MB} << 20)  # RLIMIT_DATA does not count it
    for at in range(0, len(shared), 4096):
        shared[at] = 1
    time.sleep(2)  # a watchdog looks now and then
    return "{_MB} MB of shared memory"
''',
        _OVER,
        why="shared memory counts for the sandbox's cgroup, and for the watchdog that stands in for one",
        without=Guard.MEMORY,
    ),
    python(
        "anonymous-files",
        Group.MEMORY,
        """
import os

def attack(inputs):
    try:
        return os.memfd_create("hidden") and "memory that is in no process and no folder"
    except OSError:
        return None
""",
        why="the filter has no memfd_create: such memory belongs to no process and has no size",
        without=Guard.SECCOMP,
    ),
    python(
        "buffers-of-the-kernel",
        Group.MEMORY,
        """
import os, socket, time

def attack(inputs):
    held, size = [], 0
    try:
        for _ in range(450):
            pair = socket.socketpair()
            held.append(pair)
            for end in pair:
                end.setblocking(False)
                try:
                    while True:
                        size += end.send(b"x" * 65536)
                except BlockingIOError:
                    pass
    except OSError:
        pass
    if size < 128 << 20:
        return None
    time.sleep(2)  # a watchdog looks now and then
    return f"{size >> 20} MB in sockets"
""",
        NOTHING,
        _OVER,
        why="the cgroup counts what waits in sockets; the watchdog counts the sockets, by what they could hold",
        without=Guard.MEMORY,
    ),
    python(
        "compression-bomb",
        Group.MEMORY,
        f"""
import zlib

def attack(inputs):
    packed = zlib.compress(bytes(30 << 20), 1)
    return len([zlib.decompress(packed) for _ in range({_MB} // 30)])
""",
        _OVER,
        why="what is unpacked counts like anything else",
        without=(Guard.MEMORY, Guard.TIMEOUT),
    ),
)
