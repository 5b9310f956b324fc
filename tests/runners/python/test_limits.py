"""The runner keeps its limits for output, memory and processes, and gives up its rights when it starts."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runners.conftest import RunnerEnded, RunnerProcess, body
from tests.runners.python.conftest import COMMAND, RUNNER

FLOOD = """
import os
def evaluate(inputs, outputs, trace):
    chunk = inputs["text"].encode("latin-1") * 65536
    for _ in range(outputs):
        for fd in inputs["fds"]:
            os.write(fd, chunk)
    return 0.5
"""


@pytest.fixture(scope="module")
def anyones_command() -> Iterator[list[str]]:
    """Yield the runner's command with an interpreter and files that every user can read, because root's interpreter may
    be in root's home.
    """
    dropped = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    check = "import select, sys; sys.exit(sys.version_info < (3, 11))"
    pythons = ("/usr/bin/python3", "/usr/local/bin/python3", sys.executable)
    probes = {one: subprocess.run([*dropped, one, "-I", "-S", "-c", check], capture_output=True) for one in pythons}
    python = next(one for one, probe in probes.items() if probe.returncode == 0)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        shutil.copytree(RUNNER.parent, f"{folder}/python", ignore=shutil.ignore_patterns("__pycache__"))
        yield [python, *COMMAND[1:-1], f"{folder}/python/runner.py"]


def resident_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.long
@pytest.mark.parametrize("fds", [[1], [2], [1, 2]])
@pytest.mark.slow
def test_a_gigabyte_of_output(runner: RunnerProcess, fds: list[int]) -> None:
    runner.load(FLOOD)
    runner.call({"text": "x", "fds": fds}, 1, None)
    before = resident_kb(runner.process.pid)
    frame = runner.call({"text": "x", "fds": fds}, (1 << 30) // 65536 // len(fds), None, timeout_s=60)
    assert body(frame)["value"] == 0.5
    logs = frame.header["logs"]
    assert logs["truncated"] is True
    assert [len(logs["stdout"]), len(logs["stderr"])] == [65536 * (fd in fds) for fd in (1, 2)]
    assert resident_kb(runner.process.pid) < before + 4096
    frame = runner.call({"text": "y", "fds": [1]}, 0, None)
    assert frame.header["logs"] is None


@pytest.mark.parametrize("text", ["\xff", "\x01", '"'])
def test_output_that_grows_as_json_fits_the_header(runner: RunnerProcess, text: str) -> None:
    runner.load(FLOOD, limits={"log_kb": 256})
    frame = runner.call({"text": text, "fds": [1, 2]}, 8, None)
    assert body(frame)["value"] == 0.5
    assert frame.header["logs"]["truncated"] is True
    assert len(frame.header["logs"]["stdout"]) >= 65536


def test_log_limit_is_exact(runner: RunnerProcess) -> None:
    runner.load("def evaluate(a, b, c):\n    print(a, end='')\n    return 1\n", limits={"log_kb": 1})
    frame = runner.call("x" * 1024, 1, None)
    assert frame.header["logs"] == {"stdout": "x" * 1024, "stderr": "", "truncated": False}
    frame = runner.call("x" * 1025, 1, None)
    assert frame.header["logs"] == {"stdout": "x" * 1024, "stderr": "", "truncated": True}


@pytest.mark.long
@pytest.mark.slow
def test_million_prints(runner: RunnerProcess) -> None:
    runner.load("def evaluate(a, b, c):\n    for i in range(200_000): print('line', i)\n    return 1\n")
    frame = runner.call({}, 1, None)
    assert body(frame)["value"] == 1
    assert frame.header["logs"]["stdout"].startswith("line 0\nline 1\n")


def test_idle_tree_is_small(start: Any) -> None:
    """An idle sandbox is small: before and after a load, all its processes together take at most 20 MB."""
    runner = start()

    def total_kb(pid: int) -> int:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):  # the process of the last row has just ended
            return 0
        return int(rollup.partition("Pss:")[2].split()[0]) + sum(total_kb(int(child)) for child in children)

    assert total_kb(runner.process.pid) <= 20_480
    runner.load("def evaluate(a, b, c): return 1\n")
    runner.call({}, 1, None)
    runner.call({}, 1, None)
    assert total_kb(runner.process.pid) <= 20_480


@pytest.mark.skipif(os.getuid() != 0, reason="only root can drop to another user")
def test_drop_to_gives_everything_up(anyones_command: list[str]) -> None:
    code = """
