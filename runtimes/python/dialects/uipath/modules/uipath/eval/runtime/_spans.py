"""Converts spans to and from JSON, in the format in which the package stores them."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags


def serialize_span(span: ReadableSpan) -> dict[str, Any]:
    return {
        "name": span.name,
        "context": _context_json(span.context),
        "parent": _context_json(span.parent),
        "attributes": _attributes_json(span.attributes),
        "events": [
            {"name": event.name, "attributes": _attributes_json(event.attributes), "timestamp": event.timestamp}
            for event in span.events
        ],
        "status_code": span.status.status_code.value,
        "status_description": span.status.description,
        "start_time": span.start_time,
        "end_time": span.end_time,
        "kind": span.kind.value,
    }


def deserialize_span(data: dict[str, Any]) -> ReadableSpan:
    events = data.get("events") or []
    return ReadableSpan(
        name=data["name"],
        context=_context(data.get("context")),
        parent=_context(data.get("parent")),
        attributes=data.get("attributes"),
        events=[Event(event["name"], event.get("attributes"), event.get("timestamp")) for event in events],
        status=Status(StatusCode(data.get("status_code", 0)), data.get("status_description")),
        start_time=data.get("start_time"),
        end_time=data.get("end_time"),
        kind=SpanKind(data.get("kind", 0)),
        resource=Resource.get_empty(),  # the default resource detects facts about the machine
    )


def _context_json(context: SpanContext | None) -> dict[str, int] | None:
    if context is None:
        return None
    return {"trace_id": context.trace_id, "span_id": context.span_id, "trace_flags": int(context.trace_flags)}


def _context(data: dict[str, int] | None) -> SpanContext | None:
    if not data:
        return None
    flags = TraceFlags(data.get("trace_flags", 0))
    return SpanContext(data["trace_id"], data["span_id"], is_remote=False, trace_flags=flags)


def _attributes_json(attributes: Any) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in (attributes or {}).items()}
