"""One workspace sends hostile live traffic while others send traces and calls: the tests check which traffic the host
refuses, and what the traffic costs the host.
"""

import gzip
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.databases import Databases
from tests.keyed import BODY, bearer, eventually, make_key
from tests.processes import own_seconds
from tests.server import Server

ONE = "def evaluate(inputs, outputs, trace):\n    return 1.0\n"
SLOW = "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(0.2)\n    return 1.0\n"
PATH = "/v1/evaluators/one/traces"
PROTOBUF = "application/x-protobuf"
GRACE_S = 2


class Host:
    """A host with the workspaces of two attackers and a neighbour."""

    def __init__(self, server: Server, *keys: str) -> None:
        self.server = server
        self.attacker, self.flood, self.neighbour = (
            httpx.Client(base_url=server.url, headers=bearer(key), timeout=120) for key in keys
        )
        for client in (self.attacker, self.flood, self.neighbour):
            assert client.post("/v1/evaluators", json={"name": "one", "code": ONE}).is_success
            assert client.post("/v1/evaluate", json=BODY).json()["status"] == "scored"

    @property
    def cpu_s(self) -> float:
        """Processor seconds used by the host's own process, without its children."""
        return own_seconds(self.server.process.pid)

    @contextmanager
    def neighbour_works(self) -> Iterator[list[float]]:
        """During the block, let the neighbour make calls, and check that every answer is right; yield how long each
        call took.
        """
        done, wrong, took = threading.Event(), list[object](), list[float]()

        def call() -> None:
            while not done.is_set():
                started = time.monotonic()
                answer = self.neighbour.post("/v1/evaluate", json=BODY)
                if answer.status_code != 200 or answer.json()["score"] != 1.0:
                    wrong.append(answer.text)
                assert self.neighbour.get("/healthz").status_code == 200
                took.append(time.monotonic() - started)

        thread = threading.Thread(target=call)
        thread.start()
        try:
            yield took
        finally:
            done.set()
            thread.join()
        assert not wrong
        assert took


def span(trace_id: str, *, name: str = "step", parent: str = "") -> dict[str, str]:
    return {"traceId": trace_id, "spanId": "a" * 16, "parentSpanId": parent, "name": name}


def export(*spans: object) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> Iterator[Host]:
    url = databases.make("sqlite")
    keys = [make_key(name, name, url=url) for name in ("attacker", "flood", "neighbour")]
    environment = {"EVALUATOR_HOST_DATABASE_URL": url, "EVALUATOR_HOST_STOP_GRACE_S": str(GRACE_S)}
    with Server(log=tmp_path_factory.mktemp("host") / "log", environment=environment) as server:
        made = Host(server, *keys)
        yield made
        for client in (made.attacker, made.flood, made.neighbour):
            client.close()


