"""Provides the function that the host calls in a process where an agent ran."""

from __future__ import annotations

from typing import Any

from ..tracing._recording import take_spans
from .runtime._spans import serialize_span


def recorded_spans() -> list[dict[str, Any]]:
    """Return the spans that have ended since the last call, in the order in which they ended, as JSON."""
    return [serialize_span(span) for span in take_spans()]
