"""Callers try to fill the host's memory: the peak of the host's memory stays below a limit, and another workspace is
served at the same time.
"""

import http.client
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from evaluator_host.platform.evaluators.bodies import EXACT_MATCH
from tests.databases import Databases
from tests.keyed import bearer, is_problem, make_key
from tests.processes import own_seconds, peak_mb, restart_peak
from tests.server import Server

MEMORY_MB = 96  # MB of memory for requests; the tests send and return slightly more
PEAK_MB = 448
PLAIN = {"evaluator": {"code": "def evaluate(inputs, outputs, trace):\n    return 1.0\n"}}


@dataclass(frozen=True, slots=True)
class Host:
    """A host with little memory, and the keys of an attacker and a neighbour."""

    server: Server
    alpha: str
    beta: str

    def ask(self, key: str, method: str, path: str, **arguments: Any) -> httpx.Response:
        return httpx.request(method, self.server.url + path, headers=bearer(key), timeout=120, **arguments)

    @property
    def peak_mb(self) -> int:
        return int(peak_mb(self.server.process.pid))

    @contextmanager
    def watched(self) -> "Iterator[Seen]":
        """Let the neighbour make calls during the block, and measure the host's peak memory."""
        restart_peak(self.server.process.pid)
        seen, stop = Seen(), threading.Event()

        def call() -> None:
            while True:  # make at least one call, even if the attack is over soon
                seen.answers[self.ask(self.beta, "GET", "/healthz").status_code] += 1
                seen.answers[self.ask(self.beta, "POST", "/v1/evaluate", json=PLAIN).status_code] += 1
                if stop.wait(0.1):
                    break

        caller = threading.Thread(target=call)
        caller.start()
        try:
            yield seen
        finally:
            stop.set()
            caller.join()
        assert set(seen.answers) == {200}, seen.answers
        assert self.peak_mb < PEAK_MB


@dataclass(slots=True)
class Seen:
    """The statuses of the neighbour's answers."""

    answers: Counter[int] = field(default_factory=Counter)


@pytest.fixture(scope="module")
def host(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    url = databases.make("sqlite")
    alpha, beta = (make_key("ci", workspace, url=url) for workspace in ("alpha", "beta"))
    environment = {"EVALUATOR_HOST_DATABASE_URL": url, "EVALUATOR_HOST_MEMORY_MB": str(MEMORY_MB)}
    with Server(log=tmp_path_factory.mktemp("server") / "log", environment=environment) as server:
        yield Host(server, alpha, beta)


def large(megabytes: int) -> dict[str, Any]:
    code = f"def evaluate(inputs, outputs, trace):\n    return {{'score': 1, 'x': 'y' * {megabytes}_000_000}}\n"
    return {"code": code, "limits": {"result_kb": 16384}}


def test_large_bodies_of_many_callers_are_refused_and_small_ones_served(host: Host) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return len(outputs)\n"
    body = json.dumps({"evaluator": {"code": code}, "outputs": ["x" * 90] * 140_000}).encode()

    def call(_: int) -> httpx.Response:
        """Call the host like a client that sends the whole request before it reads the answer."""
        headers = {"Content-Type": "application/json", **bearer(host.alpha)}
        with closing(http.client.HTTPConnection("127.0.0.1", host.server.port, timeout=120)) as connection:
            connection.request("POST", "/v1/evaluate", body, headers)
            answer = connection.getresponse()
            return httpx.Response(answer.status, headers=dict(answer.getheaders()), content=answer.read())

    with host.watched(), ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(call, range(8)))
    scored = [answer for answer in answers if answer.status_code == 200]
    assert scored
    assert scored[0].json()["score"] == 140_000
    for refused in set(answers) - set(scored):
        assert is_problem(refused, 429, "busy")
        assert int(refused.headers["retry-after"]) >= 1


@pytest.mark.long
def test_a_batch_whose_results_are_too_large_is_refused_and_says_how_to_get_them(host: Host) -> None:
    rows = [{"inputs": {"n": number}} for number in range(8)]
    with host.watched():
        answer = host.ask(host.alpha, "POST", "/v1/evaluate/batch", json={"evaluator": large(15), "rows": rows})
    assert is_problem(answer, 413, "too_large")
    assert "POST /v1/jobs" in answer.json()["detail"]
    fits = host.ask(host.alpha, "POST", "/v1/evaluate/batch", json={"evaluator": large(15), "rows": rows[:2]})
    assert [len(one["value"]["x"]) for one in fits.json()["results"]] == [15_000_000] * 2


@pytest.mark.long
def test_readers_who_do_not_read_hold_no_more_than_the_memory_for_requests(host: Host) -> None:
    body = {"evaluator": large(15)}
    assert len(host.ask(host.alpha, "POST", "/v1/evaluate", json=body).json()["value"]["x"]) == 15_000_000
    with host.watched(), ThreadPoolExecutor(8) as callers:

        def call(_: int) -> int:
            with httpx.stream(
                "POST", host.server.url + "/v1/evaluate", json=body, headers=bearer(host.alpha), timeout=120
            ) as answer:
                time.sleep(1)
                return answer.status_code

        assert set(callers.map(call, range(8))) <= {200, 429}


