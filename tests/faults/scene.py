"""A host process with callers, for tests that cause faults in it from outside."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from evaluator_host.engine.sandbox.linux.watchdog import process_tree
from tests.left_behind import until_nothing_is_left
from tests.processes import command_of
from tests.server import Server

FAST = "def evaluate(inputs, outputs, trace):\n    return 1.0\n"
SLOW = """
import time

def evaluate(inputs, outputs, trace):
    open("begun", "w").close()
    time.sleep(inputs["seconds"])
    return 1.0
"""
HONEST = {429, 503}
_RECOVERS_S = 60
# seconds; not fewer, because most of these checks are requests, which take processor time from the host
_LOOKS_EVERY_S = 0.1


class Scene:
    """One host and its callers. Every call is counted: at the end each call must have had one answer, and the host must
    leave nothing behind.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.threads = ThreadPoolExecutor(32)
        self._rows_before = 0.0

    @property
    def pid(self) -> int:
        return self.server.process.pid

    def evaluate(self, code: str = FAST, *, seconds: float = 0.0, timeout_s: float = 20.0) -> httpx.Response:
        body: dict[str, Any] = {"evaluator": {"code": code, "limits": {"timeout_s": timeout_s}}}
        return self.server.client.post("/v1/evaluate", json={**body, "inputs": {"seconds": seconds}})

    def evaluating(self, *, seconds: float = 3.0, timeout_s: float = 20.0) -> Future[httpx.Response]:
        """Start a call, wait until its row runs, and return the future of the call's response."""
        future = self.threads.submit(self.evaluate, SLOW, seconds=seconds, timeout_s=timeout_s)
        self.until(lambda: future.done() or has_begun(process_tree(self.pid)))
        return future

    def processes(self, word: str) -> list[int]:
        """Return the descendants of the host whose command line contains a word."""
        return [pid for pid in process_tree(self.pid) if pid != self.pid and word.encode() in command_of(pid)]

    def rows(self) -> float:
        """Return how many rows the host has counted in its metrics since `forget_rows`."""
        lines = self.server.client.get("/metrics").text.splitlines()
        counts = (float(line.rpartition(" ")[2]) for line in lines if line.startswith("evaluator_host_rows_total{"))
        return sum(counts) - self._rows_before

    def forget_rows(self) -> None:
        """From now on, ignore the rows that the host has counted so far."""
        self._rows_before += self.rows()

    def gauge(self, name: str) -> float:
        lines = self.server.client.get("/metrics").text.splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"evaluator_host_{name} "))

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def recovered(self) -> float:
        """Make calls until the host answers as it should, check that every earlier refusal was correct, and return how
        many seconds this took.
        """
        started = time.monotonic()
        while (answer := self.evaluate()).status_code != 200:
            assert answer.status_code in HONEST, answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert time.monotonic() < started + _RECOVERS_S, answer.text
            time.sleep(_LOOKS_EVERY_S)
        assert answer.json()["score"] == 1.0, answer.text
        return time.monotonic() - started

    def until(self, reached: Callable[[], bool], *, seconds: float = 20) -> None:
        end = time.monotonic() + seconds
        while not reached():
            assert time.monotonic() < end, self.server.log
            time.sleep(_LOOKS_EVERY_S)


def has_begun(pids: Iterable[int]) -> bool:
    """Return whether a row of `SLOW` runs in a sandbox to which one of these processes belongs."""
    # unlike `Path.exists`, this does not raise an error if a process has just ended
    return any(os.path.exists(f"/proc/{pid}/root/tmp/begun") for pid in pids)  # noqa: PTH110


@contextmanager
def scene(
    folder: Path, *, backend: str = "bubblewrap", docker: list[str] | None = None, **options: Any
) -> Iterator[Scene]:
    """Run a host, then stop it as an operator would; fail if it does not end properly or leaves anything behind.

    Args:
      folder: Folder for its log.
      backend: Backend of its sandboxes.
      docker: Command line for the engine on which to look for leftovers; by default no engine is checked.
      options: Options of `Server`.
    """
    environment = {"EVALUATOR_HOST_IDLE_SANDBOXES": "0", **options.pop("environment", {})}
    with Server(backend, log=folder / "host.log", environment=environment, **options) as server:
        yield Scene(server)
        assert server.stop() == 0, server.log
    until_nothing_is_left(server.process.pid, docker=docker or [])
    assert "Traceback" not in server.log, server.log
