"""Measures how much processor time a host's own processes use for a call, with several numbers of processes. The
highest possible rate of calls follows from this time.

The hosts are real, and so are their connections, routes, queues and pipes. In place of every sandbox there is a process
that answers each row at once, so that two processors are enough to measure hosts with several processes. With more
processors, the hosts would use the same processor time.

`python -m tests.benchmarks.workers serve …` is `evaluator-host serve --sandbox none` with such processes as sandboxes.
"""

import json
import socket
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from evaluator_host import __main__ as command
from evaluator_host.engine import backends
from evaluator_host.engine.sandbox.linux.watchdog import process_tree
from evaluator_host.engine.sandbox.unsandboxed import UnsandboxedBackend
from evaluator_host.types.evaluator import SandboxSpec
from tests.benchmarks.floors import EXACT_MATCH
from tests.benchmarks.tenants import processor_s
from tests.processes import command_of

EVALUATORS, CALLERS, CONNECTIONS = 16, 8, 64
CALLS, ROUNDS = 800, 7
_ANSWERS = """
import json, os
LOADED = {"contract": "evaluate", "contract_source": "inferred", "reason": "", "entry": "evaluate", "parameters": ["i", "o", "t"]}
def say(header, body=b""):
    head = json.dumps(header).encode()
    os.write(1, len(head).to_bytes(4, "big") + len(body).to_bytes(4, "big") + head + body)
say({"type": "hello", "protocol": 1, "language": "python", "runtime": "answers at once"})
data = b""
while chunk := os.read(0, 65536):
    data += chunk
    while len(data) >= 8 and len(data) >= (end := 8 + (head := int.from_bytes(data[:4], "big")) + int.from_bytes(data[4:8], "big")):
        asked = json.loads(data[8 : 8 + head])
        data = data[end:]
        if asked["type"] == "call":
            say({"type": "result", "id": asked["id"], "run_ms": 0.1, "peak_memory_kb": 8400, "logs": None}, b'{"kind":"number","value":1.0}')
        elif asked["type"] == "load":
            say({"type": "loaded", "id": asked["id"], "load_ms": 0.1, "logs": None, **LOADED}, b"{}")
        elif asked["type"] == "prepare":
            say({"type": "prepared", "id": asked["id"], "ready": True, "reason": None, "prepare_ms": 0.1})
"""


class AnsweringBackend(UnsandboxedBackend):
    """Starts, in place of every sandbox, a process that answers each row at once and does not run code."""

    def _command(self, spec: SandboxSpec) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", _ANSWERS]


@dataclass(frozen=True, slots=True)
class Spent:
    """The figures of a load: calls per second by the clock, and how many ms of processor time one call takes.

    Attributes:
      own_ms: Milliseconds in all processes of the host itself.
      busiest_ms: Milliseconds in the host's busiest process.
      sandboxes_ms: Milliseconds in the processes that stand in for sandboxes.
    """

    calls_per_s: float
    own_ms: float
    busiest_ms: float
    sandboxes_ms: float

    @property
    def whole_ms(self) -> float:
        """Milliseconds in host and sandboxes together."""
        return self.own_ms + self.sandboxes_ms


def spent(hosts: dict[str, tuple[int, int]]) -> dict[str, Spent]:
    """Measure hosts, each given by its port and first process. The hosts are measured alternately, and each figure is
    the median over the rounds.
    """
    found: dict[str, list[Spent]] = {name: [] for name in hosts}
    for number in range(ROUNDS + 1):
        for name, (port, pid) in hosts.items():
            one = _load(port, pid)
            if number:  # the first round loads the evaluators
                found[name].append(one)
    fields = ("calls_per_s", "own_ms", "busiest_ms", "sandboxes_ms")
    return {
        name: Spent(*(statistics.median(getattr(one, field) for one in many) for field in fields))
        for name, many in found.items()
    }


def _load(port: int, pid: int) -> Spent:
    """Make calls over new connections.

    The connections are opened while the host is busy, so that the kernel spreads them over its processes.
    """
    with ExitStack() as stack:
        requests = [_request(number) for number in range(EVALUATORS)]

        def caller(first: int) -> None:
            own: dict[int, socket.socket] = {}
            for number in range(CALLS // CALLERS):
                at = number % (CONNECTIONS // CALLERS)
                while at not in own or not _call(own[at], requests[(number + first) % EVALUATORS]):
                    own[at] = stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))

        before, whole, began = _own(pid), processor_s(pid), time.perf_counter()
        with ThreadPoolExecutor(CALLERS) as threads:
            list(threads.map(caller, range(CALLERS)))
        taken, whole = time.perf_counter() - began, processor_s(pid) - whole
        each = [seconds - before.get(one, 0.0) for one, seconds in _own(pid).items()]
    per_call = 1000 / CALLS
    return Spent(CALLS / taken, sum(each) * per_call, max(each) * per_call, (whole - sum(each)) * per_call)


def _own(pid: int) -> dict[int, float]:
    """Return the processor time of each process of a host. All these processes have the same command line, because they
    are forked.
    """
    return {one: _seconds(one) for one in process_tree(pid) if command_of(one) == command_of(pid)}


def _seconds(pid: int) -> float:
    """Return the processor time of a process to the microsecond; psutil counts in steps of 10 ms."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def _request(number: int) -> bytes:
    row: dict[str, Any] = {"inputs": {"correct_answer": "Paris"}, "outputs": "Paris"}
    body = json.dumps({"evaluator": {"code": f"{EXACT_MATCH}# {number}\n"}, **row}).encode()
    head = (
        b"POST /v1/evaluate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    return head % len(body) + body


def _call(connection: socket.socket, request: bytes) -> bool:
    """Send one call and return whether it was answered.

    The call does not use `http.client`, because that takes as much processor time as the host. A call may get no answer:
    the host closes connections that are idle for five seconds, which may happen on a busy machine.
    """
    answer = b""
    with suppress(ConnectionError):
        connection.sendall(request)
        while not (end := _end(answer)) or len(answer) < end:
            if not (more := connection.recv(1 << 16)):
                break
            answer += more
    assert not answer or b'"score":1.0' in answer, answer
    return bool(answer)


def _end(answer: bytes) -> int:
    head, complete, _ = answer.partition(b"\r\n\r\n")
    if not complete:
        return 0
    return len(head) + 4 + int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])


if __name__ == "__main__":
    with patch.object(backends, "UnsandboxedBackend", AnsweringBackend):
        command.main()
