"""Replays the golden frames of the protocol: this runner must send the same frames."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic
import pytest

from evaluator_host.engine.sandbox import protocol
from tests.runners.conftest import FRAMES, RUNTIMES, RunnerProcess, body, golden

VOLATILE = {"load_ms", "run_ms", "peak_memory_kb", "evaluation_time"}  # fields that differ from run to run

CONVERSATIONS = [
    ("load-evaluate-python", "loaded-evaluate"),
    ("call-evaluate", "result-evaluate"),
    ("call-nothing", "result-nothing"),
    ("call-infinite", "result-infinite"),
    ("call-wide", "result-wide-python"),
    ("call-shared", "result-shared"),
    ("call-raise", "failed-raise-python"),
    ("call-hang", "failed-hang"),
]


def send(runner: RunnerProcess, name: str) -> None:
    message = golden(name)
    assert message["direction"] == "host -> runner"
    runner.send(message["header"], message["body"])


def masked(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: "…" if key in VOLATILE and isinstance(value, int | float) else value for key, value in fields.items()}


def expect(frame: protocol.Frame, name: str) -> None:
    message = golden(name)
    assert message["direction"] == "runner -> host"
    assert masked(frame.header) == masked(message["header"])
    found, expected = body(frame), message["body"]
    for one in (found, expected):
        if isinstance(one.get("value"), dict):
            one["value"] = masked(one["value"])
    assert found == expected


def test_hello(start: Callable[..., RunnerProcess]) -> None:
    header = golden("hello-python")["header"]
    found = start().hello.header
    assert {**found, "runtime": ""} == {**header, "runtime": ""}
    assert found["runtime"].startswith("python 3.")


def test_conversation(runner: RunnerProcess) -> None:
    for sent, expected in CONVERSATIONS:
        send(runner, sent)
        expect(runner.receive(), expected)


def test_main_conversation(runner: RunnerProcess) -> None:
    send(runner, "load-main-python")
    assert runner.receive().type == "loaded"
    send(runner, "call-main")
    expect(runner.receive(), "result-main")
    send(runner, "call-main-missing")
    expect(runner.receive(), "failed-main-missing-python")


@pytest.mark.slow
def test_uipath_conversation(start: Callable[..., RunnerProcess]) -> None:
    packages = str(Path(pydantic.__file__).parents[1])
    runner = start("--packages", packages, "--sdk", str(RUNTIMES / "python" / "dialects" / "uipath" / "modules"))
    for sent, expected in [
        ("load-uipath-python", "loaded-uipath-python"),
        ("call-uipath", "result-uipath-python"),
        ("call-uipath-criteria", "failed-uipath-criteria-python"),
    ]:
        send(runner, sent)
        expect(runner.receive(), expected)


def test_cancel(runner: RunnerProcess) -> None:
    send(runner, "load-evaluate-python")
    runner.receive()
    send(runner, "call-cancelled")
    send(runner, "cancel")
    frame = runner.receive()
    message = golden("failed-cancelled")
    assert body(frame) == message["body"]
    assert frame.header["id"] == message["header"]["id"]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("load-broken-python", "load_failed-broken-python"),
        ("load-evaluate-missing-python", "loaded-evaluate-missing-python"),
    ],
)
def test_loads(runner: RunnerProcess, sent: str, expected: str) -> None:
    send(runner, sent)
    expect(runner.receive(), expected)


def test_every_golden_frame_is_a_frame() -> None:
    names = sorted(path.stem for path in FRAMES.glob("*.json"))
    assert len(names) > 20
    for name in names:
        message = golden(name)
        assert message["direction"] in {"host -> runner", "runner -> host"}
        encoded = json.dumps(message["body"]).encode() if message["body"] is not None else b""
        frames = list(protocol.FrameDecoder().feed(protocol.encode(message["header"], encoded)))
        assert [frame.header for frame in frames] == [message["header"]]
