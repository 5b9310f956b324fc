"""The runner calls rows and reports their failures, and a row leaves nothing behind for the next row."""

import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.runners.conftest import RunnerProcess, body

ANY = "def evaluate(inputs, outputs, trace):\n    namespace = {}\n    exec(inputs['code'], namespace)\n    return namespace.get('value')\n"


def run(runner: RunnerProcess, code: str, **options: Any) -> Any:
    return runner.call({"code": code}, None, None, **options)


@pytest.fixture
def loaded(runner: RunnerProcess) -> RunnerProcess:
    assert runner.load(ANY).type == "loaded"
    return runner


def test_arguments_and_logs(runner: RunnerProcess) -> None:
    runner.load(
        "import sys\ndef evaluate(a, b, c):\n    print('out')\n    print('err', file=sys.stderr)\n    return [a, b, c]\n"
    )
    frame = runner.call({"a": [1, 2**70, None, "é"]}, "x", {"spans": {}})
    assert frame.type == "result"
    assert body(frame)["value"] == [{"a": [1, 2**70, None, "é"]}, "x", {"spans": {}}]
    assert frame.header["logs"] == {"stdout": "out\n", "stderr": "err\n", "truncated": False}
    assert frame.header["run_ms"] >= 0
    assert frame.header["peak_memory_kb"] > 1000


def test_large_row_and_large_result(runner: RunnerProcess) -> None:
    runner.load("def evaluate(a, b, c):\n    return a\n", limits={"result_kb": 8192})
    text = "é" * 2_000_000
    assert body(runner.call(text, 1, None))["value"] == text
    assert body(runner.call("short", 1, None))["value"] == "short"


def test_an_answer_of_several_reads_is_whole_though_its_row_has_ended(runner: RunnerProcess, tmp_path: Path) -> None:
    runner.load(
        "import os, pathlib, time\ndef evaluate(sign, length, c):\n    sign = pathlib.Path(sign)\n"
        "    sign.write_text(str(os.getpid()))\n    while sign.exists():\n        time.sleep(0.01)\n    return 'x' * length\n"
    )
    # the socket can hold `length` bytes, so the row need not wait for a reader
    sign, length = tmp_path / "row", 160_000
    runner.post({"args": [str(sign), length, None]})
    while not (sign.exists() and sign.read_text()):
        time.sleep(0.01)
    row = sign.read_text()
    runner.process.send_signal(signal.SIGSTOP)
    sign.unlink()
    while psutil.Process(int(row)).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    runner.process.send_signal(signal.SIGCONT)
    assert body(runner.receive())["value"] == "x" * length


def test_user_exception_shows_user_frames_only(runner: RunnerProcess) -> None:
    code = """
def inner(x):
    return {"é": 1}["ü"] + x

def evaluate(inputs, outputs, trace):
    try:
        inner(1)
    except KeyError as error:
        raise ValueError("bad row") from error
"""
    runner.load(code)
    error = body(runner.call({}, 1, None))["error"]
    assert (error["code"], error["type"], error["message"]) == ("user_exception", "ValueError", "bad row")
    assert (error["line"], error["column"]) == (9, 9)
    assert error["traceback"] == (
        "Traceback (most recent call last):\n"
        '  File "evaluator.py", line 7, in evaluate\n    inner(1)\n'
        '  File "evaluator.py", line 3, in inner\n    return {"é": 1}["ü"] + x\n           ^^^^^^^^^^^^^\n'
        "KeyError: 'ü'\n"
        "\nThe above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "evaluator.py", line 9, in evaluate\n    raise ValueError("bad row") from error\n'
        "ValueError: bad row\n"
    )


def test_exception_in_a_library_names_the_users_line(runner: RunnerProcess) -> None:
    runner.load("import json\ndef evaluate(a, b, c):\n    return json.loads(b)\n")
    error = body(runner.call({}, "nope", None))["error"]
    assert (error["type"], error["line"], error["column"]) == ("json.decoder.JSONDecodeError", 3, 12)
    assert "decoder.py" not in error["traceback"]


