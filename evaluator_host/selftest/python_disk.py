"""Python attacks on the disk: filling what a sandbox may write, and leaving something there for the next row."""

from typing import Final

from evaluator_host.model.evaluator import Limits
from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import NOTHING, Attack, Group, Guard, fails, python

_FULL: Final = fails(ErrorCode.DISK_LIMIT)
_LITTLE_MEMORY: Final = Limits(timeout_s=20.0, memory_mb=64, disk_mb=16)
_FILL: Final = """
def fill(folder, chunks):
    block = b"x" * (1 << 20)
    for number in range(chunks):
        with open(f"{folder}/{number}", "wb") as file:
            file.write(block)
    return f"{chunks} MB written to {folder}"
"""

ATTACKS: Final[tuple[Attack, ...]] = (
    python(
        "fill-tmp",
        Group.FILES,
        _FILL + 'def attack(inputs): return fill("/tmp", 40)\n',
        _FULL,
        why="what a row may write to has a size, and what exceeds it is named",
        without=Guard.DISK,
    ),
    python(
        "fill-shared-memory",
        Group.FILES,
        _FILL + 'def attack(inputs): return fill("/dev/shm", 40)\n',
        _FULL,
        why="shared memory has a size, too",
        without=Guard.DISK,
    ),
    python(
        "one-large-file",
        Group.FILES,
        """
def attack(inputs):
    with open("large", "wb") as file:
        for _ in range(40):
            file.write(b"x" * (1 << 20))
    return "40 MB in one file"
""",
        _FULL,
        why="RLIMIT_FSIZE and the size of /tmp",
        without=Guard.DISK,
    ),
    python(
        "sparse-file",
        Group.FILES,
        """
import os

def attack(inputs):
    os.close(os.open("sparse", os.O_CREAT | os.O_WRONLY))
    os.truncate("sparse", 200 << 20)
    return os.stat("sparse").st_size
""",
        _FULL,
        why="RLIMIT_FSIZE counts the length of a file, not its blocks",
        without=Guard.DISK,
    ),
    python(
        "inodes",
        Group.FILES,
        """
import os

def attack(inputs):
    for number in range(100_000):
        os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY))
    return "100,000 empty files"
""",
        fails(ErrorCode.DISK_LIMIT, ErrorCode.MEMORY_LIMIT, ErrorCode.TIMEOUT),
        why="an inode of /tmp counts as memory of the sandbox, and Docker's /tmp has a number of them",
        limits=_LITTLE_MEMORY,
        without=(Guard.DISK, Guard.MEMORY, Guard.TIMEOUT),
    ),
    python(
        "files-for-the-next-row",
        Group.FILES,
        """
import os

def attack(inputs):
    for folder in ("/tmp", "/dev/shm"):
        os.makedirs(f"{folder}/{inputs['mark']}/closed")
        open(f"{folder}/{inputs['mark']}/closed/file", "w").close()
        os.chmod(f"{folder}/{inputs['mark']}/closed", 0)
        os.chmod(f"{folder}/{inputs['mark']}", 0)
        open(folder.encode() + b"/\\xff\\n", "w").close()
        os.symlink("/opt", f"{folder}/link")
        os.mkfifo(f"{folder}/fifo")

def left(inputs):
    return os.listdir("/tmp") + os.listdir("/dev/shm")
""",
        why="the runner empties /tmp and /dev/shm after every row, whatever the names and rights",
        without=Guard.CLEANING,
    ),
    python(
        "folders-too-deep-to-remove",
        Group.FILES,
        """
import os

def attack(inputs):
    for _ in range(3000):
        os.mkdir("d" * 100)
        os.chdir("d" * 100)

def left(inputs):
    return os.listdir("/tmp")
""",
        NOTHING,
        why="the runner lifts folders to the top before it removes them, so that no path grows too long",
        without=Guard.CLEANING,
    ),
)
