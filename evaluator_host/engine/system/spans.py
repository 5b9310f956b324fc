"""Spans of the host's own work, for OpenTelemetry (`server/telemetry.py`).

Without a recorder, spans cost nothing.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol, TypeAlias

Attributes: TypeAlias = dict[str, str | int | float | bool]


class Recorder(Protocol):
    """Interface for recording spans. Attributes never contain code, inputs, keys or exceptions' messages."""

    def span(
        self, name: str, attributes: Attributes, carrier: Mapping[str, str] | None = None
    ) -> AbstractContextManager[Attributes]:
        """Record the `with` block as a span; the block may add attributes to the dict that it gets.

        Args:
          name: Name of the span, which is the same for all spans of a kind.
          attributes: Attributes known at the start.
          carrier: Headers of the caller, such as `traceparent`. If None, the span that is open in this process is the
            parent.
        """
        ...

    def ended(self, name: str, seconds: float, attributes: Attributes) -> None:
        """Record a span that took `seconds`, and ends now."""
        ...

    def carrier(self) -> dict[str, str]:
        """Return the open span as headers (`traceparent`), so that another process can continue it."""
        ...


class _Spans:
    recorder: Recorder | None = None


_SPANS: Final = _Spans()


def record_spans(recorder: Recorder | None) -> None:
    """Set the recorder of this process's spans; None to record no spans."""
    _SPANS.recorder = recorder


def recorder() -> Recorder | None:
    """Return the recorder of this process's spans, or None if the host exports no spans."""
    return _SPANS.recorder


def span(
    name: str, attributes: Attributes, carrier: Mapping[str, str] | None = None
) -> AbstractContextManager[Attributes]:
    """Record the `with` block as a span, and yield a dict for more attributes.

    Without a recorder, only yield the dict.
    """
    return nullcontext({}) if _SPANS.recorder is None else _SPANS.recorder.span(name, attributes, carrier)