@pytest.mark.parametrize(
    ("code", "error", "kind"),
    [
        ("import sys; sys.exit(0)", "user_exception", "SystemExit"),
        ("raise KeyboardInterrupt", "user_exception", "KeyboardInterrupt"),
        ("raise GeneratorExit", "user_exception", "GeneratorExit"),
        ("f = lambda: f()\nf()", "user_exception", "RecursionError"),
        ("class E(Exception):\n def __str__(self): raise ValueError\nraise E", "user_exception", "E"),
        ("class E(Exception):\n __module__ = 7\n __str__ = None\nraise E", "user_exception", "E"),
        ("x = 'y' * 10**6\nraise ValueError(x)", "user_exception", "ValueError"),
        ("x = bytearray(10**12)", "memory_limit", "MemoryError"),
        ("x = []\nwhile True: x.append(bytearray(10**6))", "memory_limit", "MemoryError"),
        ("raise BlockingIOError(11, 'Resource temporarily unavailable')", "process_limit", "BlockingIOError"),
        ('raise RuntimeError("can\'t start new thread")', "process_limit", "RuntimeError"),
        ("raise OSError(28, 'No space left on device')", "disk_limit", "OSError"),
        ("f = open('big', 'wb')\nfor _ in range(100): f.write(bytes(10**6))", "disk_limit", "OSError"),
        ("import os; os._exit(0)", "crashed", None),
        ("import os; os._exit(7)", "crashed", None),
        ("import os; os.kill(os.getpid(), 11)", "crashed", None),
        ("import os; os.abort()", "crashed", None),
        ("import os; os.kill(os.getpid(), 9)", "crashed", None),
    ],
)
def test_failures_and_the_next_row(loaded: RunnerProcess, code: str, error: str, kind: str | None) -> None:
    frame = run(loaded, code)
    assert frame.type == "failed"
    found = body(frame)["error"]
    assert found["code"] == error
    assert (found["type"] or "").rpartition(".")[2] == (kind or "")
    assert len(found["message"]) <= 4200
    assert len(found["traceback"] or "") <= 16_384
    assert body(run(loaded, "value = 1"))["value"] == 1


def test_crashes_say_how(loaded: RunnerProcess) -> None:
    assert "SIGSEGV" in body(run(loaded, "import os; os.kill(os.getpid(), 11)"))["error"]["message"]
    assert "status 7" in body(run(loaded, "import os; os._exit(7)"))["error"]["message"]
    assert "instead of exiting" in body(run(loaded, "import sys; sys.exit(1)"))["error"]["hint"]


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("input()", "from inputs"),
        ("raise ConnectionRefusedError(111, 'Connection refused')", "no network"),
        (
            "import urllib.error as u; raise u.URLError(OSError(-3, 'Temporary failure in name resolution'))",
            "no network",
        ),
        ("raise OSError(30, 'Read-only file system', '/usr/x')", "below /tmp"),
    ],
)
def test_a_missing_part_of_the_sandbox_gets_a_hint(loaded: RunnerProcess, code: str, hint: str) -> None:
    assert hint in body(run(loaded, code))["error"]["hint"]


def test_result_too_large(loaded: RunnerProcess) -> None:
    error = body(run(loaded, "value = 'x' * (2 << 20)"))["error"]
    assert error["code"] == "result_too_large"
    assert "1024 KB" in error["message"]
    assert body(run(loaded, "value = 'x' * 1000000"))["value"] == "x" * 1_000_000


def test_timeout_with_partial_logs(loaded: RunnerProcess) -> None:
    frame = run(loaded, "print('so far')\nwhile True: pass", timeout_s=0.3)
    assert body(frame)["error"]["code"] == "timeout"
    assert frame.header["logs"]["stdout"] == "so far\n"
    assert frame.header["run_ms"] >= 300
    assert frame.header["peak_memory_kb"] > 1000
    assert body(run(loaded, "value = 1"))["value"] == 1


def test_sigterm_ignoring_loop_is_ended(loaded: RunnerProcess) -> None:
    code = "import signal\nfor s in set(signal.Signals) - {9, 19}: signal.signal(s, signal.SIG_IGN)\nwhile True: pass"
    assert body(run(loaded, code, timeout_s=0.3))["error"]["code"] == "timeout"
    assert body(run(loaded, "value = 1"))["value"] == 1


def test_cancel_running_and_waiting_calls(loaded: RunnerProcess) -> None:
    first = loaded.post({"args": [{"code": "while True: pass"}, 1, None]})
    second = loaded.post({"args": [{"code": "value = 2"}, 1, None]})
    third = loaded.post({"args": [{"code": "value = 3"}, 1, None]})
    loaded.send({"type": "cancel", "id": second})
    loaded.send({"type": "cancel", "id": first})
    loaded.send({"type": "cancel", "id": "unknown"})
    answers = [loaded.receive() for _ in range(3)]
    assert [answer.header["id"] for answer in answers] == [first, second, third]
    assert [body(answer).get("error", {}).get("code") for answer in answers] == ["cancelled", "cancelled", None]
    assert body(answers[2])["value"] == 3


