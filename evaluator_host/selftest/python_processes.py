"""Python attacks with processes: too many of them, and ones that stay."""

from typing import Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import (
    NOTHING,
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
        "fork-bomb",
        Group.PROCESSES,
        f'''
import os, time

def attack(inputs):
    for _ in range({_MANY}):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    return "{_MANY} processes"
''',
        _TOO_MANY,
        why="the sandbox's process limit counts every process and thread in it",
        without=Guard.PROCESSES,
    ),
    python(
        "fork-bomb-of-generations",
        Group.PROCESSES,
        """
import os, time

def attack(inputs):
    first = os.getpid()
    for _ in range(7):
        try:
            os.fork()
        except BlockingIOError:
            time.sleep(0.05)
    time.sleep(0.3)
    if os.getpid() != first:
        time.sleep(60)
    running = sum(name.isdigit() for name in os.listdir("/proc"))
    return running if running > 60 else None
""",
        NOTHING,
        _TOO_MANY,
        why="the process limit, whoever forks",
        without=Guard.PROCESSES,
    ),
    python(
        "thread-bomb",
        Group.PROCESSES,
        f'''
import threading, time

def attack(inputs):
    for _ in range({_MANY}):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return "{_MANY} threads"
''',
        _TOO_MANY,
        why="threads count like processes",
        without=(Guard.PROCESSES, Guard.MEMORY),
    ),
    python(
        "spawn-bomb",
        Group.PROCESSES,
        f"""
import subprocess, sys

def attack(inputs):
    waits = [sys.executable, "-I", "-S", "-c", "input()"]
    return len([subprocess.Popen(waits, stdin=subprocess.PIPE) for _ in range({_MANY})])
""",
        _TOO_MANY,
        fails(ErrorCode.MEMORY_LIMIT),
        why="the process limit; interpreters of their own also fill the memory limit",
        without=(Guard.PROCESSES, Guard.MEMORY, Guard.TIMEOUT),
    ),
    python(
        "process-for-the-next-row",
        Group.PROCESSES,
        _MARKED
        + """
def attack(inputs):
    if os.fork() == 0:
        mark(inputs)
        time.sleep(300)
    time.sleep(0.1)

def left(inputs):
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and inputs["mark"] in open(f"/proc/{pid}/comm").read()]
""",
        why="the runner kills a row's process group and whatever left it before the next row starts",
        without=Guard.CLEANING,
    ),
    python(
        "daemon-for-the-next-row",
        Group.PROCESSES,
        _MARKED
        + """
def attack(inputs):
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
            mark(inputs)
            time.sleep(300)
        os._exit(0)
    time.sleep(0.2)

def left(inputs):
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and inputs["mark"] in open(f"/proc/{pid}/comm").read()]
""",
        why="orphans become the runner's own children, which it kills whatever session they are in",
        without=Guard.CLEANING,
    ),
    python(
        "daemon-that-forks-on",
        Group.PROCESSES,
        _MARKED
        + """
def attack(inputs):
    if os.fork() == 0:
        mark(inputs)
        until = time.monotonic() + 20
        while time.monotonic() < until:  # always a new process, so that a list of them is old when it is made
            try:
                if os.fork():
                    os._exit(0)
                os.setsid()
            except BlockingIOError:
                pass
            time.sleep(0.001)
        os._exit(0)
    time.sleep(0.2)

def left(inputs):
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and inputs["mark"] in open(f"/proc/{pid}/comm").read()]
""",
        why="the runner looks for survivors until there is none, and gives the sandbox up when they do not end",
        without=Guard.CLEANING,
    ),
    python(
        "survivor-of-a-crash",
        Group.PROCESSES,
        _MARKED
        + """
def attack(inputs):
    if os.fork() == 0:
        os.setsid()
        mark(inputs)
        time.sleep(300)
    time.sleep(0.1)
    os.abort()
""",
        _CRASHED,
        why="the clean-up is the same however a row ends",
        without=Guard.CLEANING,
    ),
    python(
        "forked-copy-answers-too",
        Group.PROCESSES,
        """
import os, time

def attack(inputs):
    if os.fork() == 0:
        return "the copy"
    time.sleep(0.1)
    return None
""",
        why="a row has one answer, that of the process which was given the row",
        without=Guard.ANSWERS,
    ),
    python(
        "threads-while-loading",
        Group.PROCESSES,
        """
import threading, time
threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
STATE = []

def attack(inputs):
    STATE.append("left")

def left(inputs):
    return STATE
""",
        why="a process with threads is not forked: each row loads again in a process of its own",
        without=Guard.ROWS,
    ),
)