def many_values(size: int) -> bytes:
    return b'{"x":[' + b"[]," * (size // 3) + b"1]}"


def many_traces(count: int, digit: str = "a") -> bytes:
    return export(*(span(f"{number:031x}{digit}") for number in range(1, count + 1)))


def many_attributes(size: int) -> bytes:
    """Return a span with as many empty attributes as fit into this size."""
    from google.protobuf.internal.encoder import _VarintBytes as varint  # noqa: PLC0415

    body = b"\x4a\x03\x0a\x01a" * (size // 5)
    for tag in (b"\x12", b"\x12", b"\x0a"):  # tags of the span, its scope and its resource
        body = tag + varint(len(body)) + body
    return body


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("make", "media_type", "statuses"),
    [
        (lambda: many_values(16 << 20), "application/json", {413}),
        (lambda: many_values(3 << 20), "application/json", {200}),
        (lambda: many_attributes(3 << 20), PROTOBUF, {200, 429}),
        (lambda: many_traces(116_000), "application/json", {413}),
        (lambda: many_traces(12_000), "application/json", {413}),
    ],
    ids=["16 MB of values", "3 MB of values", "600,000 attributes", "116,000 traces", "12,000 traces"],
)
def test_a_few_kilobytes_of_spans_cost_the_host_nothing(
    host: Host, make: Callable[[], bytes], media_type: str, statuses: set[int]
) -> None:
    headers = {"Content-Type": media_type, "Content-Encoding": "gzip"}
    body = gzip.compress(make())
    before = host.cpu_s
    with host.neighbour_works() as took:
        answer = host.attacker.post(PATH, content=body, headers=headers)
        assert answer.status_code in statuses, answer.text
        calls = len(took)
    assert host.cpu_s - before < 1 + calls * 0.05  # each of these bodies once took 13 to 24 seconds


@pytest.mark.long
def test_waiting_spans_of_one_workspace_leave_room_for_others(host: Host) -> None:
    statuses = list[int]()
    for number in range(20):  # traces without a root wait for two minutes
        body = export(span(f"{number + 1:032x}", name="x" * (3 << 20), parent="b" * 16))
        statuses.append(
            host.attacker.post(PATH, content=gzip.compress(body), headers={"Content-Encoding": "gzip"}).status_code
        )
    assert statuses[0] == 200
    assert statuses[-1] == 429
    assert statuses.index(429) >= 10  # the host accepts about 40 MB, not all 64
    assert host.neighbour.post(PATH, content=export(span("c" * 32))).status_code == 200
    eventually(lambda: bool(host.neighbour.get(PATH).json()))


@pytest.mark.long
def test_a_trace_that_grows_too_large_is_refused_by_name(host: Host) -> None:
    name = "/v1/evaluators/large/traces"
    assert host.neighbour.post("/v1/evaluators", json={"name": "large", "code": ONE}).is_success
    steps = [{**span("d" * 32, parent="b" * 16), "spanId": f"{number:016x}"} for number in range(1, 10_001)]
    for _ in range(5):
        answer = host.neighbour.post(name, content=export(*steps))
        assert (answer.status_code, answer.json()) == (200, {})
    told = host.neighbour.post(name, content=export(span("d" * 32), span("e" * 32))).json()["partialSuccess"]
    assert told["rejectedSpans"] == "50001"
    assert "50000 spans" in told["errorMessage"]
    eventually(lambda: [one["trace_id"] for one in host.neighbour.get(name).json()] == ["e" * 32])
    eventually(lambda: "it has over 50000 spans" in host.server.log)


@pytest.mark.long
def test_an_id_writes_no_lines_of_its_own(host: Host) -> None:
    odd = "x\nERROR evaluator_host.web: forged\x1b[2J"
    assert host.attacker.post("/v1/evaluators", json={"name": "gone", "code": ONE}).is_success
    assert host.attacker.post("/v1/evaluators/gone/traces", content=export(span(odd))).status_code == 200
    assert host.attacker.delete("/v1/evaluators/gone").is_success
    eventually(lambda: "1 trace could not be scored by gone" in host.server.log)
    assert "forged" not in host.server.log
    assert "\x1b" not in host.server.log


@pytest.mark.long
def test_a_flood_of_traces_has_turns_with_others_and_does_not_keep_the_host_from_stopping(host: Host) -> None:
    assert host.flood.post("/v1/evaluators", json={"name": "slow", "code": SLOW}).is_success
    statuses = [
        host.flood.post("/v1/evaluators/slow/traces", content=many_traces(10_000, digit)).status_code
        for digit in "0123456789"
    ]
    assert 200 in statuses
    assert 429 in statuses  # all requests together have 100,000 traces
    eventually(lambda: bool(host.flood.get("/v1/evaluators/slow/traces").json()))
    assert host.neighbour.post(PATH, content=export(span("f" * 32))).status_code == 200
    eventually(lambda: "f" * 32 in [one["trace_id"] for one in host.neighbour.get(PATH).json()])
    host.server.process.send_signal(signal.SIGTERM)
    assert host.server.process.wait(60) == 0, (
        "the host must not first score all traces, which would take ten times as long"
    )
    assert "could not be scored by slow; the last one: " in host.server.log
    assert "the host is stopping" in host.server.log
