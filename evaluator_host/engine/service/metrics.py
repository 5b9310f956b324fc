"""The Prometheus metrics of a host: rows by outcome, durations, sandboxes, the queue."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from evaluator_host.engine.service.peers import Peers
from evaluator_host.engine.system.spans import Attributes, recorder
from evaluator_host.types.outcome import EvaluationResult

_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, math.inf)

_USED = {  # fields of `ModelUsage` that are counted
    "requests": "Requests that rows sent to granted models.",
    "replayed": "Requests of rows that were served from recorded answers.",
    "input_tokens": "Tokens of rows' requests to granted models.",
    "output_tokens": "Tokens of granted models' answers to rows.",
    "connections": "Connections of rows to other hosts.",
    "network_bytes": "Bytes on connections of rows to other hosts.",
}


class _Rows(Collector):
    """The Prometheus counter of rows.

    This class is faster than `Counter`, because every row is counted.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], int] = {}

    def count(self, *labels: *tuple[str, str, str]) -> None:
        self._counts[labels] = self._counts.get(labels, 0) + 1

    def collect(self) -> Iterator[Metric]:
        text = "Rows evaluated, by language, status and error code."
        family = CounterMetricFamily("evaluator_host_rows", text, labels=["language", "status", "code"])
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        yield family


class _Seconds(Collector):
    """A Prometheus histogram of durations by language. This class is faster than `Histogram`."""

    def __init__(self, name: str, description: str) -> None:
        self._name = name
        self._description = description
        self._counts: dict[str, list[int]] = {}  # number of durations in each bucket, by language
        self._sums: dict[str, float] = {}

    def observe(self, language: str, seconds: float) -> None:
        if language not in self._counts:
            self._counts[language], self._sums[language] = [0] * len(_BUCKETS_S), 0.0
        self._counts[language][bisect_left(_BUCKETS_S, seconds)] += 1
        self._sums[language] += seconds

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._description, labels=["language"])
        for language, counts in self._counts.items():
            up_to = zip(map(floatToGoString, _BUCKETS_S), accumulate(counts), strict=True)
            family.add_metric([language], list(up_to), self._sums[language])
        yield family


class Metrics:
    """The Prometheus counters, histograms and gauges of a process.

    `peers` are the other processes of its host.
    """

    def __init__(self, peers: Peers | None = None) -> None:
        self._peers = peers or Peers()
        self.registry = CollectorRegistry()
        self._rows = _Rows()
        self._seconds = _Seconds("evaluator_host_row_seconds", "Seconds of a row from the request to its result.")
        self._run_seconds = _Seconds("evaluator_host_run_seconds", "Seconds the user's code ran.")
        for one in (self._rows, self._seconds, self._run_seconds):
            self.registry.register(one)
        self._used = {
            name: Counter(f"evaluator_host_row_{name}", text, registry=self.registry) for name, text in _USED.items()
        }
        self._counters: dict[str, Counter] = {}

    def watch(self, name: str, description: str, read: Callable[[], float]) -> None:
        """Add a gauge; `read` is called for its value at each scrape."""
        Gauge(f"evaluator_host_{name}", description, registry=self.registry).set_function(read)

    def counter(self, name: str, description: str, label: str, *, values: Sequence[str]) -> Counter:
        """Return the counter of this name; create it on the first call.

        Each of `values` gets a series, which begins at 0, so that the first count is visible as a change.
        """
        if name not in self._counters:
            made = Counter(f"evaluator_host_{name}", description, [label], registry=self.registry)
            self._counters[name] = made
            for value in values:
                made.labels(value)
        return self._counters[name]

    def count(self, result: EvaluationResult) -> None:
        """Count the result of a row, and record the row's span."""
        language = result.evaluator.language
        self._rows.count(language, result.status, result.error.code if result.error else "")
        self._seconds.observe(language, result.timing_ms.total / 1000)
        self._run_seconds.observe(language, result.timing_ms.run / 1000)
        if result.usage is not None:
            for name, counter in self._used.items():
                counter.inc(getattr(result.usage, name))
        if (spans := recorder()) is not None:
            spans.ended("evaluate", result.timing_ms.total / 1000, _span_attributes(result))

    def text(self) -> bytes:
        """Return the metrics of this process in the Prometheus text format."""
        return generate_latest(self.registry)

    async def text_of_host(self) -> bytes:
        """Add up the metrics of this host's processes; return them in the Prometheus text format."""
        return await self._peers.add_metrics(self.text())


def _span_attributes(result: EvaluationResult) -> Attributes:
    """Return the attributes of a row's span; they reveal nothing about its code, inputs or outputs."""
    known = {
        "evaluator_host.evaluator.digest": result.evaluator.digest,
        "evaluator_host.evaluator.language": result.evaluator.language.value,
        "evaluator_host.evaluator.contract": result.evaluator.contract,
        "evaluator_host.environment.digest": result.environment.digest,
        "evaluator_host.status": result.status.value,
        "evaluator_host.sandbox.backend": result.sandbox.backend,
        "evaluator_host.sandbox.warm": result.sandbox.warm,
        "error.type": result.error.code.value if result.error else None,
    }
    timing = result.timing_ms
    phases = {"queue": timing.queue, "environment": timing.environment, "load": timing.load, "run": timing.run}
    spent = {f"evaluator_host.timing_ms.{name}": spent_ms for name, spent_ms in phases.items()}
    return {name: value for name, value in {**known, **spent}.items() if value is not None}


class _Families(Collector):
    def __init__(self) -> None:
        self._samples: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
        self._families: dict[str, Metric] = {}

    def add(self, text: bytes, *, gauges: bool) -> None:
        for family in text_string_to_metric_families(text.decode()):
            if not family.name.endswith("_created") and (gauges or family.type != "gauge"):
                self._families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                samples = self._samples.setdefault(family.name, {})
                for one in family.samples:
                    key = one.name, tuple(one.labels.items())
                    samples[key] = samples.get(key, 0.0) + one.value

    def collect(self) -> Iterator[Metric]:
        for name, family in self._families.items():
            family.samples = [Sample(at, dict(labels), value) for (at, labels), value in self._samples[name].items()]
            yield family


def summed(texts: Sequence[bytes], *, ended: Sequence[bytes] = ()) -> bytes:
    """Add up the metrics of several processes, and return them in the Prometheus text format.

    Gauges of processes that have ended (`ended`) are left out.
    """
    registry, families = CollectorRegistry(), _Families()
    registry.register(families)
    for text in texts:
        families.add(text, gauges=True)
    for text in ended:
        families.add(text, gauges=False)
    return generate_latest(registry)