@pytest.mark.long
def test_lists_that_nobody_reads_hold_no_more_than_the_memory_for_requests(host: Host) -> None:
    for number in range(24):
        body = {"name": f"large{number}", "code": f"{EXACT_MATCH}\n# {'x' * 900_000}"}
        assert host.ask(host.alpha, "POST", "/v1/evaluators", json=body).status_code == 201
    with host.watched(), ExitStack() as stack:
        readers = []
        for _ in range(40):
            reader = stack.enter_context(socket.create_connection(("127.0.0.1", host.server.port), timeout=60))
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            asked = f"GET /v1/evaluators HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {host.alpha}\r\n\r\n"
            reader.sendall(asked.encode())
            readers.append(reader)
        begun = {reader.recv(12) for reader in readers}
    assert begun == {b"HTTP/1.1 200", b"HTTP/1.1 429"}


@pytest.mark.long
def test_results_of_many_metrics_cost_little(host: Host) -> None:
    code = (
        "def evaluate(inputs, outputs, trace):\n"
        "    return {'score': 1, 'k' * 1000: {'a': 1}, **{f'm{k}x': 1 for k in range(100_000)}}\n"
    )
    limits = {"result_kb": 16384, "memory_mb": 1024, "timeout_s": 60}
    with host.watched():
        job = {"evaluators": [{"code": code, "limits": limits}], "dataset": {"rows": [{"n": 1}, {"n": 2}]}}
        made = host.ask(host.alpha, "POST", "/v1/jobs", json=job).json()
        ended = finished(host, made["id"])
        statistics = host.ask(host.alpha, "GET", f"/v1/jobs/{made['id']}/results")
    assert (ended["status"], ended["progress"]["failed"]) == ("completed", 0)
    assert len(statistics.json()["evaluators"][0]["metrics"]) == 1000
    row = host.ask(host.alpha, "GET", f"/v1/jobs/{made['id']}/rows?limit=1").json()["rows"][0]["result"]
    assert len(row["value"]) == 100_002
    assert [note["code"] for note in row["warnings"]] == ["too_many_metrics"]


@pytest.mark.long
def test_a_job_of_large_results_is_scored_read_and_downloaded_in_bounded_memory(host: Host) -> None:
    rows = [{"n": number} for number in range(3)]
    job = {"evaluators": [large(15)], "dataset": {"rows": rows}}
    with host.watched():
        path = f"/v1/jobs/{host.ask(host.alpha, 'POST', '/v1/jobs', json=job).json()['id']}"
        assert finished(host, path.rpartition("/")[2])["status"] == "completed"
    with host.watched():
        brief = host.ask(host.alpha, "GET", f"{path}/rows?limit=1000&brief=true").json()
    assert [row["index"] for row in brief["rows"]] == list(range(3))
    assert [row["result"]["score"] for row in brief["rows"]] == [1] * 3
    with host.watched():
        first = host.ask(host.alpha, "GET", f"{path}/rows?limit=1000").json()
    assert ([row["index"] for row in first["rows"]], first["next_cursor"] is not None) == ([0], True)
    with (
        host.watched(),
        httpx.stream("GET", f"{host.server.url}{path}/rows.jsonl", headers=bearer(host.alpha), timeout=120) as answer,
    ):
        assert sum(len(part) for part in answer.iter_bytes()) > 3 * 15_000_000


def finished(host: Host, job: str) -> dict[str, Any]:
    while True:
        found: dict[str, Any] = host.ask(host.alpha, "GET", f"/v1/jobs/{job}").json()
        if found["status"] in ("completed", "failed"):
            return found
        time.sleep(0.2)


FORGED = """
const fs = require("fs")
export function evaluate(inputs, outputs, trace) {
  const frame = (header, body) => {
    const lengths = Buffer.alloc(8)
    lengths.writeUInt32BE(header.length, 0)
    lengths.writeUInt32BE(body.length, 4)
    return Buffer.concat([lengths, header, body])
  }
  const logs = { stdout: "", stderr: "", truncated: false }
  const header = Buffer.from(JSON.stringify({ type: "result", id: "2", run_ms: 1, peak_memory_kb: 1, logs }))
  const data = frame(header, Buffer.from("[" + "{},".repeat(SIZE / 3) + "0]"))
  const pipes = {}
  for (const fd of fs.readdirSync("/proc/self/fd")) {
    try {
      const to = fs.readlinkSync("/proc/self/fd/" + fd)
      if (to.startsWith("pipe")) (pipes[to] ??= []).push(+fd)
    } catch {}
  }
  for (const [fd] of Object.values(pipes).filter((fds) => fds.length === 1 && fds[0] > 2)) {
    let sent = 0
    while (sent < data.length) {
      try { sent += fs.writeSync(fd, data, sent) } catch (error) { if (error.code !== "EAGAIN") break }
    }
  }
  return 1
}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("size", "result_kb"), [(40_000_000, 1024), (15_000_000, 16384)])
def test_garbage_in_the_place_of_a_result_costs_little(host: Host, size: int, result_kb: int) -> None:
    limits = {"result_kb": result_kb, "memory_mb": 1024, "timeout_s": 20}
    code = FORGED.replace("SIZE", str(size))
    with host.watched():
        before = own_seconds(host.server.process.pid)
        body = {"evaluator": {"code": code, "language": "javascript", "limits": limits}}
        answer = host.ask(host.alpha, "POST", "/v1/evaluate", json=body).json()
        spent_s = own_seconds(host.server.process.pid) - before
    assert answer["status"] == "failed", answer
    assert spent_s < 2
