"""The real OpenTelemetry SDK and its exporter send live traffic, and a latency evaluator on a real host scores it."""

import gzip
import json
import time
from collections.abc import Iterator

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.stored import TraceReport
from tests.server import Server

LATENCY = """
def evaluate(inputs, outputs, trace):
    (root,) = trace["spans"].values()
    steps = list(root["children"])
    seconds = root["attributes"]["ag"]["metrics"]["unit"]["duration"]["total"]
    return {"score": 1.0 if seconds < 5 else 0.0, "steps": len(steps), "name_ok": root["name"] == "answer"}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(log=tmp_path_factory.mktemp("server") / "log") as running:
        yield running


def scored(client: Client, name: str, count: int) -> list[TraceReport]:
    until = time.monotonic() + 60
    while len(found := client.evaluators.traces(name)) < count:
        assert time.monotonic() < until, found
        time.sleep(0.1)
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
@pytest.mark.parametrize("processor", [SimpleSpanProcessor, BatchSpanProcessor])
def test_an_exporter_pointed_at_an_evaluator_has_its_traces_scored(
    server: Server, compression: Compression, processor: type
) -> None:
    name = f"latency-{compression.name}-{processor.__name__}"
    with Client(server.url) as client:
        client.evaluators.create(name, Evaluator(LATENCY))
        exporter = OTLPSpanExporter(
            endpoint=f"{server.url}/v1/evaluators/{name}/traces?quiet_s=1", compression=compression
        )
        provider = TracerProvider(resource=Resource({"service.name": "shop"}))
        provider.add_span_processor(processor(exporter))
        tracer = provider.get_tracer("test")
        with tracer.start_as_current_span("answer") as root:
            for step in ("retrieve", "generate"):
                with tracer.start_as_current_span(step):
                    time.sleep(0.01)
            trace_id = f"{root.get_span_context().trace_id:032x}"
        provider.shutdown()
        (found,) = scored(client, name, 1)
    assert (found.trace_id, found.evaluator) == (trace_id, f"{name}@1")
    assert found.result["status"] == "scored", found.result["error"]
    assert found.result["metrics"] == {"score": 1.0, "steps": 2, "name_ok": 1}


def spans(trace_id: str, *, root: bool = True) -> dict[str, object]:
    span = {
        "traceId": trace_id,
        "spanId": trace_id[:16],
        "name": "answer",
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
    }
    child = {**span, "spanId": "1" * 16, "parentSpanId": trace_id[:16], "name": "step"}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span if root else child]}]}]}


def test_a_trace_in_pieces_is_scored_once_and_a_sample_by_id(server: Server) -> None:
    with Client(server.url) as client:
        client.evaluators.create("pieces", Evaluator(LATENCY))
        path = "/v1/evaluators/pieces/traces"
        for root in (False, True):
            body = json.dumps(spans("a" * 32, root=root)).encode()
            answer = server.client.post(path, content=body, headers={"Content-Type": "application/json"})
            assert (answer.status_code, answer.json()) == (200, {})
        low, high = "6" * 32, "9" * 32  # hashes of these ids, as fractions of the largest hash: 0.14 and 0.997
        for trace_id in (low, high):
            assert server.client.post(path, params={"sampling": 0.5}, json=spans(trace_id)).status_code == 200
        found = scored(client, "pieces", 2)
        assert {one.trace_id for one in found} == {"a" * 32, low}
        assert [one.result["metrics"]["steps"] for one in found if one.trace_id == "a" * 32] == [1]
        assert client.evaluators.traces("pieces", before=found[0].number) == found[1:]


@pytest.mark.long
def test_a_trace_of_two_services_is_scored_once(server: Server) -> None:
    path, trace_id = "/v1/evaluators/services/traces", "c" * 32
    with Client(server.url) as client:
        client.evaluators.create("services", Evaluator(LATENCY))
        assert server.client.post(path, json=spans(trace_id)).json() == {}
        time.sleep(5.0)  # the exporter of the other service sends its spans every five seconds
        assert server.client.post(path, json=spans(trace_id, root=False)).json() == {}
        (found,) = scored(client, "services", 1)
        assert found.result["metrics"]["steps"] == 1
        late = server.client.post(path, json=spans(trace_id, root=False)).json()["partialSuccess"]
        assert (late["rejectedSpans"], "was scored before" in late["errorMessage"]) == ("1", True)
        other = spans("d" * 32)
        assert server.client.post(path, params={"quiet_s": 1}, json=other).json() == {}
        assert {one.trace_id for one in scored(client, "services", 2)} == {trace_id, "d" * 32}
    assert "evaluator_host_traces_late_spans 1" in server.client.get("/metrics").text


@pytest.mark.long
def test_a_trace_waits_for_its_root_while_a_step_takes_long(server: Server) -> None:
    path, trace_id = "/v1/evaluators/long-step/traces", "e" * 32
    with Client(server.url) as client:
        client.evaluators.create("long-step", Evaluator(LATENCY))
        assert server.client.post(path, params={"quiet_s": 1}, json=spans(trace_id, root=False)).json() == {}
        time.sleep(20.0)  # a call of a model may take this long
        assert client.evaluators.traces("long-step") == []
        assert server.client.post(path, params={"quiet_s": 1}, json=spans(trace_id)).json() == {}
        (found,) = scored(client, "long-step", 1)
        assert found.result["metrics"]["steps"] == 1


@pytest.mark.long
def test_a_trace_may_be_sent_again_to_a_new_version_of_the_evaluator(server: Server) -> None:
    path, body = "/v1/evaluators/edited/traces", spans("f" * 32)
    with Client(server.url) as client:
        client.evaluators.create("edited", Evaluator(LATENCY))
        assert server.client.post(path, params={"quiet_s": 1}, json=body).json() == {}
        scored(client, "edited", 1)
        assert "partialSuccess" in server.client.post(path, params={"quiet_s": 1}, json=body).json()
        client.evaluators.update("edited", Evaluator(LATENCY + "\n# edited\n"))
        assert server.client.post(path, params={"quiet_s": 1}, json=body).json() == {}
        assert [one.evaluator for one in scored(client, "edited", 2)] == ["edited@2", "edited@1"]


@pytest.mark.long
def test_spans_of_a_scored_session_that_name_no_session_are_late(server: Server) -> None:
    path, params = "/v1/evaluators/spoken/traces", {"group": "session", "quiet_s": 1}
    first, second, child = spans("1" * 32), spans("2" * 32), spans("1" * 32, root=False)
    for export in (first, second):
        named = [{"key": "session.id", "value": {"stringValue": "s-2"}}]
        export["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] = named
    with Client(server.url) as client:
        client.evaluators.create("spoken", Evaluator(LATENCY))
        assert server.client.post(path, params=params, json=first).json() == {}
        scored(client, "spoken", 1)
        for late in (first, child):
            assert server.client.post(path, params=params, json=late).json()["partialSuccess"]["rejectedSpans"] == "1"
        # the next trace of the session is scored without the earlier ones
        assert server.client.post(path, params=params, json=second).json() == {}
        assert [one.trace_id for one in scored(client, "spoken", 2)] == ["s-2", "s-2"]


@pytest.mark.long
def test_the_traces_of_a_session_are_scored_together(server: Server) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return {'score': len(trace['spans'])}\n"
    attributes = [{"key": "session.id", "value": {"stringValue": "s-1"}}]
    first, second, other = ("1" * 32, "2" * 32, "3" * 32)
    child, root, later, alone = (spans(first, root=False), spans(first), spans(second), spans(other))
    for export in (root, later):
        export["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] = attributes
    with Client(server.url) as client:
        client.evaluators.create("threads", Evaluator(code))
        for export in (child, root, later, alone):
            params = {"group": "session", "quiet_s": 1}
            assert server.client.post("/v1/evaluators/threads/traces", params=params, json=export).status_code == 200
        found = {one.trace_id: one for one in scored(client, "threads", 2)}
    assert found.keys() == {"s-1", other}
    assert (found["s-1"].result["score"], found[other].result["score"]) == (2, 1)
    assert server.client.post("/v1/evaluators/threads/traces", params={"group": "user"}, json=alone).status_code == 422


@pytest.mark.long
def test_an_evaluator_has_a_sampling_rate_of_its_own(server: Server) -> None:
    low, middle, high = (32 * digit for digit in "27d")  # hashes as fractions: 0.05, 0.36 and 0.98
    path = "/v1/evaluators/sampled/traces"
    with Client(server.url) as client:
        assert client.evaluators.create("sampled", Evaluator(LATENCY), sampling=0.25).sampling == 0.25
        for trace_id in (low, middle, high):
            assert server.client.post(path, json=spans(trace_id)).status_code == 200
        assert [one.trace_id for one in scored(client, "sampled", 1)] == [low]
        again = client.evaluators.update("sampled", Evaluator(LATENCY), sampling=0.5)
        assert (again.version, again.sampling, client.evaluators.get("sampled").sampling) == (1, 0.5, 0.5)
        for trace_id in (middle, high):
            assert server.client.post(path, json=spans(trace_id)).status_code == 200
        assert [one.trace_id for one in scored(client, "sampled", 2)] == [middle, low]
        server.client.post(path, params={"sampling": 0}, json=spans("6" * 32))
        # the same exporter may send traces with another rate
        server.client.post(path, params={"sampling": 1}, json=spans(high))
        assert [one.trace_id for one in scored(client, "sampled", 3)] == [high, middle, low]
        second = client.evaluators.update("sampled", Evaluator(LATENCY + "# the next one"))
        assert (second.version, second.sampling) == (2, 0.5)
        body = {"name": "other", "code": LATENCY, "sampling": 1.5}
        assert server.client.post("/v1/evaluators", json=body).status_code == 422


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"\xff\xff\xff", {"Content-Type": "application/x-protobuf"}, 422),
        (b"[]", {"Content-Type": "application/json"}, 422),
        (b"{", {"Content-Type": "application/json"}, 422),
        (b"{}", {"Content-Type": "application/json", "Content-Encoding": "gzip"}, 422),
        (b"{}", {"Content-Type": "application/json", "Content-Encoding": "br"}, 422),
        (gzip.compress(b" " * (40 << 20)), {"Content-Type": "application/json", "Content-Encoding": "gzip"}, 413),
        (b"{}", {"Content-Type": "application/json"}, 200),
    ],
)
def test_a_body_that_is_not_an_export_is_refused(
    server: Server, content: bytes, headers: dict[str, str], status: int
) -> None:
    path = "/v1/evaluators/refusing/traces"
    if server.client.get(path).status_code == 404:
        with Client(server.url) as client:
            client.evaluators.create("refusing", Evaluator(LATENCY))
    assert server.client.post(path, content=content, headers=headers).status_code == status


def test_an_evaluator_that_is_not_there_takes_no_traces(server: Server) -> None:
    assert server.client.post("/v1/evaluators/none/traces", json=spans("b" * 32)).status_code == 404
    assert server.client.get("/v1/evaluators/none/traces").status_code == 404
