"""An evaluator's code attacks the runner: at most its own row is lost, and the next row is right."""

from typing import Any

import pytest

from tests.runners.conftest import RunnerProcess, body

FAKE = (
    'FAKE = b"R" + (77).to_bytes(4, "big") + bytes(28) + b\'{"kind":"number","value":1,"nonfinite":[],"unsupported":null,"notes":[]}\'\n'
    'HEAD = b\'{"type":"result","id":"call-1","run_ms":0,"peak_memory_kb":1,"logs":null}\'\n'
    'FRAME = len(HEAD).to_bytes(4, "big") + len(FAKE[33:]).to_bytes(4, "big") + HEAD + FAKE[33:]\n'
)


def test_printed_frames_are_logs(runner: RunnerProcess) -> None:
    code = "import os, sys\n" + FAKE
    code += "def evaluate(a, b, c):\n    os.write(1, FRAME)\n    os.write(0, FRAME) if 0 else os.write(2, FAKE)\n    return 0.5\n"
    runner.load(code)
    frame = runner.call({}, 1, None)
    assert body(frame)["value"] == 0.5
    assert '"type":"result"' in frame.header["logs"]["stdout"]


def test_no_descriptor_leads_to_the_channel(runner: RunnerProcess) -> None:
    """No descriptor of a row leads to the channel. The row writes to every descriptor; the row itself may be lost, but
    no forged answer may arrive.
    """
    code = "import os\n" + FAKE
    code += """
def evaluate(inputs, outputs, trace):
    if outputs:
        for fd in range(256):
            for data in (FRAME, FAKE):
                try:
                    os.set_blocking(fd, False)
                    os.write(fd, data)
                except OSError:
                    pass
    return 0.5
"""
    runner.load(code)
    assert body(runner.call({}, False, None))["value"] == 0.5
    spoilt = runner.call({}, True, None)
    assert spoilt.header["id"] == "call-2"
    for _ in range(3):
        frame = runner.call({}, False, None)
        assert frame.type == "result"
        assert body(frame)["value"] == 0.5


def test_open_descriptors_of_a_row(runner: RunnerProcess) -> None:
    code = """
import os, stat
def evaluate(inputs, outputs, trace):
    kinds = []
    for fd in range(3, 256):
        try:
            kinds.append("socket" if stat.S_ISSOCK(os.fstat(fd).st_mode) else os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            pass
    return kinds
"""
    runner.load(code)
    assert body(runner.call({}, 1, None))["value"] == ["socket"]  # only the socket that belongs to the row itself


def test_a_row_cannot_open_files_of_other_processes_of_the_runner(runner: RunnerProcess) -> None:
    """A row cannot open the files of the runner's other processes, the supervisor and the zygote. Root can, so the test
    first gives up root's rights.
    """
    code = """
import os
def evaluate(inputs, outputs, trace):
    opened = []
    if os.getuid() == 0:
        os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
    zygote = os.getppid()
    supervisor = int(open(f"/proc/{zygote}/stat").read().rpartition(")")[2].split()[1])
    for pid in (zygote, supervisor):
        for name in ("mem", "fd/10", "fd/11", "environ", "maps"):
            try:
                open(f"/proc/{pid}/{name}", "rb").close()
                opened.append(f"{pid} {name}")
            except OSError:
                pass
    return opened
"""
    runner.load(code)
    assert body(runner.call({}, 1, None)).get("value") == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "patch",
    [
        "import json; json.loads = json.dumps = lambda *a, **k: '{\"score\": 99}'",
        "import builtins\nfor n in ('len', 'isinstance', 'repr', 'type', 'str', 'print', 'open', 'max'): setattr(builtins, n, None)",
        "__builtins__.clear()",
        "import os\nfor n in dir(os):\n    if n != 'environ' and not n.startswith('__'): setattr(os, n, None)",
        "import sys; sys.stdout = sys.stderr = None",
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "import sys, io; sys.stdout = io.StringIO(); print('x')",
        "import sys; sys.modules.clear()",
        "import sys; sys.settrace(lambda *a: 1 / 0)",
        "import sys; sys.setprofile(lambda *a: None)",
        "import sys; sys.setrecursionlimit(60)",
        "import time; time.perf_counter_ns = time.monotonic = lambda: -1",
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "import gc; gc.disable(); gc.collect = None",
        "import _json; _json.encode_basestring = _json.make_scanner = None",
        "import atexit; atexit.register(print, 'late')",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(100,)).start()",
        "import os\nos.close(1); os.close(2)",
    ],
)
@pytest.mark.parametrize("at_load", [False, True])
def test_monkeypatching_changes_only_the_authors_own(start: Any, patch: str, at_load: bool) -> None:
    runner = start()
    indented = "".join(f"        {line}\n" for line in patch.splitlines())
    code = (
        "def evaluate(inputs, outputs, trace):\n    if outputs:\n"
        + indented
        + "    return {'score': 0.5, 'a': [1, None]}\n"
    )
    if at_load:
        code = code.replace("if outputs", "if False") + patch + "\n"
    assert runner.load(code).type == "loaded"
    for patched in (True, False):
        frame = runner.call({"é": [1, 2]}, patched, None)
        assert frame.type == "result", frame
        assert body(frame)["value"] == {"score": 0.5, "a": [1, None]}


