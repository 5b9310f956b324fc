"""A row leaves nothing behind at its end: no processes, threads or files, even if they try to stay."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.sandbox.linux.watchdog import child_pids
from tests.runners.conftest import RunnerProcess, body
from tests.runners.python.conftest import COMMAND

MARK = "surv1ve"  # this mark is in the command line of every process that tries to outlive its row

DOUBLE_FORK = """
import os, time, sys
def evaluate(inputs, outputs, trace):
    if not outputs:
        return 0.5
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", "import time; time.sleep(1000)", inputs["mark"]])
        os._exit(0)
    time.sleep(0.3)
    return 0.5
"""


def survivors(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def assert_none_left(mark: str) -> None:
    deadline = time.monotonic() + 10
    while survivors(mark) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert survivors(mark) == []


@pytest.fixture
def mark() -> str:
    return f"{MARK}-{os.getpid()}-{time.monotonic_ns()}"


def test_daemon_is_gone_before_the_next_row(runner: RunnerProcess, mark: str) -> None:
    runner.load(DOUBLE_FORK)
    assert body(runner.call({"mark": mark}, True, None))["value"] == 0.5
    assert body(runner.call({"mark": mark}, False, None))["value"] == 0.5
    assert survivors(mark) == []  # the next row has its answer, so the cleaning before this row is complete


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ending", ["timeout", "end of channel", "cancel", "crash"])
def test_daemon_is_gone_however_the_row_ends(runner: RunnerProcess, mark: str, ending: str) -> None:
    last = {"crash": "os.abort()"}.get(ending, "time.sleep(1000)")
    runner.load(DOUBLE_FORK.replace("time.sleep(0.3)", f"time.sleep(0.3); print('ready', flush=True); {last}"))
    name = runner.post({"args": [{"mark": mark}, True, None]}, timeout_s=1.0 if ending == "timeout" else 60)
    if ending in {"end of channel", "cancel"}:
        deadline = time.monotonic() + 10
        while not survivors(mark) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert survivors(mark)
    if ending == "cancel":
        runner.send({"type": "cancel", "id": name})
    if ending == "end of channel":
        assert runner.end() == 0
    else:
        expected = {"timeout": "timeout", "cancel": "cancelled", "crash": "crashed"}[ending]
        assert body(runner.receive())["error"]["code"] == expected
        assert body(runner.call({"mark": mark}, False, None))["value"] == 0.5
    assert_none_left(mark)


def test_fork_tree_is_gone(runner: RunnerProcess, mark: str) -> None:
    code = """
import os, sys, time
def evaluate(inputs, outputs, trace):
    if outputs:
        for _ in range(4):
            os.fork()
            os.setsid() if os.getpid() != os.getsid(0) else None
        if os.getppid() != inputs["zygote"]:
            time.sleep(1000)
    return os.getppid()
"""
    runner.load(code)
    zygote = body(runner.call({"zygote": 0}, False, None))["value"]
    assert body(runner.call({"zygote": zygote}, True, None))["value"] == zygote
    assert body(runner.call({"zygote": zygote}, False, None))["value"] == zygote
    children = child_pids(runner.process.pid)
    assert children == [zygote]


def test_stopped_zygote_goes_on(runner: RunnerProcess) -> None:
    code = "import os, signal\ndef evaluate(a, b, c):\n    if b:\n        os.kill(os.getppid(), signal.SIGSTOP)\n    return 0.5\n"
    runner.load(code)
    assert body(runner.call({}, True, None))["value"] == 0.5
    assert body(runner.call({}, False, None))["value"] == 0.5


def test_killed_zygote_ends_the_sandbox(runner: RunnerProcess) -> None:
    code = "import os, signal, time\ndef evaluate(a, b, c):\n    os.kill(os.getppid(), 9)\n    time.sleep(1)\n    return 0.5\n"
    runner.load(code)
    runner.post({"args": [{}, 1, None]})
    runner.process.wait(20)
    assert runner.process.returncode != 0


def test_kill_everything_inside_a_pid_namespace(start: Any) -> None:
    unshare = shutil.which("unshare")
    assert unshare is not None
    command = [unshare, "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc", *COMMAND]
    runner = RunnerProcess(command)
    try:
        runner.load(
            "import os, time\ndef evaluate(a, b, c):\n    if b:\n        os.kill(-1, 9)\n        time.sleep(5)\n    return os.getpid()\n"
        )
        assert body(runner.call({}, False, None))["value"] > 1
        runner.post({"args": [{}, True, None]})
        assert runner.process.wait(20) != 0  # the runner cannot continue, but must not hang
    finally:
        runner.close()


def test_plain_runner_keeps_to_its_own_directory(runner: RunnerProcess, tmp_path: Path) -> None:
    """Without `--private-tmp`, the runner empties only its own directory."""
    outside = tmp_path / "outside"
    outside.write_text("mine")
    code = "import os, tempfile\ndef evaluate(a, b, c):\n    open(a, 'a').write('x')\n    open('own', 'w').close()\n    return [os.getcwd(), tempfile.gettempdir(), os.listdir('.')]\n"
    runner.load(code)
    cwd, temporary, listing = body(runner.call(str(outside), 1, None))["value"]
    assert cwd == temporary
    assert listing == ["own"]
    assert body(runner.call(str(outside), 1, None))["value"][2] == ["own"]
    assert outside.read_text() == "minexx"
    assert Path(cwd).is_dir()
    runner.end()
    assert not Path(cwd).exists()


def test_death_is_noticed_while_a_child_holds_the_result_channel(runner: RunnerProcess) -> None:
    code = "import os, time\ndef evaluate(a, b, c):\n    if b and os.fork() == 0:\n        time.sleep(1000)\n    if b:\n        os._exit(3)\n    return 0.5\n"
    runner.load(code)
    error = body(runner.call({}, True, None, timeout_s=60))["error"]
    assert (error["code"], "status 3" in error["message"]) == ("crashed", True)
    assert body(runner.call({}, False, None))["value"] == 0.5
