"""Exports the spans and the metrics of a host by OTLP, with OpenTelemetry's own SDK (the extra `otel`).

The module is imported only if the operator asks for telemetry. The SDK reads the variables `OTEL_*`. The metrics are
the same as in `/metrics`; the first process exports them for all processes. Each process exports its own spans, because
its SDK starts after the fork.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, Final, cast
from uuid import uuid4

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract, inject
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evaluator_host import __version__
from evaluator_host.engine.config.settings import otel_variable
from evaluator_host.engine.service.metrics import Metrics
from evaluator_host.engine.system.spans import Attributes, record_spans
from evaluator_host.types.errors import HostError, Misconfigured

_SCOPE: Final = "evaluator_host"
_PROTOCOL: Final = "http/protobuf"
# paths without spans, because they are requested every few seconds
_PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
_LAST_S: Final = 2.0  # time limit of the last export, in seconds
_NS: Final = 1_000_000_000
_CUMULATIVE: Final = AggregationTemporality.CUMULATIVE

_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_telemetry(process: str, metrics: Metrics | None) -> AsyncIterator[Callable[[ASGIApp], ASGIApp]]:
    """Export spans and metrics during the block. Yield a function that wraps an application to record its requests.

    `process` is the name of this process in traces. `metrics` is None if another process exports this process's
    metrics.

    Raises:
      Misconfigured: an `OTEL_` variable names an exporter that this host does not have.
    """
    traces, metrics_on = _exported("TRACES"), _exported("METRICS")
    traced: Callable[[ASGIApp], ASGIApp] = lambda app: app  # noqa: E731 - the default, without traces
    ending: list[asyncio.Task[None]] = []
    provider, stop = None, asyncio.Event()
    try:
        resource = _resource(process)
        if traces:
            provider = TracerProvider(resource=resource, shutdown_on_exit=False)
            provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
            recorder = _Recorder(provider.get_tracer(_SCOPE, __version__))
            record_spans(recorder)
            traced = recorder.traced
        if metrics_on and metrics is not None:
            every_s = float(otel_variable("OTEL_METRIC_EXPORT_INTERVAL", "60000")) / 1000
            exporter = OTLPMetricExporter()
            exporting = _export_metrics(metrics, exporter, resource, stop=stop, every_s=every_s)
            ending.append(asyncio.create_task(exporting))
    except ValueError as error:
        raise Misconfigured(f"OpenTelemetry refuses the value of a variable OTEL_*: {error}; correct it") from error
    try:
        yield traced
    finally:
        record_spans(None)
        stop.set()
        if provider is not None:
            ending.append(asyncio.create_task(_in_thread(provider.shutdown)))
        if ending and (await asyncio.wait(ending, timeout=_LAST_S))[1]:
            _log.warning("the last spans and metrics were not exported: the collector does not answer")


def _exported(signal: str) -> bool:
    """Return whether OpenTelemetry's variables turn on the export of a signal (traces or metrics).

    Raises:
      Misconfigured: the variables name an exporter or a protocol that this host does not have.
    """
    if otel_variable("OTEL_SDK_DISABLED", "false").lower() == "true":
        return False
    exporter = otel_variable(f"OTEL_{signal}_EXPORTER", "otlp")
    if exporter not in ("otlp", "none"):
        raise Misconfigured(f"OTEL_{signal}_EXPORTER is {exporter!r}; set it to otlp, or to none to export nothing")
    general = otel_variable("OTEL_EXPORTER_OTLP_PROTOCOL", _PROTOCOL)
    protocol = otel_variable(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", general)
    if exporter == "otlp" and protocol != _PROTOCOL:
        raise Misconfigured(
            f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}; this host exports by {_PROTOCOL} only: leave the variable "
            "out, and name the collector's address for HTTP, usually port 4318"
        )
    return exporter == "otlp"


def _resource(process: str) -> Resource:
    own: dict[str, Any] = {
        "service.name": "evaluator-host",
        "service.version": __version__,
        "service.instance.id": str(uuid4()),
        "process.pid": os.getpid(),
        "evaluator_host.process": process,
    }
    return Resource.create({**own, **OTELResourceDetector().detect().attributes})


async def _in_thread(work: Callable[[], object]) -> None:
    """Call `work` in a thread, and wait until it returns. The thread does not keep the process from ending."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, daemon=True).start()
    await done.wait()


