"""Starts a runner as a plain process, and exchanges frames with it over pipes, as a host would."""

import json
import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from evaluator_host.engine.sandbox import protocol
from evaluator_host.types.json_values import encode_json

REPOSITORY = Path(__file__).resolve().parents[2]
RUNTIMES = REPOSITORY / "runtimes"
FRAMES = RUNTIMES / "frames"
LIMITS = {"memory_mb": 256, "processes": 32, "disk_mb": 64, "log_kb": 64, "result_kb": 1024}


class RunnerEnded(Exception):
    """The runner closed its channel; the message is the runner's standard error."""


class RunnerProcess:
    """A runner as a plain process, with pipes as its channel.

    Attributes:
      process: The runner itself, for signals and exit codes.
      hello: The first frame that the runner sent.
    """

    def __init__(
        self, command: Sequence[str], *, env: dict[str, str] | None = None, pass_fds: Sequence[int] = ()
    ) -> None:
        self._decoder = protocol.FrameDecoder()
        self._frames: deque[protocol.Frame] = deque()
        self._stderr = os.memfd_create("runner-stderr")
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=dict(os.environ) if env is None else env,
            bufsize=0,
            pass_fds=pass_fds,
        )
        self._calls = 0
        assert self.process.stdout is not None
        self._readable = select.poll()  # in a long run, descriptors have higher numbers than `select.select` accepts
        self._readable.register(self.process.stdout, select.POLLIN)
        try:
            self.hello = self.receive()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def stderr(self) -> str:
        """Return all that the runner has written to its standard error so far."""
        size = os.fstat(self._stderr).st_size
        return os.pread(self._stderr, size, 0).decode("utf-8", "replace")

    def send(self, header: dict[str, Any], body: Any = None) -> None:
        """Send one frame; `body` is a JSON value, or bytes that are sent unchanged."""
        raw = body if isinstance(body, bytes) else b"" if body is None else encode_json(body)
        self.send_bytes(protocol.encode(header, raw))

    def send_bytes(self, data: bytes) -> None:
        """Write bytes, which need not be a frame, to the channel."""
        assert self.process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[os.write(self.process.stdin.fileno(), view) :]

    def receive(self, *, timeout_s: float = 30.0) -> protocol.Frame:
        """Return the next frame.

        Raises:
          RunnerEnded: the channel ended before a frame arrived.
          TimeoutError: no complete frame arrived in time.
        """
        assert self.process.stdout is not None
        deadline = time.monotonic() + timeout_s
        while not self._frames:
            left = deadline - time.monotonic()
            if left <= 0 or not self._readable.poll(left * 1000):
                raise TimeoutError(f"no frame within {timeout_s} s; stderr: {self.stderr}")
            data = os.read(self.process.stdout.fileno(), 1 << 18)
            if not data:
                raise RunnerEnded(self.stderr)
            self._frames.extend(self._decoder.feed(data))
        return self._frames.popleft()

    def load(self, code: str, *, language: str = "python", **header: Any) -> protocol.Frame:
        """Send `load` and return the answer; keywords override the default fields."""
        limits = {**LIMITS, **header.pop("limits", {})}
        bundle = header.pop("bundle", None)
        more = header.pop("body", {})
        fields = {"contract": "auto", "entry": None, "policy": "none", "timeout_s": 20, "check": False, **header}
        self.send(
            {"type": "load", "id": "load", "language": language, "limits": limits, **fields},
            {"code": code, "bundle": bundle, **more},
        )
        return self.receive()

    def post(self, body: Any, *, timeout_s: float = 10.0, share: str | None = None, id: str | None = None) -> str:  # noqa: A002
        """Send `call`, and return the call's id without waiting for the answer."""
        self._calls += 1
        name = id or f"call-{self._calls}"
        self.send({"type": "call", "id": name, "timeout_s": timeout_s, "share": share}, body)
        return name

    def call(self, *args: Any, timeout_s: float = 10.0, share: str | None = None) -> protocol.Frame:
        """Call the evaluator with positional arguments and return the answer."""
        self.post({"args": list(args)}, timeout_s=timeout_s, share=share)
        return self.receive(timeout_s=timeout_s + 20)

    def call_named(self, named: dict[str, Any], *, exact: bool = True, timeout_s: float = 10.0) -> protocol.Frame:
        """Call `main` with named variables, and return the answer. `exact` is False if the variables were made
        from inputs and outputs.
        """
        self.post({"named": named, "exact": exact}, timeout_s=timeout_s)
        return self.receive(timeout_s=timeout_s + 20)

    def end(self, *, timeout_s: float = 10.0) -> int:
        """Close the channel, as a host does at its end, and return the runner's exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(timeout_s)

    def close(self) -> None:
        """Close the channel, and kill the runner if it does not end by itself."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self._stderr >= 0:
            os.close(self._stderr)
            self._stderr = -1


def body(frame: protocol.Frame) -> Any:
    return json.loads(frame.body) if frame.body else None


def golden(name: str) -> dict[str, Any]:
    """Return the golden message `{"direction", "header", "body"}` in the file with this name, given without its suffix."""
    message: dict[str, Any] = json.loads((FRAMES / f"{name}.json").read_text("utf-8"))
    return message
