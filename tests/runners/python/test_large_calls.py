"""The runner passes the body of a large call on to the row while the body arrives: completely, in order and without a
long wait.
"""

import os
import socket
import sys
import time
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Any

import psutil
import pytest

from evaluator_host.engine.sandbox import protocol
from evaluator_host.engine.sandbox.linux.watchdog import child_pids
from evaluator_host.types.json_values import encode_json
from tests.runners.conftest import RunnerProcess, body
from tests.runners.python.conftest import COMMAND, RUNNER

SUMS = "import hashlib\ndef evaluate(a, b, c):\n    return [len(a), hashlib.sha256(a.encode()).hexdigest()[:8], b]\n"
LARGE = 3_000_000
PATIENT = f"""
import sys
sys.path.insert(0, {str(RUNNER.parent)!r})
from evaluator_runner import rows, startup
rows._PASS_ON_S = 1000.0
startup.run([])
"""


def waiting_row(runner: RunnerProcess) -> int:
    """Wait until there is a process for the next row, and return it."""
    for _ in range(1000):
        for zygote in child_pids(runner.process.pid):
            for row in child_pids(zygote):
                if psutil.Process(row).status() == psutil.STATUS_SLEEPING:
                    return row
        time.sleep(0.01)
    raise AssertionError("no process waits for the next row")


def call_frame(name: str, *args: Any, share: str | None = None) -> bytes:
    header = {"type": "call", "id": name, "timeout_s": 30, "share": share}
    return protocol.encode(header, encode_json({"args": list(args)}))


@pytest.fixture
def sums(runner: RunnerProcess) -> RunnerProcess:
    assert runner.load(SUMS).type == "loaded"
    return runner


@pytest.mark.parametrize("share", [None, "batch"])
def test_large_and_small_calls_in_turns_arrive_whole_and_in_order(sums: RunnerProcess, share: str | None) -> None:
    texts = ["é" * LARGE, "x", "y" * 300_000, "", "z" * (LARGE + 1)]
    expected = [body(sums.call(text, number, None))["value"] for number, text in enumerate(texts)]
    sums.send_bytes(
        b"".join(call_frame(str(number), text, number, None, share=share) for number, text in enumerate(texts))
    )
    for number, text in enumerate(texts):
        frame = sums.receive()
        assert frame.header["id"] == str(number)
        assert body(frame)["value"] == expected[number]
        assert expected[number][0] == len(text)


def test_a_host_that_stops_in_the_middle_is_waited_for(sums: RunnerProcess) -> None:
    frame = call_frame("slow", "ab" * LARGE, 1, None)
    for start, pause_s in ((0, 0.2), (100_000, 0.8), (2_000_000, 0.1), (4_000_000, 0.0)):
        end = {0: 100_000, 100_000: 2_000_000, 2_000_000: 4_000_000}.get(start, len(frame))
        sums.send_bytes(frame[start:end])
        time.sleep(pause_s)
    assert body(sums.receive())["value"][0] == 2 * LARGE
    assert body(sums.call("x", 2, None))["value"][0] == 1


def test_a_row_that_does_not_read_can_be_cancelled(sums: RunnerProcess) -> None:
    row = waiting_row(sums)
    os.kill(row, SIGSTOP)
    sums.send_bytes(call_frame("stuck", "x" * LARGE, 1, None))
    sums.send({"type": "cancel", "id": "stuck"})
    frame = sums.receive(timeout_s=10)
    assert (frame.header["id"], body(frame)["error"]["code"]) == ("stuck", "cancelled")
    assert body(sums.call("x" * LARGE, 2, None))["value"][0] == LARGE


@pytest.mark.slow
def test_a_row_that_reads_late_gets_its_call(sums: RunnerProcess) -> None:
    row = waiting_row(sums)
    os.kill(row, SIGSTOP)
    sums.send_bytes(call_frame("late", "x" * LARGE, 1, None))
    time.sleep(1.0)
    os.kill(row, SIGCONT)
    assert body(sums.receive())["value"][0] == LARGE


def test_a_row_that_dies_before_it_has_its_call_fails_that_call_alone(sums: RunnerProcess) -> None:
    row = waiting_row(sums)
    os.kill(row, SIGSTOP)
    frame = call_frame("lost", "x" * LARGE, 1, None)
    sums.send_bytes(frame[: LARGE // 2])
    os.kill(row, SIGKILL)
    failed = sums.receive()
    assert (failed.header["id"], body(failed)["error"]["code"]) == ("lost", "crashed")
    sums.send_bytes(frame[LARGE // 2 :])
    assert body(sums.call("y" * LARGE, 2, None))["value"][::2] == [LARGE, 2]


def test_the_channel_may_end_within_a_call(sums: RunnerProcess) -> None:
    sums.send_bytes(call_frame("cut", "x" * LARGE, 1, None)[: LARGE // 2])
    assert sums.end() == 0


@pytest.mark.long
@pytest.mark.slow
def test_a_channel_that_is_not_a_pipe_carries_large_calls_too() -> None:
    ours, theirs = socket.socketpair()
    with (
        ours,
        theirs,
        RunnerProcess(
            ["bash", "-c", f'exec "$@" <&{theirs.fileno()}', "bash", *COMMAND], pass_fds=[theirs.fileno()]
        ) as runner,
    ):
        theirs.close()
        runner.send_bytes = ours.sendall  # type: ignore[method-assign]
        assert runner.load(SUMS).type == "loaded"
        assert body(runner.call("x" * LARGE, 1, None))["value"][0] == LARGE


@pytest.mark.slow
def test_nothing_of_a_large_call_is_copied_by_the_supervisor() -> None:
    """The supervisor copies nothing of a large call.

    A copy is kept only if the row's process starts late, and that cannot happen here.
    """
    with RunnerProcess([sys.executable, "-I", "-S", "-B", "-c", PATIENT]) as runner:
        assert runner.load(SUMS).type == "loaded"
        before = peak_kb(runner.process.pid)
        assert body(runner.call("x" * 16 * LARGE, 1, None))["value"][0] == 16 * LARGE
        assert peak_kb(runner.process.pid) - before < 8 * LARGE // 1024


def peak_kb(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0])