class _Recorder:
    """Records the spans of this process."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def span(self, name: str, attributes: Attributes, carrier: Mapping[str, str] | None = None) -> Iterator[Attributes]:
        """Record the block as a child of the span in `carrier`, or else of the open span.

        Yield a dict for the span's attributes.
        """
        with self._open(name, attributes, carrier, SpanKind.INTERNAL) as (_, noted):
            yield noted

    def ended(self, name: str, seconds: float, attributes: Attributes) -> None:
        """Record a span that ends now and took `seconds`."""
        now_ns = time.time_ns()
        span = self._tracer.start_span(name, attributes=attributes, start_time=now_ns - int(seconds * _NS))
        if "error.type" in attributes:
            span.set_status(Status(StatusCode.ERROR))
        span.end(now_ns)

    def carrier(self) -> dict[str, str]:
        """Return headers (`traceparent`) with which another process can continue the open span."""
        headers: dict[str, str] = {}
        inject(headers)
        return headers

    def traced(self, app: ASGIApp) -> ASGIApp:
        """Wrap an application so that it records requests as spans.

        The name of a span contains the method and the route, but not the path, because a path may contain a key.
        """

        async def traced(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["path"] in _PROBES:
                await app(scope, receive, send)
                return
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            about: Attributes = {"http.request.method": scope["method"], "url.scheme": scope["scheme"]}
            with self._open(scope["method"], about, headers, SpanKind.SERVER) as (span, noted):

                async def sending(message: Message) -> None:
                    if message["type"] == "http.response.start":
                        noted["http.response.status_code"] = message["status"]
                    await send(message)

                try:
                    await app(scope, receive, sending)
                finally:
                    if (route := getattr(scope.get("route"), "path", None)) is not None:
                        noted["http.route"] = route
                        span.update_name(f"{scope['method']} {route}")
                    if int(noted.get("http.response.status_code", 0)) >= 500:
                        noted.setdefault("error.type", str(noted["http.response.status_code"]))

        return traced

    @contextmanager
    def _open(
        self, name: str, attributes: Attributes, carrier: Mapping[str, str] | None, kind: SpanKind
    ) -> Iterator[tuple[Span, Attributes]]:
        context = None if carrier is None else extract(carrier)
        noted: Attributes = {}
        with self._tracer.start_as_current_span(
            name,
            context,
            kind,
            attributes,
            record_exception=False,  # the message of an exception may quote a user's data
            set_status_on_exception=False,
        ) as span:
            try:
                yield span, noted
            except BaseException as error:
                noted["error.type"] = error.code if isinstance(error, HostError) else type(error).__name__
                raise
            finally:
                span.set_attributes(noted)
                if "error.type" in noted:
                    span.set_status(Status(StatusCode.ERROR))


async def _export_metrics(
    metrics: Metrics, exporter: OTLPMetricExporter, resource: Resource, *, stop: asyncio.Event, every_s: float
) -> None:
    """Export the metrics of all the host's processes every `every_s` seconds, and once more when the host stops."""
    since_ns = time.time_ns()
    while not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), every_s)
        data = metrics_data(await metrics.text_of_host(), resource, since_ns)
        await _in_thread(partial(exporter.export, data))


def metrics_data(text: bytes, resource: Resource, since_ns: int) -> MetricsData:
    """Convert metrics in the Prometheus text format to OpenTelemetry's data, under the same names.

    Args:
      text: Response of `/metrics`.
      resource: OpenTelemetry resource that the metrics describe.
      since_ns: Unix time in nanoseconds at which counters were 0.
    """
    found, now_ns = [], time.time_ns()
    for family in text_string_to_metric_families(text.decode()):
        if family.name.endswith("_created") or not family.samples:
            continue
        data: Any
        if family.type == "histogram":
            data = Histogram(_distributions(family, since_ns, now_ns), _CUMULATIVE)
        else:
            values = [NumberDataPoint(dict(one.labels), since_ns, now_ns, one.value) for one in family.samples]
            data = Sum(values, _CUMULATIVE, is_monotonic=True) if family.type == "counter" else Gauge(values)
        unit = "s" if family.name.endswith("_seconds") else ""
        found.append(Metric(family.name, family.documentation, unit, data))
    scope = ScopeMetrics(InstrumentationScope(_SCOPE, __version__), found, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _distributions(family: Family, since_ns: int, now_ns: int) -> list[HistogramDataPoint]:
    """Return the points of a histogram. Each count is for a single bucket.

    In Prometheus, the count of a bucket includes all smaller buckets.
    """
    kinds: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for one in family.samples:
        labels = tuple((name, value) for name, value in one.labels.items() if name != "le")
        kind = kinds.setdefault(labels, {"up_to": [], "sum": 0.0})
        if one.name.endswith("_bucket"):
            kind["up_to"].append((float(one.labels["le"]), int(one.value)))
        elif one.name.endswith("_sum"):
            kind["sum"] = one.value
    points = []
    for labels, kind in kinds.items():
        bounds, counts = zip(*sorted(kind["up_to"]), strict=True)
        each = [count - below for count, below in zip(counts, (0, *counts), strict=False)]
        unknown = cast("float", None)  # unknown, because Prometheus keeps neither the smallest nor the largest value
        points.append(
            HistogramDataPoint(
                dict(labels), since_ns, now_ns, counts[-1], kind["sum"], each, bounds[:-1], unknown, unknown
            )
        )
    return points