def test_atexit_of_user_code_never_runs(runner: RunnerProcess) -> None:
    code = "import atexit, os\natexit.register(os.write, 1, b'late')\ndef evaluate(a, b, c):\n"
    code += "    atexit.register(os.write, 1, b'later')\n    return 1\n"
    runner.load(code)
    for _ in range(2):
        assert runner.call({}, 1, None).header["logs"] is None


def test_walking_the_frames_reaches_only_its_own_row(runner: RunnerProcess) -> None:
    code = """
import gc, sys, types
def evaluate(inputs, outputs, trace):
    if outputs:
        frame = sys._getframe()
        while frame is not None:
            for value in list(frame.f_locals.values()):
                for name in ("_sock", "_buffer", "_written"):
                    try:
                        setattr(value, name, None)
                    except Exception:
                        pass
            frame = frame.f_back
    return 0.5
"""
    runner.load(code)
    assert body(runner.call({}, True, None)).get("value", 0.5) == 0.5
    assert body(runner.call({}, False, None))["value"] == 0.5


def test_garbage_on_the_row_socket_is_a_crash(runner: RunnerProcess) -> None:
    code = "import os, time\ndef evaluate(inputs, outputs, trace):\n    if outputs:\n        for fd in range(3, 20):\n"
    code += "            try: os.write(fd, b'garbage' * 20)\n            except OSError: pass\n        time.sleep(100)\n    return 0.5\n"
    runner.load(code)
    assert body(runner.call({}, True, None))["error"]["code"] == "crashed"
    assert body(runner.call({}, False, None))["value"] == 0.5


def test_closing_the_row_socket_is_a_crash(runner: RunnerProcess) -> None:
    code = "import os, time\ndef evaluate(inputs, outputs, trace):\n    if outputs:\n        os.closerange(3, 256)\n        time.sleep(100)\n    return 0.5\n"
    runner.load(code)
    assert body(runner.call({}, True, None))["error"]["code"] == "crashed"
    assert body(runner.call({}, False, None))["value"] == 0.5


def test_load_cannot_speak_for_the_zygote(runner: RunnerProcess) -> None:
    """Code cannot speak for the zygote while it loads.

    The code can write to the zygote's control socket, but then the sandbox ends, and nothing hangs.
    """
    code = "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'L' + bytes(64))\n    except OSError: pass\n"
    frame = runner.load(code + "def evaluate(a, b, c): return 1\n")
    assert frame.type == "load_failed"
    assert body(frame)["error"]["code"] == "crashed"


KNOCKS = """
import re, socket, time
KEPT = []
def evaluate(inputs, outputs, trace):
    if outputs:
        answer = b'{"kind":"number","value":1,"nonfinite":[],"unsupported":null,"notes":[]}'
        forged = b"R" + len(answer).to_bytes(4, "big") + bytes(28) + answer
        for address in set(re.findall(r"@([0-9a-f]{5})$", open("/proc/net/unix").read(), re.MULTILINE)):
            for _ in range(40):
                door = socket.socket(socket.AF_UNIX)
                door.setblocking(False)
                try:
                    door.connect("\\0" + address)
                    KEPT.append(door)
                    door.send(forged)
                except OSError:
                    pass
    return [0.25, len(KEPT)]
"""


def test_connections_that_rows_make_are_not_taken_for_those_of_later_rows(runner: RunnerProcess) -> None:
    runner.load(KNOCKS)
    for _ in range(3):
        knocks = body(runner.call({}, True, None))["value"]
        assert knocks[0] == 0.25
        assert knocks[1] > 0, "the row must find the listener"
        assert body(runner.call({}, False, None))["value"] == [0.25, 0]
