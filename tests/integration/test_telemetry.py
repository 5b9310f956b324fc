"""A host exports its own spans and metrics with OpenTelemetry's real SDK, to a receiver on loopback."""

import gzip
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator
from tests.server import Server, new_home

SECRET = "s3cret-of-the-user"
CODE = f"def evaluate(inputs, outputs, trace):\n    return outputs == inputs['a']  # {SECRET}\n"
FAILS = f"def evaluate(inputs, outputs, trace):\n    raise ValueError('{SECRET}')\n"
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    """An OTLP receiver over HTTP. `spans` and `points` are the received data: dicts that also have the resource's
    attributes.
    """

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self.spans: list[dict[str, Any]] = []
        self.points: dict[str, list[dict[str, Any]]] = {}
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.receive(self.path, gzip.decompress(body) if self.headers["Content-Encoding"] else body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def receive(self, path: str, body: bytes) -> None:
        self.raw.append(body)
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                about = attributes(resource.resource)
                self.spans += [
                    {
                        "name": span.name,
                        "trace": span.trace_id.hex(),
                        "id": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "error": span.status.code == 2,
                        **about,
                        **attributes(span),
                    }
                    for scope in resource.scope_spans
                    for span in scope.spans
                ]
            return
        assert path == "/v1/metrics"
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for metric in resource.scope_metrics[0].metrics:
                kind = metric.WhichOneof("data")
                points = getattr(metric, kind).data_points
                self.points[metric.name] = [{"kind": kind, "point": point, **attributes(point)} for point in points]

    def named(self, name: str) -> list[dict[str, Any]]:
        return [span for span in list(self.spans) if span["name"] == name]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def attributes(one: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in one.attributes}


def until(find: Callable[[], Any]) -> Any:
    end = time.monotonic() + 60
    while not (found := find()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    one = Collector()
    yield one
    one.close()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("telemetry")
    environment = {
        "EVALUATOR_HOST_OTEL": "true",
        "EVALUATOR_HOST_WORKERS": "2",
        "EVALUATOR_HOST_WIRES": "webhook",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
        "OTEL_SERVICE_NAME": "scores",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "OTEL_METRIC_EXPORT_INTERVAL": "500",
    }
    with Server(data_dir=new_home(folder), log=folder / "log", environment=environment) as server:
        yield server


def test_a_request_continues_its_callers_trace_and_each_evaluation_is_a_span_in_it(
    host: Server, collector: Collector
) -> None:
    body = {"evaluator": {"code": CODE}, "inputs": {"a": SECRET}, "outputs": SECRET}
    answer = host.client.post("/v1/evaluate", json=body, headers={"traceparent": f"00-{TRACE}-{CALLER}-01"})
    assert answer.json()["score"] == 1.0
    (request,) = until(lambda: [one for one in collector.named("POST /v1/evaluate") if one["trace"] == TRACE])
    assert request["parent"] == CALLER
    assert (request["http.route"], request["http.response.status_code"]) == ("/v1/evaluate", 200)
    assert (request["service.name"], request["deployment.environment.name"]) == ("scores", "test")
    (row,) = until(lambda: [one for one in collector.named("evaluate") if one["trace"] == TRACE])
    above = {one["id"]: one for one in collector.spans}
    between = above[row["parent"]]
    # the request's span is the parent of the evaluation's span, or its grandparent if another process had the evaluator
    assert request["id"] in (between["id"], between["parent"])
    assert row["evaluator_host.evaluator.digest"] == answer.json()["evaluator"]["digest"]
    assert (row["evaluator_host.evaluator.contract"], row["evaluator_host.status"]) == ("evaluate", "scored")
    assert row["evaluator_host.timing_ms.run"] >= 0
    assert not row["error"]


def test_failed_rows_and_refused_requests_name_the_error_and_no_data(host: Server, collector: Collector) -> None:
    body = {"evaluator": {"code": FAILS}, "inputs": {"a": SECRET}, "outputs": SECRET}
    host.client.post("/v1/evaluate", json=body)
    (failed,) = until(lambda: [one for one in collector.named("evaluate") if one["error"]])
    assert (failed["evaluator_host.status"], failed["error.type"]) == ("failed", "user_exception")
    host.client.get(f"/v1/jobs/{SECRET}")
    (missing,) = until(lambda: collector.named("GET /v1/jobs/{job_id}"))
    assert (missing["http.response.status_code"], missing["error"]) == (404, False)
    host.client.post(f"/hooks/key/{SECRET}/v1/none", json={})
    host.client.post("/hooks/none", json={})
    until(lambda: [one for one in collector.spans if "/hooks" in one.get("http.route", "")])
    assert not [one for one in collector.raw if SECRET.encode() in one]


@pytest.mark.long
def test_job_batches_are_spans_of_the_process_of_jobs_and_the_metrics_are_those_of_the_host(
    host: Server, collector: Collector
) -> None:
    with Client(host.url) as client:
        job = client.jobs.create([Evaluator(CODE)], [{"a": n, "outputs": n} for n in range(7)])
        assert client.jobs.wait(job.id).status == "completed"
    (batch,) = until(lambda: collector.named("score rows of a job"))
    assert batch["evaluator_host.job.id"] == job.id
    assert (batch["evaluator_host.job.rows"], batch["evaluator_host.job.scored_rows"]) == (7, 7)
    rows = until(lambda: [one for one in collector.named("evaluate") if one["parent"] == batch["id"]][6:])
    assert rows[0]["evaluator_host.process"] == "jobs"
    processes = {one["evaluator_host.process"]: one["process.pid"] for one in collector.spans}
    assert len(set(processes.values())) == len(processes) >= 2

    def same() -> bool:
        lines = [line for line in host.client.get("/metrics").text.splitlines() if line.startswith("evaluator_host_")]
        shown = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
        scored = 'evaluator_host_rows_total{code="",language="python",status="scored"}'
        counted = [p for p in collector.points.get("evaluator_host_rows", []) if p["status"] == "scored"]
        seconds = collector.points.get("evaluator_host_row_seconds", [])
        return (
            [one["point"].as_double for one in counted] == [shown[scored]]
            and counted[0]["kind"] == "sum"
            and [one["point"].count for one in seconds]
            == [shown['evaluator_host_row_seconds_count{language="python"}']]
            and sum(seconds[0]["point"].bucket_counts) == seconds[0]["point"].count
        )

    until(same)
    assert collector.points["evaluator_host_queue"][0]["kind"] == "gauge"


def test_a_package_build_is_a_span_of_the_request_that_asked(host: Server, collector: Collector) -> None:
    made = host.client.post("/v1/environments", json={"packages": ["six==1.17.0"], "language": "python"})
    assert made.status_code < 300, made.text
    (build,) = until(lambda: collector.named("build package set"))
    assert build["evaluator_host.environment.pins"] == 1
    until(lambda: [one for one in collector.spans if one["id"] == build["parent"]])


@pytest.mark.long
def test_a_host_ends_in_time_when_no_collector_answers_and_refuses_what_it_cannot_export(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("silent")
    silent = {"EVALUATOR_HOST_OTEL": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with Server("none", data_dir=new_home(folder), log=folder / "log", environment=silent) as server:
        assert server.client.get("/v1/info").status_code == 200
        assert server.stop() == 0
    assert "the last spans and metrics were not exported" in server.log
    (folder / "grpc").mkdir()
    refused = Server(
        "none",
        data_dir=folder / "data",
        log=folder / "grpc" / "log",
        environment={**silent, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    )
    assert refused.process.wait(60) == 2
    assert "exports by http/protobuf only" in refused.log


@pytest.mark.long
def test_without_the_setting_nothing_of_the_sdk_is_imported_and_without_the_extra_it_is_named() -> None:
    program = """
import sys
from evaluator_host.engine.config.settings import Settings
from evaluator_host.server.server import telemetry_of
from evaluator_host.server import workers
telemetry_of(Settings(), "first")
print([name for name in sys.modules if name.startswith("opentelemetry.sdk")])
sys.modules["opentelemetry.sdk"] = None
try:
    telemetry_of(Settings(otel=True), "first")
except Exception as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    first, second = ended.stdout.splitlines()
    assert first == "[]", ended.stderr
    assert second.startswith("EVALUATOR_HOST_OTEL needs the package opentelemetry")
    assert second.endswith("pip install 'evaluator-host[otel]'")
