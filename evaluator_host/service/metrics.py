"""The Prometheus metrics of a host: rows by outcome, durations, sandboxes, the queue."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from evaluator_host.model.outcome import EvaluationResult

_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)

_USED = {  # of `ModelUsage`
    "requests": "Requests of rows to granted models.",
    "replayed": "Requests of rows that recorded answers answered.",
    "input_tokens": "Tokens of these requests.",
    "output_tokens": "Tokens of the models' answers.",
    "connections": "Connections of rows to other hosts.",
    "network_bytes": "Bytes that these carried.",
}


class Metrics:
    """The Prometheus counters, histograms and gauges of one host."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._rows = Counter(
            "evaluator_host_rows",
            "Rows evaluated, by language, status and error code.",
            ["language", "status", "code"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "evaluator_host_row_seconds",
            "Seconds of a row from the request to its result.",
            ["language"],
            buckets=_BUCKETS_S,
            registry=self.registry,
        )
        self._run_seconds = Histogram(
            "evaluator_host_run_seconds",
            "Seconds the user's code ran.",
            ["language"],
            buckets=_BUCKETS_S,
            registry=self.registry,
        )
        self._used = {
            name: Counter(f"evaluator_host_row_{name}", text, registry=self.registry) for name, text in _USED.items()
        }
        self._known: dict[tuple[str, str, str], Counter] = {}
        self._known_seconds: dict[str, Histogram] = {}
        self._known_run_seconds: dict[str, Histogram] = {}

    def watch(self, name: str, description: str, read: Callable[[], float]) -> None:
        """Add a gauge whose value is read by calling `read` at each scrape."""
        Gauge(f"evaluator_host_{name}", description, registry=self.registry).set_function(read)

    def count(self, result: EvaluationResult) -> None:
        """Count one result of a row."""
        language = result.evaluator.language.value
        labels = (language, result.status.value, result.error.code.value if result.error else "")
        rows = self._known.get(labels)
        if rows is None:  # finding a child by its labels costs more than counting
            rows = self._known[labels] = self._rows.labels(*labels)
            self._known_seconds[language] = self._seconds.labels(language)
            self._known_run_seconds[language] = self._run_seconds.labels(language)
        rows.inc()
        self._known_seconds[language].observe(result.timing_ms.total / 1000)
        self._known_run_seconds[language].observe(result.timing_ms.run / 1000)
        if result.usage is not None:
            for name, counter in self._used.items():
                counter.inc(getattr(result.usage, name))

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self.registry)
