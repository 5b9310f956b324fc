"""Records all OpenTelemetry spans of this process, in the order in which they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

_MOST = 10_000


class _Recorder(SpanProcessor):
    """Keeps spans that have ended, up to a number that no real trace reaches."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        if len(self.spans) < _MOST:
            self.spans.append(span)


_recorder = _Recorder()
_provider = TracerProvider(resource=Resource.get_empty(), shutdown_on_exit=False)
_provider.add_span_processor(_recorder)
trace.set_tracer_provider(_provider)
tracer = _provider.get_tracer("uipath")


def take_spans() -> list[ReadableSpan]:
    """Return the spans that have ended since the last call."""
    taken, _recorder.spans = _recorder.spans, []
    return taken