import os
def evaluate(inputs, outputs, trace):
    status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines() if ":" in line)
    return [os.getresuid(), os.getresgid(), os.getgroups(), status["CapEff"].strip(), status["CapPrm"].strip()]
"""
    with RunnerProcess([*anyones_command, "--drop-to", "65534:65533"]) as runner:
        runner.load(code)
        value = body(runner.call({}, 1, None))["value"]
    assert value == [[65534] * 3, [65533] * 3, [], "0" * 16, "0" * 16]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can drop to another user")
def test_drop_to_root_is_refused() -> None:
    with pytest.raises(RunnerEnded, match="still has the users"):
        RunnerProcess([*COMMAND, "--drop-to", "0:0"])


def test_drop_to_without_the_right_is_refused(anyones_command: list[str]) -> None:
    command = list(COMMAND)
    if os.getuid() == 0:
        setpriv = shutil.which("setpriv")
        assert setpriv is not None
        command = [setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups", *anyones_command]
    with pytest.raises(RunnerEnded, match="cannot become"):
        RunnerProcess([*command, "--drop-to", "1:1"])


def test_unknown_argument_is_refused() -> None:
    with pytest.raises(RunnerEnded, match="--other"):
        RunnerProcess([*COMMAND, "--other"])


@pytest.mark.skipif(os.getuid() != 0, reason="needs the id of a user who has no other processes")
def test_process_limit_of_an_own_user(anyones_command: list[str]) -> None:
    code = """
import os, threading, time
def evaluate(inputs, outputs, trace):
    if outputs == "fork":
        while True:
            if os.fork() == 0:
                time.sleep(100)
    if outputs == "thread":
        while True:
            threading.Thread(target=time.sleep, args=(100,)).start()
    return 0.5
"""
    with RunnerProcess([*anyones_command, "--drop-to", "54321:54321", "--limit-processes"]) as runner:
        runner.load(code, limits={"processes": 16})
        for bomb in ("fork", "thread", "fork"):
            error = body(runner.call({}, bomb, None))["error"]
            assert error["code"] == "process_limit"
            assert body(runner.call({}, "no", None))["value"] == 0.5


@pytest.mark.skipif(os.getuid() != 0, reason="needs the id of a user who has no other processes")
@pytest.mark.slow
def test_a_machine_that_lets_nobody_fork_is_not_the_evaluators_fault(anyones_command: list[str]) -> None:
    prlimit = shutil.which("prlimit")
    assert prlimit is not None
    two_processes = [prlimit, "--nproc=2"]  # enough only for the runner and the loaded evaluator
    with RunnerProcess([*two_processes, *anyones_command, "--drop-to", "54322:54322"]) as runner:
        assert runner.load("def evaluate(a, b, c):\n    return 0.5\n").type == "loaded"
        with pytest.raises(RunnerEnded, match="no process may start another one"):
            runner.call({}, 1, None)
        assert runner.process.wait(5) == 72


def test_private_tmp_is_emptied_after_each_row(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    assert unshare is not None
    # the runner gets a mount namespace with its own /tmp and /dev/shm, as backends make it; the checkout itself may be
    # in /tmp
    script = 'mount --bind "$0" /mnt && mount -t tmpfs none /tmp && mount -t tmpfs none /dev/shm && cd / && exec "$@"'
    python, *options, runner_file = COMMAND
    inside = [os.path.realpath(python), *options, f"/mnt/{Path(runner_file).name}", "--private-tmp"]
    folder = str(Path(runner_file).parent)
    command = [unshare, "--user", "--map-root-user", "--mount", "sh", "-c", script, folder, *inside]
    code = """
import os, tempfile
def evaluate(inputs, outputs, trace):
    found = [os.getcwd(), sorted(os.listdir("/tmp")), sorted(os.listdir("/dev/shm"))]
    open("/tmp/left", "w").close()
    os.mkdir("/dev/shm/left")
    tempfile.mkdtemp()
    return found
"""
    with RunnerProcess(command) as runner:
        runner.load(code)
        for _ in range(3):
            assert body(runner.call({}, 1, None))["value"] == ["/tmp", [], []]
