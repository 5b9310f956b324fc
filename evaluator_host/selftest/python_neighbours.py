"""Python attacks on other evaluators and other rows: their data, their files, what one leaves for the other."""

from typing import Final

from evaluator_host.model.evaluator import Isolation
from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import Attack, Group, Guard, fails, python

_OWN: Final = "a sandbox serves one evaluator and is destroyed, not cleaned, when that one is done"

ATTACKS: Final[tuple[Attack, ...]] = (
    python(
        "files-for-another-workspace",
        Group.NEIGHBOURS,
        """
import os

def attack(inputs):
    for folder in ("/tmp", "/dev/shm"):
        open(f"{folder}/{inputs['mark']}", "w").close()
""",
        witness="""
import os

def attack(inputs):
    return [name for folder in ("/tmp", "/dev/shm") for name in os.listdir(folder) if name.startswith("eh")]
""",
        why=_OWN,
        without=(Guard.SCRATCH, Guard.CLEANING),
    ),
    python(
        "socket-for-another-workspace",
        Group.NEIGHBOURS,
        """
import socket
DOOR = socket.socket(socket.AF_UNIX)  # bound while loading: it stays as long as the sandbox
DOOR.bind("\\0evaluator-host-selftest")
DOOR.listen()

def attack(inputs):
    return None
""",
        witness="""
import socket

def attack(inputs):
    with socket.socket(socket.AF_UNIX) as door:
        try:
            door.connect("\\0evaluator-host-selftest")
        except OSError:
            return None
    return "a socket of another workspace answered"
""",
        why="abstract names belong to a network namespace, of which each sandbox has its own",
        without=Guard.NETWORK,
    ),
    python(
        "port-for-another-workspace",
        Group.NEIGHBOURS,
        """
import socket
DOOR = socket.create_server(("127.0.0.1", 47831))

def attack(inputs):
    return None
""",
        witness="""
import socket

def attack(inputs):
    try:
        socket.create_connection(("127.0.0.1", 47831), 1).close()
    except OSError:
        return None
    return "a port of another workspace answered"
""",
        why="the loopback interface is the sandbox's own",
        without=Guard.NETWORK,
    ),
    python(
        "shared-memory-for-another-workspace",
        Group.NEIGHBOURS,
        """
import ctypes
ID = ctypes.CDLL(None).shmget(0x65687374, 4096, 0o1666)

def attack(inputs):
    return None
""",
        witness="""
import ctypes

def attack(inputs):
    libc = ctypes.CDLL(None)
    found = libc.shmget(0x65687374, 4096, 0o666)
    if found == -1:
        return None
    libc.shmctl(found, 0, None)
    return "shared memory of another workspace"
""",
        why="each sandbox has an IPC namespace of its own, and the filter no System V objects",
        without=(Guard.IPC, Guard.SECCOMP),
    ),
    python(
        "row-before",
        Group.NEIGHBOURS,
        '''
import re
PATTERN = re.compile(rb"row-[0-9a-f]{24}")

def attack(inputs):
    return None

def left(inputs):
    """Look through the whole of this process for what an earlier row was given."""
    found = set()
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in open("/proc/self/maps"):
            start, end = (int(one, 16) for one in line.split()[0].split("-"))
            if "rw" in line and "[v" not in line and end - start < 64 << 20:
                memory.seek(start)
                try:
                    found.update(PATTERN.findall(memory.read(end - start)))
                except OSError:
                    pass
    return found - {inputs["row"].encode()}
''',
        why="a row is given to its own process alone; the process that it was forked from has never seen one",
        without=Guard.ROWS,
    ),
    python(
        "state-for-the-next-row",
        Group.NEIGHBOURS,
        """
import os, sys
STATE = []

def attack(inputs):
    STATE.append(1)
    sys.modules["state"] = 1
    os.environ["STATE"] = os.getcwd()
    os.umask(0o777)
    sys.setrecursionlimit(70)

def left(inputs):
    return STATE or "state" in sys.modules or "STATE" in os.environ or os.umask(0o22) != 0o22
""",
        why="each row is forked from the evaluator as it was loaded",
        without=Guard.ROWS,
    ),
    python(
        "limits-for-the-next-row",
        Group.NEIGHBOURS,
        """
import os, resource

def attack(inputs):
    for pid in (0, os.getppid()):
        try:
            resource.prlimit(pid, resource.RLIMIT_CPU, (977, 977))
        except OSError:
            pass

def left(inputs):
    return resource.getrlimit(resource.RLIMIT_CPU)[0] == 977
""",
        why="the filter lets prlimit change a process's own limits only: the next row comes from another one",
        without=Guard.SECCOMP,
    ),
    python(
        "crash-of-a-batch",
        Group.NEIGHBOURS,
        """
def attack(inputs):
    globals()["seen"] = True
    raise ValueError("the first of a batch")
""",
        fails(ErrorCode.USER_EXCEPTION),
        why="a batch shares a process by its caller's choice; an exception in a row ends that row alone",
        isolation=Isolation.BATCH,
        without=Guard.VERDICT,
    ),
)
