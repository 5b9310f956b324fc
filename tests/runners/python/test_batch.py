"""With `share`, the rows of a request run in one process, but each row has its own logs and failures."""

from typing import Any

import pytest

from tests.runners.conftest import RunnerProcess, body

COUNTING = """
import os, sys, time
COUNT = [0]
def evaluate(inputs, outputs, trace):
    COUNT[0] += 1
    if outputs is not None:
        exec(outputs)
    return [os.getpid(), COUNT[0]]
"""


def post(runner: RunnerProcess, code: str | None = None, *, share: str | None, timeout_s: float = 10.0) -> str:
    return runner.post({"args": [{}, code, None]}, share=share, timeout_s=timeout_s)


def values(runner: RunnerProcess, count: int) -> list[Any]:
    return [body(runner.receive()).get("value") for _ in range(count)]


def test_calls_of_one_share_run_in_one_process(runner: RunnerProcess) -> None:
    runner.load(COUNTING)
    for share in ("a", "a", "a", "b", "b", None, None, "b"):
        post(runner, share=share)
    found = values(runner, 8)
    assert [count for _, count in found] == [1, 2, 3, 1, 2, 1, 1, 1]
    assert len({pid for pid, _ in found}) == 5


def test_a_share_goes_on_while_it_is_not_idle(runner: RunnerProcess) -> None:
    runner.load(COUNTING)
    for expected in (1, 2, 3):
        post(runner, share="a")
        assert values(runner, 1)[0][1] == expected


def test_an_idle_share_ends(runner: RunnerProcess) -> None:
    runner.load(COUNTING)
    post(runner, share="a")
    assert values(runner, 1)[0][1] == 1
    post(runner, "time.sleep(1.5)", share=None)
    values(runner, 1)
    post(runner, share="a")
    assert values(runner, 1)[0][1] == 1


def test_logs_belong_to_their_row(runner: RunnerProcess) -> None:
    runner.load(COUNTING)
    for index in range(100):
        code = f"print('out', {index})" + (f"; print('err', {index}, file=sys.stderr)" if index % 3 == 0 else "")
        post(runner, None if index % 7 == 6 else code, share="a")
    for index in range(100):
        logs = runner.receive().header["logs"]
        if index % 7 == 6:
            assert logs is None
        else:
            assert logs["stdout"] == f"out {index}\n"
            assert logs["stderr"] == (f"err {index}\n" if index % 3 == 0 else "")


def test_a_failing_row_does_not_take_the_others_along(runner: RunnerProcess) -> None:
    runner.load(COUNTING)
    for code in (None, "1 / 0", None, "os.abort()", None, "while True: pass", None, None):
        post(runner, code, share="a", timeout_s=0.5)
    answers = [runner.receive() for _ in range(8)]
    codes = [body(answer).get("error", {}).get("code") for answer in answers]
    assert codes == [None, "user_exception", None, "crashed", None, "timeout", None, None]
    assert [answer.header["id"] for answer in answers] == [f"call-{n}" for n in range(1, 9)]
    counts = [body(answer)["value"][1] for answer in answers if answer.type == "result"]
    assert counts == [1, 3, 1, 1, 2]


def test_cancel_in_a_share(runner: RunnerProcess) -> None:
    runner.load(COUNTING)
    ids = [post(runner, code, share="a") for code in ("time.sleep(0.3)", None, None)]
    runner.send({"type": "cancel", "id": ids[1]})
    answers = [runner.receive() for _ in range(3)]
    assert [body(answer).get("error", {}).get("code") for answer in answers] == [None, "cancelled", None]


def test_many_rows_with_large_bodies(runner: RunnerProcess) -> None:
    runner.load("def evaluate(inputs, outputs, trace):\n    return [len(inputs), outputs]\n")
    for index in range(20):
        runner.post({"args": ["x" * 300_000, index, None]}, share="a")
    assert values(runner, 20) == [[300_000, index] for index in range(20)]


@pytest.mark.long
def test_ten_thousand_rows(runner: RunnerProcess) -> None:
    runner.load("def evaluate(inputs, outputs, trace):\n    return outputs\n")
    sent = received = 0
    while received < 10_000:
        while sent < 10_000 and sent - received < 64:
            runner.post({"args": [{}, sent, None]}, share="a")
            sent += 1
        assert body(runner.receive())["value"] == received
        received += 1
