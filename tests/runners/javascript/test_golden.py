"""Replays the golden frames of the protocol: this runner must send the same frames."""

import pytest

from tests.runners.conftest import body, golden

VOLATILE = {"load_ms", "run_ms", "peak_memory_kb"}  # fields that differ from run to run

CONVERSATION = [
    ("load-evaluate-javascript", "loaded-evaluate"),
    ("call-evaluate", "result-evaluate"),
    ("call-nothing", "result-nothing"),
    ("call-infinite", "result-infinite"),
    ("call-shared", "result-shared"),
    ("call-hang", "failed-hang"),
]


def send(runner, name):
    message = golden(name)
    runner.send(message["header"], message["body"])


def expect(frame, name):
    message = golden(name)
    assert message["direction"] == "runner -> host"
    assert frame.header.keys() == message["header"].keys()
    assert {k: v for k, v in frame.header.items() if k not in VOLATILE} == {
        k: v for k, v in message["header"].items() if k not in VOLATILE
    }
    assert body(frame) == message["body"]


def test_hello(start):
    header = golden("hello-javascript")["header"]
    found = start().hello.header
    assert {**found, "runtime": ""} == {**header, "runtime": ""}
    assert found["runtime"].startswith("node 24.")


@pytest.mark.slow
def test_conversation(start):
    runner = start()
    for sent, expected in CONVERSATION:
        send(runner, sent)
        expect(runner.receive(), expected)


def test_main_conversation(start):
    runner = start()
    send(runner, "load-main-javascript")
    assert runner.receive().header["contract_source"] == "declared"
    send(runner, "call-main")
    expect(runner.receive(), "result-main")


def test_a_raised_error(start):
    runner = start()
    send(runner, "load-evaluate-javascript")
    runner.receive()
    send(runner, "call-raise")
    frame = runner.receive()
    error = body(frame)["error"]
    expected = golden("failed-raise-python")["body"]["error"]
    assert error.keys() == expected.keys()
    shared = ("code", "message", "type", "line", "hint")
    assert {key: error[key] for key in shared} == {key: expected[key] for key in shared}


def test_a_wide_integer_is_written_in_full(start):
    runner = start()
    send(runner, "load-evaluate-javascript")
    runner.receive()
    send(runner, "call-wide")
    assert body(runner.receive())["value"] == golden("result-wide-python")["body"]["value"]


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.slow
def test_cancel(start, early):
    runner = start()
    send(runner, "load-evaluate-javascript")
    runner.receive()
    send(runner, "call-cancelled")
    if not early:
        with pytest.raises(TimeoutError):
            runner.receive(timeout_s=0.3)
    send(runner, "cancel")
    frame = runner.receive()
    message = golden("failed-cancelled")
    assert (frame.type, frame.header["id"], body(frame)) == ("failed", message["header"]["id"], message["body"])
    send(runner, "call-evaluate")
    expect(runner.receive(), "result-evaluate")
