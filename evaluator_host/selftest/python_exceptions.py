"""Python attacks by what is raised, and by values that run code when they are looked at."""

from typing import Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import BRIEF, HANGS, Attack, Guard, fails
from evaluator_host.selftest.python_values import INVALID, expression, value

_RAISED: Final = fails(ErrorCode.USER_EXCEPTION)

ATTACKS: Final[tuple[Attack, ...]] = (
    value(
        "exception-that-lies",
        """
class Fault(Exception):
    def __str__(self): raise SystemExit
    def __repr__(self): raise SystemExit
    __class__ = property(lambda fault: 1 / 0)
    __traceback__ = __cause__ = __context__ = property(lambda fault: 1 / 0)

def value():
    raise Fault
""",
        _RAISED,
        why="an exception that cannot be shown is reported without its text",
        without=Guard.VERDICT,
    ),
    expression(
        "exception-of-megabytes",
        "1 / 0 if False else (_ for _ in ()).throw(ValueError('x' * (64 << 20)))",
        _RAISED,
        why="messages and tracebacks are cut",
        without=Guard.VERDICT,
    ),
    value(
        "exception-that-never-ends",
        """
class Fault(BaseException):
    def __str__(self):
        while True: pass

def value():
    raise Fault
""",
        HANGS,
        why="the text of an exception counts as the row's time",
        without=Guard.TIMEOUT,
        limits=BRIEF,
    ),
    value(
        "exceptions-in-a-ring",
        """
def value():
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    for _ in range(10**4):
        second = ExceptionGroup("g", [second])
    raise second
""",
        _RAISED,
        why="only so much of a chain is shown",
        without=Guard.VERDICT,
    ),
    value(
        "exceptions-that-are-no-errors",
        """
def value():
    raise GeneratorExit
""",
        _RAISED,
        why="whatever is raised is the author's",
        without=Guard.VERDICT,
    ),
    value(
        "method-that-never-ends",
        """
class Model:
    def model_dump(self, **how):
        while True: pass

def value():
    return Model()
""",
        HANGS,
        why="what the runner asks of a value counts as the row's time",
        without=Guard.TIMEOUT,
        limits=BRIEF,
    ),
    value(
        "await-that-never-ends",
        """
class Later:
    def __await__(self):
        while True:
            yield

def value():
    return Later()
""",
        HANGS,
        _RAISED,
        why="what is awaited counts as the row's time",
        without=(Guard.TIMEOUT, Guard.VERDICT),
        limits=BRIEF,
    ),
    value(
        "finalizer-after-the-result",
        """
import os, weakref

class Late:
    def __init__(self):
        self.number = 0.25
    def __del__(self):
        os._exit(3)

def value():
    late = Late()
    weakref.finalize(late, os._exit, 4)
    return {"score": late.number, "late": late}
""",
        INVALID,
        fails(ErrorCode.CRASHED),
        why="an object without JSON form is named; its end is its author's",
        without=Guard.VERDICT,
    ),
    expression(
        "endless-generator",
        "(0.5 for _ in iter(int, 1))",
        INVALID,
        why="a generator is named, not run",
        without=Guard.VERDICT,
    ),
)
