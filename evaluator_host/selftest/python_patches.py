"""Python attacks on the runner's own objects and names, and on the process that loads."""

from typing import Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import (
    CALM_SCORE,
    LOAD_HANGS,
    NOTHING,
    Attack,
    Group,
    Guard,
    fails,
    python,
    scores,
    whole,
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
        "runner-objects-by-frames",
        Group.CHANNEL,
        f"""
import gc, sys

def attack(inputs):
    frame = sys._getframe()
    while frame is not None:
        for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
            entry = getattr(getattr(value, "_program", None), "entry", None)
            if entry is not None:
                entry.call = lambda *rest: {_FORGED}
        frame = frame.f_back
    for thing in gc.get_objects():
        if type(thing).__name__ == "Entry":
            thing.call = lambda *rest: {_FORGED}
""",
        NOTHING,
        why="the runner's objects in a row's process are that row's own copy",
        without=Guard.ROWS,
    ),
    python(
        "patches-in-a-row",
        Group.CHANNEL,
        f"""
import builtins, json, os, struct, sys, time

def attack(inputs):
    json.loads = json.dumps = lambda *rest, **named: {_FORGED}
    evaluate.__code__ = (lambda inputs, outputs, trace: {_FORGED}).__code__
    for module in (os, time, struct):
        for name in dir(module):
            if not name.startswith("__") and name != "environ":
                setattr(module, name, None)
    sys.modules.clear()
    for name in ("len", "isinstance", "type", "repr", "str", "max", "open"):
        setattr(builtins, name, None)
    return None
""",
        fails(ErrorCode.USER_EXCEPTION),  # its own str() is gone
        why="the next row has a process of its own",
        without=Guard.ROWS,
    ),
    python(
        "patches-at-load",
        Group.CHANNEL,
        """
import builtins, json, os, time
json.loads = json.dumps = lambda *rest, **named: '{"score": 0.75}'
os.write = os.read = os._exit = os.fork = time.perf_counter_ns = lambda *rest: 0
builtins.repr = builtins.len = builtins.type = builtins.isinstance = builtins.getattr = lambda *rest: "0.75"

def attack(inputs):
    return None
""",
        why=_OWN_PATCHES,
        without=Guard.PRISTINE,
    ),
    whole(
        "built-ins-cleared-at-load",
        Group.CHANNEL,
        "__builtins__.clear()\ndef evaluate(inputs, outputs, trace):\n    return {'score': 0.25, 'a': [1, None]}\n",
        scores(CALM_SCORE),
        why=_OWN_PATCHES,
        without=Guard.PRISTINE,
    ),
    whole(
        "import-system-broken-at-load",
        Group.CHANNEL,
        """
import builtins, sys
builtins.__import__ = None
sys.meta_path.clear(); sys.path_hooks.clear(); sys.modules.clear()

def evaluate(inputs, outputs, trace):
    return {"score": 0.25}
""",
        scores(CALM_SCORE),
        why="nothing is imported once user code has run, but what it asks for itself",
        without=Guard.PRISTINE,
    ),
    whole(
        "tracers-at-load",
        Group.CHANNEL,
        """
import sys, threading

def tracer(frame, event, argument):
    if frame.f_code.co_name in ("encode_result", "_answer", "send"):
        frame.f_locals["value"] = 0.75
        raise SystemExit
    return tracer

sys.settrace(tracer); sys.setprofile(tracer); threading.settrace(tracer)

def evaluate(inputs, outputs, trace):
    return 0.25
""",
        scores(CALM_SCORE),
        why="the runner takes tracers away before it goes on with what user code returned",
        without=Guard.PRISTINE,
    ),
    whole(
        "load-speaks-for-its-runner",
        Group.CHANNEL,
        """
import os
for fd in range(3, 64):
    try:
        os.write(fd, b"L" + bytes(64))
    except OSError:
        pass

def evaluate(inputs, outputs, trace):
    return 0.75
""",
        _CRASHED,
        why="a report that is none ends the load",
        without=Guard.VERDICT,
    ),
    whole(
        "load-that-closes-everything",
        Group.CHANNEL,
        "import os, time\nos.closerange(0, 1024)\ntime.sleep(300)\ndef evaluate(inputs, outputs, trace): return 0.75\n",
        _CRASHED,
        LOAD_HANGS,
        why="the end of the process that loads is the end of the load",
        without=Guard.VERDICT,
    ),
    whole(
        "blames-the-host",
        Group.CHANNEL,
        """
def evaluate(inputs, outputs, trace):
    from evaluator_runner.failures import Failure
    raise Failure("sandbox_lost", "the host is to blame")
""",
        fails(ErrorCode.CRASHED, ErrorCode.USER_EXCEPTION),
        why="what is the host's fault is for the host to say: a runner's error has one of the codes of a guest",
        without=Guard.HOST,
    ),
)
