"""Python attacks on time: loops, waits and single operations that do not end, in every way an interpreter has."""

from typing import Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import BRIEF, HANGS, Attack, Group, Guard, fails, python

_KILLED: Final = "the runner kills the row's process at its limit, whatever it is doing"


def _hanging(name: str, program: str) -> Attack:
    return python(name, Group.CPU, program, HANGS, why=_KILLED, limits=BRIEF, without=Guard.TIMEOUT)


ATTACKS: Final[tuple[Attack, ...]] = (
    _hanging("endless-loop", "def attack(inputs):\n    while True: pass\n"),
    _hanging("endless-sleep", "import time\ndef attack(inputs): time.sleep(10**6)\n"),
    _hanging("catastrophic-regex", "import re\ndef attack(inputs): return re.match(r'(a+)+$', 'a' * 64 + '!')\n"),
    _hanging("one-long-addition", "def attack(inputs): return sum(range(10**15))\n"),
    _hanging("one-long-power", "def attack(inputs): return (3 ** (10**8)) % 7\n"),
    _hanging(
        "digits-without-limit",
        "import sys\ndef attack(inputs):\n    sys.set_int_max_str_digits(0)\n    return len(str(7 ** 10**8))\n",
    ),
    _hanging("lock-that-nobody-opens", "import threading\ndef attack(inputs): threading.Semaphore(0).acquire()\n"),
    _hanging(
        "pipe-that-nobody-opens", "import os\ndef attack(inputs):\n    os.mkfifo('f')\n    return open('f').read()\n"
    ),
    _hanging(
        "coroutine-that-never-ends",
        "import asyncio\ndef attack(inputs): return asyncio.run(asyncio.Event().wait())\n",
    ),
    _hanging(
        "exceptions-caught-for-ever",
        "def attack(inputs):\n    while True:\n        try: raise SystemExit\n        except BaseException: pass\n",
    ),
    _hanging(
        "many-busy-threads",
        """
import threading

def spin():
    while True:
        pass

def attack(inputs):
    for _ in range(8):
        threading.Thread(target=spin).start()
    spin()
""",
    ),
    _hanging(
        "many-busy-processes",
        """
import os

def attack(inputs):
    for _ in range(4):
        os.fork()
    while True:
        pass
""",
    ),
    python(
        "digits",
        Group.CPU,
        "def attack(inputs): return int('9' * 10**7)\n",
        fails(ErrorCode.USER_EXCEPTION),
        why="the interpreter converts no more than 4,300 digits",
        without=Guard.VERDICT,
    ),
    python(
        "deep-recursion",
        Group.CPU,
        "def attack(inputs): return attack(inputs)\n",
        fails(ErrorCode.USER_EXCEPTION),
        why="the interpreter's own limit raises RecursionError, which is an exception like others",
        without=Guard.VERDICT,
    ),
    python(
        "recursion-without-limit",
        Group.CPU,
        """
import sys

class Deep:
    def __repr__(self):
        return repr(self)

def attack(inputs):
    sys.setrecursionlimit(10**9)
    return repr(Deep())
""",
        fails(ErrorCode.CRASHED, ErrorCode.MEMORY_LIMIT),
        fails(ErrorCode.USER_EXCEPTION, mentions="ecursion"),  # interpreters that count C frames themselves
        why="a stack that overflows kills the row's process alone",
        without=Guard.VERDICT,
    ),
)
