"""Python attacks by source: text that breaks a parser, code that acts while it loads, names of others taken."""

from typing import Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import (
    CALM_SCORE,
    LOAD_HANGS,
    REFUSED,
    Attack,
    Expected,
    Group,
    Guard,
    fails,
    scores,
    whole,
)

_RUNS: Final = scores(CALM_SCORE)
_SYNTAX: Final = fails(ErrorCode.SYNTAX_ERROR)
_EVALUATE: Final = "\ndef evaluate(inputs, outputs, trace):\n    return 0.25\n"
_PARSER: Final = "code is parsed in the sandbox only, in a process that may die of it"
_AT_LOAD: Final = "loading has the limits of a row, and its own time limit"


def _source(name: str, code: str, *expected: Expected, why: str, **more: object) -> Attack:
    return whole(name, Group.SOURCE, code, *expected, why=why, **more)


ATTACKS: Final[tuple[Attack, ...]] = (
    _source(
        "null-byte",
        "x = 1\0" + _EVALUATE,
        _SYNTAX,
        why="it is no Python, and no argument of a program either",
        without=Guard.VERDICT,
    ),
    _source("byte-order-mark", "\ufeff" + _EVALUATE, _RUNS, why="the host takes it off", without=Guard.SOURCE),
    _source("code-fence", f"```python{_EVALUATE}```\n", _RUNS, why="the host takes it off", without=Guard.SOURCE),
    _source(
        "half-a-character",
        f"x = '\ud800'{_EVALUATE}",
        _SYNTAX,
        REFUSED,
        why="it is no text",
        seen="before service.prepared looked for it, making the digest failed",
    ),
    _source(
        "another-encoding",
        "# -*- coding: rot13 -*-\n" + _EVALUATE,
        _RUNS,
        why="code is text already: a cookie has no say",
        seen="compiled from bytes in place of text it is no Python any more",
    ),
    _source(
        "ten-megabytes",
        "#" * (10 << 20) + _EVALUATE,
        REFUSED,
        why="code has a size, of which the host's setting is the ceiling",
        seen="with EVALUATOR_HOST_CODE_KB=20000 it is taken",
    ),
    _source(
        "many-parentheses",
        "x = " + "(" * 50_000 + ")" * 50_000 + _EVALUATE,
        _SYNTAX,
        why=_PARSER,
        without=Guard.VERDICT,
    ),
    _source(
        "many-minuses",
        "x = " + "-" * 100_000 + "1" + _EVALUATE,
        _SYNTAX,
        fails(ErrorCode.CRASHED, ErrorCode.MEMORY_LIMIT),
        why=_PARSER,
        without=Guard.VERDICT,
    ),
    _source(
        "many-additions",
        "x = " + "1 + " * 50_000 + "1" + _EVALUATE,
        _SYNTAX,
        fails(ErrorCode.CRASHED),
        why=_PARSER,
        without=Guard.VERDICT,
    ),
    _source(
        "many-attributes",
        "def f(): x" + ".a" * 50_000 + _EVALUATE,
        _SYNTAX,
        fails(ErrorCode.CRASHED),
        why=_PARSER,
        without=Guard.VERDICT,
    ),
    _source(
        "many-blocks",
        "".join(" " * n + "if 1:\n" for n in range(200)) + " " * 200 + "pass" + _EVALUATE,
        _SYNTAX,
        why=_PARSER,
        without=Guard.VERDICT,
    ),
    _source(
        "number-of-a-million-digits",
        "x = " + "9" * 500_000 + _EVALUATE,
        _SYNTAX,
        why="the parser converts no more than 4,300 digits",
        without=Guard.VERDICT,
    ),
    _source(
        "constant-that-folds-large",
        "x = ((1 << 4000) ** 4000, 'x' * (300 << 20))" + _EVALUATE,
        fails(ErrorCode.MEMORY_LIMIT),
        why=_AT_LOAD,
        without=Guard.MEMORY,
    ),
    _source("loop-at-load", "while True: pass" + _EVALUATE, LOAD_HANGS, why=_AT_LOAD, without=Guard.TIMEOUT),
    _source(
        "decorator-that-never-returns",
        "import time\ndef wait(function):\n    time.sleep(10**6)\n\n@wait" + _EVALUATE,
        LOAD_HANGS,
        why=_AT_LOAD,
        without=Guard.TIMEOUT,
    ),
    _source(
        "memory-at-load",
        "x = bytearray(300 << 20)" + _EVALUATE,
        fails(ErrorCode.MEMORY_LIMIT),
        why=_AT_LOAD,
        without=Guard.MEMORY,
    ),
    _source(
        "processes-at-load",
        "import os, time\nfor _ in range(100):\n    if os.fork() == 0: time.sleep(60)" + _EVALUATE,
        fails(ErrorCode.PROCESS_LIMIT),
        why=_AT_LOAD,
        without=(Guard.PROCESSES, Guard.MEMORY),
    ),
    _source(
        "disk-at-load",
        "with open('/tmp/x', 'wb') as f:\n    for _ in range(40): f.write(bytes(1 << 20))" + _EVALUATE,
        fails(ErrorCode.DISK_LIMIT),
        why=_AT_LOAD,
        without=Guard.DISK,
    ),
    _source(
        "flood-at-load",
        "import os\nfor _ in range(128): os.write(1, bytes(1 << 20))" + _EVALUATE,
        _RUNS,
        why="what is printed while loading is read and dropped, too",
        without=Guard.STREAMS,
    ),
    _source(
        "exit-at-load",
        "raise SystemExit(0)" + _EVALUATE,
        fails(ErrorCode.LOAD_ERROR),
        why="a module that exits has not loaded",
        without=Guard.VERDICT,
    ),
    _source(
        "hard-exit-at-load",
        "import os\nos._exit(0)" + _EVALUATE,
        fails(ErrorCode.CRASHED),
        why="a load that ends without a report has failed, whatever its status",
        without=Guard.VERDICT,
    ),
    _source(
        "fork-at-load",
        """
import os, time
COPY = os.fork() == 0
time.sleep(0 if COPY else 0.2)

def evaluate(inputs, outputs, trace):
    return 0.75 if COPY else 0.25
""",
        _RUNS,
        why="only the process that was asked to load reports",
        without=Guard.ANSWERS,
    ),
    _source(
        "import-hook",
        """
import sys

class Hook:
    def find_spec(self, name, path=None, target=None):
        raise SystemExit(name)

sys.meta_path.insert(0, Hook())
sys.path_hooks.insert(0, lambda path: 1 / 0)
sys.path_importer_cache.clear()
"""
        + _EVALUATE,
        _RUNS,
        why="the runner imports nothing once user code has run",
        without=Guard.PRISTINE,
    ),
    _source(
        "shadowed-modules",
        """
import sys
for name in ("json", "os", "encode", "evaluator_runner", "typing"):
    open(f"/tmp/{name}.py", "w").write("raise SystemExit(9)")
sys.path.insert(0, "/tmp")
for name in ("json", "evaluator_runner", "evaluator_runner.encode"):
    sys.modules.pop(name, None)
"""
        + _EVALUATE,
        _RUNS,
        why="the runner's modules were imported before, and files left by a load do not stay",
        without=Guard.PRISTINE,
    ),
    _source(
        "entry-that-lies",
        """
class Entry:
    __name__ = "evaluate"
    __code__ = property(lambda entry: 1 / 0)
    __signature__ = property(lambda entry: 1 / 0)
    __wrapped__ = property(lambda entry: entry)
    def __getattr__(self, name): raise SystemExit(name)
    def __call__(self, inputs, outputs, trace): return 0.25

evaluate = Entry()
""",
        _RUNS,
        fails(ErrorCode.LOAD_ERROR, ErrorCode.ENTRY_NOT_FOUND, ErrorCode.CRASHED),
        why="looking at an entry may fail, and then says so",
        without=Guard.VERDICT,
    ),
)
