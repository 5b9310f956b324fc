"""Python attacks by printing: floods, bytes that are no text, streams closed or replaced, words for the next row."""

from typing import Final

from evaluator_host.selftest.attack import SMALL, Attack, Group, Guard, python, scores

_CUT: Final = scores(0.0, truncated=True)
_KEPT: Final = "the runner reads both streams all the time and keeps `log_kb` of each"

ATTACKS: Final[tuple[Attack, ...]] = (
    python(
        "gigabyte-to-stdout",
        Group.OUTPUT,
        """
import os

def attack(inputs):
    block = b"x" * (1 << 20)
    for _ in range(1024):
        os.write(1, block)
""",
        _CUT,
        why=_KEPT,
        without=Guard.LOGS,
    ),
    python(
        "gigabyte-to-stderr",
        Group.OUTPUT,
        """
import os

def attack(inputs):
    block = b"x" * (1 << 20)
    for _ in range(1024):
        os.write(2, block)
""",
        _CUT,
        why=_KEPT,
        without=Guard.LOGS,
    ),
    python(
        "both-streams-at-once",
        Group.OUTPUT,
        """
import os, threading

def flood(fd):
    for _ in range(128):
        os.write(fd, b"x" * (1 << 20))

def attack(inputs):
    both = [threading.Thread(target=flood, args=(fd,)) for fd in (1, 2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
""",
        _CUT,
        why="neither stream waits for the other to be read",
        without=Guard.LOGS,
    ),
    python(
        "flood-of-short-lines",
        Group.OUTPUT,
        "def attack(inputs):\n    for number in range(30_000): print(number)\n",
        _CUT,
        why=_KEPT,
        without=Guard.LOGS,
    ),
    python(
        "control-characters",
        Group.OUTPUT,
        """
def attack(inputs):
    print("\\x00\\x01\\x1b" * (1 << 16), flush=True)
""",
        _CUT,
        why="a log that JSON makes six times as long is cut to fit its frame",
        without=Guard.LOGS,
    ),
    python(
        "bytes-that-are-no-text",
        Group.OUTPUT,
        """
import os

def attack(inputs):
    os.write(1, b"\\xff\\xfe" + "é".encode()[:1] + b"\\xed\\xa0\\x80" + b"}\\x00\\r\\n")
""",
        scores(0.0, log="\ufffd" * 6 + "}\x00\r\n"),
        why="a log is text: what is no UTF-8 is replaced before it is framed",
        without=Guard.STREAMS,
    ),
    python(
        "closed-streams",
        Group.OUTPUT,
        """
import os, sys

def attack(inputs):
    sys.stdout.close()
    sys.stderr.close()
    os.close(1)
    os.close(2)
""",
        why="results do not travel over standard output",
        without=Guard.STREAMS,
    ),
    python(
        "replaced-streams",
        Group.OUTPUT,
        """
import os, sys

class Stream:
    def __getattr__(self, name):
        raise SystemExit(7)

def attack(inputs):
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    sys.stdout = sys.__stdout__ = sys.stderr = Stream()
""",
        why="the runner flushes the streams that it made itself",
        without=Guard.STREAMS,
    ),
    python(
        "streams-that-do-not-block",
        Group.OUTPUT,
        """
import fcntl, os

def attack(inputs):
    for fd in (1, 2):
        os.set_blocking(fd, False)
        try:
            fcntl.fcntl(fd, 1031, 4096)  # F_SETPIPE_SZ
        except OSError:
            pass

def left(inputs):
    return not os.get_blocking(1)
""",
        why="the pipes are shared by the rows of an evaluator, so that their flags are set anew for each",
        without=Guard.STREAMS,
    ),
    python(
        "words-for-the-next-row",
        Group.OUTPUT,
        """
import os, sys, time

def attack(inputs):
    if os.fork() == 0:
        os.setsid()
        while True:
            os.write(1, b"a row of mine said so")
            time.sleep(0.001)
    sys.stdout.write("not flushed")
    time.sleep(0.05)
""",
        why="when the next row starts, nobody is left who could write, and the pipes have been emptied",
        limits=SMALL,
        without=Guard.CLEANING,
    ),
    python(
        "words-at-the-end",
        Group.OUTPUT,
        """
import atexit, os, threading
atexit.register(os.write, 1, b"at the end of the load")

class Late:
    def __del__(self):
        os.write(1, b"when it was collected")

def attack(inputs):
    atexit.register(os.write, 1, b"at the end of the row")
    threading._register_atexit(os.write, 1, b"at the end of its threads")
    globals()["late"] = Late()
""",
        scores(0.0, log=""),
        why="a row's process ends without the interpreter's shutdown, so that nothing runs after its answer",
        without=Guard.STREAMS,
    ),
)