def test_rows_share_nothing(runner: RunnerProcess) -> None:
    code = """
import builtins, os, random, sys
STATE = []
def evaluate(inputs, outputs, trace):
    seen = [len(STATE), hasattr(builtins, "left"), "LEFT" in os.environ, sorted(os.listdir(".")), "left" in sys.modules]
    STATE.append(1)
    builtins.left = 1
    os.environ["LEFT"] = "1"
    os.mkdir("directory"); os.chdir("directory"); open("file", "w").close(); os.chmod(".", 0)
    sys.modules["left"] = sys
    return [seen, random.random()]
"""
    runner.load(code)
    rows = [body(runner.call({}, 1, None))["value"] for _ in range(4)]
    assert all(seen == [0, False, False, [], False] for seen, _ in rows)
    assert len({number for _, number in rows}) == 4


@pytest.mark.long
@pytest.mark.slow
def test_deep_directories_are_removed(loaded: RunnerProcess) -> None:
    code = "import os\nfor _ in range(2000):\n    os.mkdir('d'); os.chdir('d'); open('f', 'w').close()\nvalue = 1"
    assert body(run(loaded, code))["value"] == 1
    assert body(run(loaded, "import os\nvalue = os.listdir('.')"))["value"] == []


@pytest.mark.slow
def test_main_binds_by_name(start: Any) -> None:
    def value(code: str, named: dict[str, Any]) -> Any:
        runner = start()
        assert runner.load(code).type == "loaded"
        decoded = body(runner.call_named(named))
        return decoded["value"] if "value" in decoded else decoded["error"]["code"]

    named = {"completion": "a", "target": "b", "extra": {"x": {"y": [{"z": 1}]}}}
    assert value("def main(target, completion): return [completion, target]", named) == ["a", "b"]
    assert value("def main(target, other=5): return [target, other]", named) == ["b", 5]
    assert value("def main(target, /, completion): return [target, completion]", named) == ["b", "a"]
    assert value("def main(*, target): return target", named) == "b"
    assert value("def main(target, **rest): return sorted(rest)", named) == ["completion", "extra"]
    assert value("def main(): return 1", named) == 1
    assert value("def main(extra): return extra.x.y[0].z + extra['x']['y'][0]['z']", named) == 2
    assert value("def main(extra): return isinstance(extra, dict) and extra.x == {'y': [{'z': 1}]}", named) is True
    assert value("def main(extra): return extra", named) == named["extra"]
    assert value("import copy\ndef main(extra): return copy.deepcopy(extra).x", named) == {"y": [{"z": 1}]}
    assert value("def main(missing): return 1", named) == "missing_input"
    assert value("def main(*, missing): return 1", named) == "missing_input"
    assert value("async def main(target): return target", named) == "b"


def test_missing_input_names_what_there_is(runner: RunnerProcess) -> None:
    runner.load("def main(completion, context): return 1")
    error = body(runner.call_named({"completion": "a", "target": "b"}))["error"]
    assert error["code"] == "missing_input"
    assert "`context`" in error["message"]
    assert "`completion`, `target`" in error["message"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "code",
    [
        "async def evaluate(a, b, c):\n    return 0.5\n",
        "import asyncio\nasync def evaluate(a, b, c):\n    await asyncio.sleep(0)\n    return 0.5\n",
        "async def part():\n    return 0.5\nasync def evaluate(a, b, c):\n    return await part()\n",
        "async def part():\n    return 0.5\ndef evaluate(a, b, c):\n    return part()\n",
        "import asyncio\nasync def part():\n    await asyncio.sleep(0)\n    return 0.5\ndef evaluate(a, b, c):\n    return part()\n",
        "class Later:\n    def __await__(self):\n        yield from ()\n        return 0.5\ndef evaluate(a, b, c):\n    return Later()\n",
        "async def evaluate(a, b, c):\n    import asyncio\n    await asyncio.wait_for(asyncio.sleep(0), 1)\n    return 0.5\n",
    ],
)
def test_awaitables_are_awaited_once(runner: RunnerProcess, code: str) -> None:
    assert runner.load(code).type == "loaded"
    assert body(runner.call({}, 1, None)).get("value") == 0.5


def test_end_of_channel_ends_everything(loaded: RunnerProcess) -> None:
    loaded.post({"args": [{"code": "while True: pass"}, 1, None]})
    assert loaded.end() == 0


def test_malformed_frames_end_the_runner(start: Any) -> None:
    for data in (b"\xff" * 16, b"\x00\x00\x00\x02\x00\x00\x00\x00{]", b"\x00\x00\x00\x02\x00\x00\x00\x00{}"):
        runner = start()
        runner.send_bytes(data)
        assert runner.process.wait(10) != 0
        assert "runner:" in runner.stderr
