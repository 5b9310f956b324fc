"""Python attacks on the way a result takes: printed frames, answers out of turn, every descriptor."""

from dataclasses import replace
from typing import Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import (
    NOTHING,
    SMALL,
    Attack,
    Group,
    Guard,
    fails,
    python,
    scores,
)

_FORGED: Final = 0.75
_CRASHED: Final = fails(ErrorCode.CRASHED)
_NO_ANSWER: Final = fails(ErrorCode.CRASHED, mentions="result channel")
_FRAMES: Final = f'''
import os

BODY = b'{{"kind":"number","value":{_FORGED},"nonfinite":[],"unsupported":null,"notes":[]}}'
ANSWER = b"R" + len(BODY).to_bytes(4, "big") + bytes(28) + BODY  # of a row to the runner

def frame(number):
    """A frame of the runner to the host that answers call `number`."""
    head = b'{{"type":"result","id":"%d","run_ms":0,"peak_memory_kb":1,"logs":null}}' % number
    return len(head).to_bytes(4, "big") + len(BODY).to_bytes(4, "big") + head + BODY

def write_to_all(data, first=3):
    for fd in range(1023, first - 1, -1):
        try:
            os.set_blocking(fd, False)
            os.write(fd, data)
        except OSError:
            pass
'''
_OWN_PATCHES: Final = "the runner looked up what it uses before user code ran, and has built-ins of its own"

ATTACKS: Final[tuple[Attack, ...]] = (
    python(
        "printed-frames",
        Group.CHANNEL,
        _FRAMES
        + """
def attack(inputs):
    for number in range(1, 5):
        for fd in (1, 2):
            os.write(fd, frame(number) + ANSWER)
""",
        why="standard output is a log; the channel is not among a row's descriptors",
        without=Guard.CHANNEL,
    ),
    python(
        "forged-frames-on-every-descriptor",
        Group.CHANNEL,
        _FRAMES
        + """
def attack(inputs):
    write_to_all(frame(2))  # its own row: 1 was the load
""",
        NOTHING,
        _CRASHED,
        why="a row has one descriptor besides its streams, its own socket, on which frames of the host are no answer",
        without=Guard.CHANNEL,
    ),
    python(
        "frame-without-end-on-every-descriptor",
        Group.CHANNEL,
        _FRAMES
        + """
def attack(inputs):
    write_to_all((1 << 20).to_bytes(4, "big") + (60 << 20).to_bytes(4, "big") + b"{")
""",
        NOTHING,
        _CRASHED,
        why="a row's socket takes answers only, of limited length; the channel itself is out of reach",
        limits=replace(SMALL, timeout_s=4.0),
        without=Guard.CHANNEL,
    ),
    python(
        "frame-of-four-gigabytes",
        Group.CHANNEL,
        _FRAMES
        + """
import time

def attack(inputs):
    write_to_all(b"R" + b"\\xff" * 4 + bytes(28) + b"x" * 60000)
    time.sleep(2)
""",
        _NO_ANSWER,
        why="an answer longer than `result_kb` is none",
        without=Guard.ANSWERS,
    ),
    python(
        "two-answers",
        Group.CHANNEL,
        _FRAMES
        + """
import stat, threading, time

def kind_of(name):
    try:
        return os.fstat(int(name)).st_mode
    except OSError:
        return 0

def attack(inputs):
    own = max(int(name) for name in os.listdir("/proc/self/fd") if stat.S_ISSOCK(kind_of(name)))

    def more():
        while True:
            time.sleep(0.005)
            os.write(own, ANSWER)

    threading.Thread(target=more, daemon=True).start()
    os.write(own, ANSWER * 3)

def left(inputs):
    time.sleep(0.1)  # for another answer to come first
""",
        scores(_FORGED),
        _CRASHED,
        why="a row's score is its author's; the answers after it go down with its process and are nobody's",
        without=(Guard.ROWS, Guard.ANSWERS),
    ),
    python(
        "an-answer-later",
        Group.CHANNEL,
        _FRAMES
        + """
import time

def attack(inputs):
    if os.fork() == 0:
        os.setsid()
        while True:
            write_to_all(ANSWER)
            time.sleep(0.005)

def left(inputs):
    time.sleep(0.1)  # for the old answer to come first
""",
        scores(_FORGED),
        NOTHING,
        _CRASHED,
        why="each row has a socket of its own: what a survivor writes to the old one is read by nobody",
        without=(Guard.ROWS, Guard.ANSWERS),
    ),
    python(
        "an-answer-by-a-child",
        Group.CHANNEL,
        _FRAMES
        + """
import time

def attack(inputs):
    if os.fork() == 0:
        time.sleep(0.2)
        write_to_all(ANSWER)
        time.sleep(60)
    os._exit(0)
""",
        _CRASHED,
        scores(_FORGED),
        why="the row's own process is watched; what its child does with the socket is at most this row's score",
        without=(Guard.VERDICT, Guard.CLEANING),
    ),
    python(
        "closed-descriptors",
        Group.CHANNEL,
        """
import os, time

def attack(inputs):
    os.closerange(3, 1024)
    time.sleep(2)
""",
        _CRASHED,
        why="a row that closed its socket cannot answer, and has failed",
        without=Guard.VERDICT,
    ),
    python(
        "garbage-on-every-descriptor",
        Group.CHANNEL,
        _FRAMES
        + """
import time

def attack(inputs):
    write_to_all(os.urandom(8) * 512)
    time.sleep(2)
""",
        _NO_ANSWER,
        why="what is no answer ends the row",
        without=Guard.CHANNEL,
    ),
)
