"""Packages are imported before the evaluator's code is loaded: the load is faster, and nothing else changes, even if a
package misbehaves.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.sandbox.linux.watchdog import child_pids
from tests.runners.conftest import LIMITS, RunnerProcess, body, golden
from tests.runners.python.conftest import COMMAND
from tests.runners.python.test_golden import expect, send
from tests.runners.python.test_survivors import assert_none_left

Start = Callable[..., RunnerProcess]

IMPORTED = """
import sys
AHEAD = "heavy" in vars(sys)["modules"]
import heavy
def evaluate(inputs, outputs, trace):
    return AHEAD
"""
PLAIN = """
import glob, sys, tempfile, threading
FOUND = [name for name in ("hea" "vy", "o" "dd") if name in vars(sys)["modules"]], threading.active_count()
def evaluate(inputs, outputs, trace):
    print("scored")
    return {"score": 1, "found": FOUND[0], "threads": FOUND[1], "files": glob.glob(tempfile.gettempdir() + "/*")}
"""
SLEEP = "import os, sys\nos.execv(sys.executable, [sys.executable, '-I', '-S', '-c', 'import time; time.sleep(900)', {mark!r}])"

SPEAK = """
import os
for fd in range(3, 20):
    try:
        os.write(fd, b"P" + bytes(3) + b"\\2" + bytes(4) + b"[]")
    except OSError:
        pass
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A package set with one well-behaved module, `heavy`."""
    (tmp_path / "heavy.py").write_text("print('importing heavy')\nVALUE = 1\n")
    return tmp_path


def prepare(runner: RunnerProcess, *modules: str, timeout_s: float = 10.0, **limits: int) -> dict[str, Any]:
    kept = {name: LIMITS[name] for name in ("memory_mb", "processes", "disk_mb")}
    header = {"type": "prepare", "id": "p", "modules": list(modules), "timeout_s": timeout_s}
    runner.send({**header, "limits": {**kept, **limits}})
    return runner.receive().header


def is_ahead(runner: RunnerProcess, code: str = IMPORTED, **load: Any) -> bool:
    loaded = runner.load(code, **load)
    assert loaded.type == "loaded", body(loaded)
    return bool(body(runner.call({}, "x", None))["value"])


@pytest.mark.parametrize("name", ["prepared-python", "prepared-missing-python"])
def test_golden(runner: RunnerProcess, name: str) -> None:
    send(runner, name.replace("prepared", "prepare"))
    frame = runner.receive()
    frame.header["prepare_ms"] = golden(name)["header"]["prepare_ms"]
    assert frame.header == golden(name)["header"]
    assert frame.body == b""
    send(runner, "load-evaluate-python")
    expect(runner.receive(), "loaded-evaluate")


def test_a_load_finds_its_packages_imported(start: Start, packages: Path) -> None:
    assert not is_ahead(start("--packages", str(packages)))
    runner = start("--packages", str(packages))
    assert prepare(runner, "heavy")["ready"] is True
    assert is_ahead(runner)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("code", "load"),
    [
        # the code does not import the package
        (IMPORTED.replace("import heavy", ""), {}),
        (IMPORTED, {"check": True}),
        (IMPORTED, {"limits": {"memory_mb": 300}}),
        ("import os\nos.environ['HEAVY'] = '1'\n" + IMPORTED, {}),
        ("import sys\nsys.modules['other'] = sys\n" + IMPORTED, {}),
    ],
)
def test_a_load_that_may_want_to_come_first_does(start: Start, packages: Path, code: str, load: dict[str, Any]) -> None:
    code = code.replace('"heavy"', '"hea" "vy"') if "import heavy" not in code else code
    runner = start("--packages", str(packages))
    assert prepare(runner, "heavy")["ready"] is True
    assert not is_ahead(runner, code, **load)


def test_the_restricted_policy_is_not_of_a_packages_making(start: Start, packages: Path, restricted_dir: Path) -> None:
    (packages / "RestrictedPython.py").write_text("raise SystemExit('imported in the place of the policy')\n")
    (packages / "heavy.py").write_text("import math\nmath.changed = True\n")
    runner = start("--packages", str(packages), "--restricted", str(restricted_dir))
    assert prepare(runner, "heavy")["ready"] is True
    code = (
        "# import heavy\nimport math\ndef evaluate(i, o, t):\n    return open(o) if o else hasattr(math, 'changed')\n"
    )
    loaded = runner.load(code, policy="restricted")
    assert loaded.type == "loaded", body(loaded)
    assert body(runner.call({}, "/etc/passwd", None))["error"]["code"] == "policy_violation"
    assert body(runner.call({}, "", None))["value"] is False


ODD = {
    "raises": ("raise OSError('no disk')", "odd raised OSError"),
    "exits": ("import sys; sys.exit(0)", "odd raised SystemExit"),
    "ends": ("import os; os._exit(0)", "ended the process"),
    "crashes": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended the process"),
    "hangs": ("while True: pass", "longer than 1 s"),
    "stops": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "longer than 1 s"),
    "floods": ("while True: print('x' * 9999)", "longer than 1 s"),
    "prints much": ("print('x' * 10_000_000)", None),
    "starts a thread": ("import threading, time\nthreading.Thread(target=time.sleep, args=(900,)).start()", "threads"),
    "forks": ("import os\nif os.fork() == 0:\n    " + SLEEP.replace("\n", "\n    "), "processes"),
    "forks away": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        "
        + SLEEP.replace("\n", "\n        ")
        + "\n    os._exit(0)\nos.wait()",
        "processes",
    ),
    "comes back twice": ("import os\nif os.fork():\n    os.wait()", None),
    "leaves a file": ("import os, tempfile\nos.close(tempfile.mkstemp()[0])", "files"),
    "leaves a file open": ("import tempfile\nKEPT = tempfile.TemporaryFile()", "descriptors"),
    "takes stdout": ("import io, sys\nsys.stdout = io.StringIO()", "sys.stdout"),
    "moves": ("import os\nos.chdir('/')", "working directory"),
    "takes memory": ("KEPT = bytearray(150 << 20)", "the packages take 1"),
    "takes all memory": ("KEPT = bytearray(400 << 20)", "odd raised MemoryError"),
    "writes to what it finds": ("import os\nfor fd in (1, 2, 20, 21):\n    os.write(fd, b'seen')", None),
    "speaks in the runner's place": (SPEAK, "wrote to the connection between the sandbox and the host"),
}


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", ODD)
def test_a_package_that_does_something_odd(start: Start, packages: Path, name: str) -> None:
    code, reason = ODD[name]
    mark = f"ah3ad-{os.getpid()}-{time.monotonic_ns()}"
    (packages / "odd.py").write_text(code.replace("{mark!r}", repr(mark)))
    runner = start("--packages", str(packages))
    answer = prepare(runner, "heavy", "odd", timeout_s=1 if reason and "longer" in reason else 20)
    assert answer["ready"] is (reason is None), answer
    assert reason is None or reason in answer["reason"], answer
    assert_none_left(mark)
    loaded = runner.load(PLAIN)
    assert loaded.type == "loaded", body(loaded)
    assert (loaded.header["notes"], loaded.header["logs"]) == ([], None)
    for _ in range(2):
        row = runner.call({}, "x", None)
        assert body(row)["value"] == {"score": 1, "found": [], "threads": 1, "files": []}
        assert row.header["logs"] == {"stdout": "scored\n", "stderr": "", "truncated": False}


def test_text_printed_by_imports_is_dropped_and_text_printed_by_rows_is_kept(start: Start, packages: Path) -> None:
    (packages / "heavy.py").write_text(
        "import logging, os, sys, warnings\nlog = logging.getLogger('heavy')\nlog.addHandler(logging.StreamHandler())\n"
        "log.error('importing')\nwarnings.warn('importing')\nos.write(1, b'importing')\nos.write(20, b'importing')\n"
        "sys.stdout.write('importing')\n"
    )
    runner = start("--packages", str(packages))
    assert prepare(runner, "heavy")["ready"] is True
    code = "import heavy\ndef evaluate(i, o, t):\n    heavy.log.error('row')\n    print('x' * 70_000)\n    return 1.0\n"
    assert runner.load(code).header["logs"] is None
    logs = runner.call({}, "x", None).header["logs"]
    assert (logs["stdout"], logs["stderr"], logs["truncated"]) == ("x" * 65536, "row\n", True)


@pytest.mark.slow
def test_text_printed_by_the_load_is_reported(start: Start, packages: Path) -> None:
    # the code prints while the supervisor still works on the load
    for _ in range(8):
        runner = start("--packages", str(packages))
        assert prepare(runner, "heavy")["ready"] is True
        loaded = runner.load(f"print('at once')\n{IMPORTED}")
        assert loaded.header["logs"] == {"stdout": "at once\n", "stderr": "", "truncated": False}


def test_limits_hold_on_top_of_imported_packages(start: Start, packages: Path) -> None:
    runner = start("--packages", str(packages))
    assert prepare(runner, "heavy")["ready"] is True
    code = "import heavy\ndef evaluate(i, o, t):\n    {}[o]() if o else None\n    return 1.0\n".format(
        "{'memory': lambda: bytearray(300 << 20), 'time': lambda: [0 for _ in iter(int, 1)]}"
    )
    assert runner.load(code).type == "loaded"
    assert body(runner.call({}, "memory", None))["error"]["code"] == "memory_limit"
    assert body(runner.call({}, "time", None, timeout_s=0.3))["error"]["code"] == "timeout"
    assert body(runner.call({}, "", None))["value"] == 1.0


def test_a_load_that_fails_because_of_what_was_imported_is_done_again(start: Start, packages: Path) -> None:
    (packages / "heavy.py").write_text("import builtins\nbuiltins.heavy_was_here = True\n")
    code = (
        "print('loading')\nimport builtins\nif hasattr(builtins, 'heavy_was_here'): {}\n"
        "import heavy\ndef evaluate(i, o, t):\n    return 1.0\n"
    )
    for failure in ("raise RuntimeError('the packages are there')", "import os; os._exit(3)"):
        runner = start("--packages", str(packages))
        assert prepare(runner, "heavy")["ready"] is True
        loaded = runner.load(code.format(failure))
        assert loaded.type == "loaded", body(loaded)
        assert loaded.header["logs"]["stdout"] == "loading\n"
        assert body(runner.call({}, "x", None))["value"] == 1.0


def test_a_load_that_fails_either_way_is_reported_once(start: Start, packages: Path) -> None:
    runner = start("--packages", str(packages))
    assert prepare(runner, "heavy")["ready"] is True
    failed = runner.load("import heavy\nprint('loading')\n1 / 0\n")
    assert (failed.type, body(failed)["error"]["type"]) == ("load_failed", "ZeroDivisionError")
    assert failed.header["logs"]["stdout"] == "importing heavy\nloading\n"


def test_a_load_may_come_before_the_packages_are_there(start: Start, packages: Path) -> None:
    (packages / "odd.py").write_text("import time\ntime.sleep(900)\n")
    runner = start("--packages", str(packages))
    limits = {name: LIMITS[name] for name in ("memory_mb", "processes", "disk_mb")}
    runner.send({"type": "prepare", "id": "p", "modules": ["heavy", "odd"], "timeout_s": 600, "limits": limits})
    assert runner.load(IMPORTED).header["ready"] is False
    assert runner.receive().type == "loaded"
    assert body(runner.call({}, "x", None))["value"] is False


def test_a_process_that_is_gone_when_the_load_comes_is_not_missed(start: Start, packages: Path) -> None:
    runner = start("--packages", str(packages))
    assert prepare(runner, "heavy")["ready"] is True
    pid = runner.process.pid
    (waiting,) = child_pids(pid)
    os.kill(waiting, signal.SIGKILL)
    assert not is_ahead(runner)


def test_nothing_is_left_when_the_host_goes(packages: Path) -> None:
    with RunnerProcess([*COMMAND, "--packages", str(packages)]) as runner:
        assert prepare(runner, "heavy")["ready"] is True
        pid = runner.process.pid
        (waiting,) = child_pids(pid)
        assert runner.end() == 0
    assert not Path(f"/proc/{waiting}").exists()
