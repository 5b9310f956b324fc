"""Python attacks by ending and stopping: the own process, all of them, the runner, the host."""

from typing import Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import (
    BRIEF,
    HANGS,
    Attack,
    Group,
    Guard,
    fails,
    python,
)

_TOO_MANY: Final = fails(ErrorCode.PROCESS_LIMIT)
_CRASHED: Final = fails(ErrorCode.CRASHED)
_ENDED: Final = fails(ErrorCode.CRASHED, ErrorCode.TIMEOUT)
_MANY: Final = 100  # of a limit of 32: an unlimited sandbox is told apart, and the machine does not notice
_MARKED: Final = '''
import os, signal, time

def mark(inputs):
    """Carry the mark where the host can see it."""
    with open("/proc/self/comm", "w") as file:
        file.write(inputs["mark"])
'''

ATTACKS: Final[tuple[Attack, ...]] = (
    python(
        "deaf-to-signals",
        Group.PROCESSES,
        """
import signal

def attack(inputs):
    for number in set(range(1, 65)) - {9, 19, 32, 33}:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    while True:
        pass
""",
        HANGS,
        why="a row is ended by SIGKILL, which nobody can ignore",
        limits=BRIEF,
        without=Guard.TIMEOUT,
    ),
    python(
        "exit",
        Group.PROCESSES,
        "import sys\ndef attack(inputs): sys.exit(0)\n",
        fails(ErrorCode.USER_EXCEPTION),
        why="SystemExit is an exception like others; no score was returned",
        without=Guard.VERDICT,
    ),
    python(
        "hard-exit",
        Group.PROCESSES,
        "import os\ndef attack(inputs): os._exit(0)\n",
        _CRASHED,
        why="a process that ends without an answer has failed, whatever its status",
        without=Guard.VERDICT,
    ),
    python(
        "abort",
        Group.PROCESSES,
        "import os\ndef attack(inputs): os.abort()\n",
        _CRASHED,
        why="a process that ends without an answer has failed",
        without=Guard.VERDICT,
    ),
    python(
        "segmentation-fault",
        Group.PROCESSES,
        "import ctypes\ndef attack(inputs): ctypes.string_at(0)\n",
        _CRASHED,
        why="only the row's own process dies",
        without=Guard.VERDICT,
    ),
    python(
        "kill-itself",
        Group.PROCESSES,
        "import os\ndef attack(inputs): os.kill(os.getpid(), 9)\n",
        _CRASHED,
        why="a process that ends without an answer has failed",
        without=Guard.VERDICT,
    ),
    python(
        "stop-itself",
        Group.PROCESSES,
        "import os\ndef attack(inputs): os.kill(os.getpid(), 19)\n",
        HANGS,
        why="a stopped process reaches its time limit, and SIGKILL ends it",
        limits=BRIEF,
        without=Guard.TIMEOUT,
    ),
    python(
        "kill-everything",
        Group.PROCESSES,
        """
import os, time

def attack(inputs):
    os.kill(-1, 9)
    time.sleep(0.2)
    os._exit(1)
""",
        _CRASHED,
        why="-1 means the sandbox's own process namespace; it is destroyed, and the next row gets another sandbox",
        without=Guard.VERDICT,
    ),
    python(
        "stop-everything",
        Group.PROCESSES,
        """
import os, time

def attack(inputs):
    os.kill(-1, 19)
    time.sleep(0.2)
    os.kill(os.getpid(), 19)
""",
        _ENDED,
        why="the host gives a silent sandbox up soon after the limit, and destroys it from outside",
        limits=BRIEF,
        without=Guard.VERDICT,
    ),
    python(
        "kill-the-runner",
        Group.PROCESSES,
        """
import os, time

def attack(inputs):
    for pid in sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True):
        if pid != os.getpid():
            try:
                os.kill(pid, 9)
            except OSError:
                pass
    time.sleep(0.5)
    os._exit(1)
""",
        _CRASHED,
        why="the end of a runner is the end of its sandbox, which the host notices at once",
        without=Guard.VERDICT,
    ),
    python(
        "stop-the-runner",
        Group.PROCESSES,
        """
import os, time

def attack(inputs):
    for pid in sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True):
        if pid != os.getpid():
            try:
                os.kill(pid, 19)
            except OSError:
                pass
    time.sleep(0.5)
    os._exit(1)
""",
        _ENDED,
        why="the host waits no longer than the limit and its grace",
        limits=BRIEF,
        without=Guard.VERDICT,
    ),
    python(
        "signal-the-host",
        Group.PROCESSES,
        """
import hashlib, os

def attack(inputs):
    try:
        os.kill(inputs["pid"], 0)
        what = "signalled"
    except ProcessLookupError:
        return None
    except PermissionError:
        what = "seen"
    if inputs["pid"] < 1000:  # may be the number of a process in here
        with open(f"/proc/{inputs['pid']}/cmdline", "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != inputs["command"]:
                return None
    return f"the host's process can be {what}"
""",
        why="no process outside the namespace has a number in it",
        without=Guard.PROC,
    ),
)
