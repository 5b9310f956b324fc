"""Reads a trace in any supported format as a flat list of spans.

The formats: OTLP/JSON; lists of spans as OpenTelemetry's SDK writes them (`to_json`), as agent platforms store them
(`serialize_span`) or as flat records; the documented tree. If a value is not a span, the error names its place.
"""

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from evaluator_host.engine.contracts.otlp import (
    INTEGER,
    as_object,
    as_text,
    attributes,
    distinct_spans,
    first_of,
    identifier,
)
from evaluator_host.types.evaluator import Json

_HEX: Final = re.compile(r"(?:0x)?([0-9a-fA-F]{1,32})")
_STATUS: Final = {"UNSET": 0, "OK": 1, "ERROR": 2}
_KINDS: Final = ("INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_DEPTH: Final = 64  # maximum nesting depth of spans
_MOST_NS: Final = 1 << 63
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TREES: Final = ("children", "spans")


class NotATrace(Exception):
    """The value is not a trace, or contains something that is not a span. The message says where and what."""


def read_spans(trace: Json) -> list[dict[str, Json]]:
    """Return a trace's spans in order; in a tree, parents come before their children.

    A span is `{"name", "trace_id", "span_id", "parent_id", "attributes", "events": [{"name", "attributes",
    "timestamp"}], "status", "status_message", "start_time", "end_time", "kind"}`: ids in hex, times in nanoseconds or
    null, status and kind as OpenTelemetry's SDK numbers them.

    Raises:
      NotATrace: the trace has no supported format.
    """
    if trace is None:
        return []
    found = list(_found(trace))
    return [_span(raw, where, place) for place, (where, raw) in enumerate(found, 1)]


def _found(trace: Json) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(trace, dict):
        raise NotATrace(f"the trace is {_named(trace)}, not an object")
    for key in ("resourceSpans", "resource_spans"):
        if isinstance(trace.get(key), list):
            yield from ((f"trace.{key}", raw) for raw in distinct_spans(trace[key]))
            return
    if "spans" in trace:
        yield from _below(trace["spans"], "trace.spans", _DEPTH)
    elif trace:
        keys = ", ".join(list(trace)[:5])
        raise NotATrace(f"the trace has neither `spans` nor `resourceSpans`, only {keys}")


def _below(spans: Json, where: str, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the spans in a list, or in an object with spans by id or name; parents come before their children."""
    if depth == 0:
        raise NotATrace(f"{where} has spans nested more than {_DEPTH} levels deep")
    if not isinstance(spans, list | dict):
        raise NotATrace(f"{where} is {_named(spans)}, neither a list nor an object of spans")
    pairs = spans.items() if isinstance(spans, dict) else enumerate(spans)
    for key, value in pairs:
        place = f"{where}.{key}" if isinstance(spans, dict) else f"{where}[{key}]"
        for raw in value if isinstance(spans, dict) and isinstance(value, list) else [value]:
            if not isinstance(raw, dict):
                raise NotATrace(f"{place} is {_named(raw)}, not a span")
            known = {"span_name": key, "span_id": raw.get("id", key)} if isinstance(spans, dict) else {}
            yield place, {**known, **raw}
            for tree in _TREES:
                if raw.get(tree):
                    yield from _below(raw[tree], f"{place}.{tree}", depth - 1)


def _span(raw: dict[str, Any], where: str, place: int) -> dict[str, Json]:
    context, parent = as_object(raw.get("context")), as_object(raw.get("parent"))
    name = raw.get("name", raw.get("span_name"))
    if not isinstance(name, str):
        raise NotATrace(f"{where} has no name, so it is not a span")
    status = as_object(raw.get("status"))
    code = first_of(status, "status_code", "code") if status else first_of(raw, "status_code", "statusCode")
    return {
        "name": name,
        "trace_id": _id(first_of(context, "trace_id") or first_of(raw, "trace_id", "traceId"), 0, bits=128),
        "span_id": _id(first_of(context, "span_id") or first_of(raw, "span_id", "spanId", "id"), place, bits=64),
        "parent_id": _parent(
            first_of(parent, "span_id") or first_of(raw, "parent_id", "parent_span_id", "parentSpanId")
        ),
        "attributes": _with_tool(attributes(raw.get("attributes")), name),
        "events": _events(raw.get("events"), where),
        "status": _numbered(code, _STATUS, "STATUS_CODE_"),
        "status_message": as_text(first_of(status, "description", "message") or first_of(raw, "status_description")),
        "start_time": _nanoseconds(first_of(raw, "start_time", "startTimeUnixNano", "start_time_unix_nano")),
        "end_time": _nanoseconds(first_of(raw, "end_time", "endTimeUnixNano", "end_time_unix_nano")),
        "kind": _kind(raw),
    }


def _events(raw: Json, where: str) -> list[dict[str, Json]]:
    if not isinstance(raw, list | None):
        raise NotATrace(f"{where}.events is {_named(raw)}, not a list")
    return [_event(event, where) for event in raw or ()]


def _event(raw: Json, where: str) -> dict[str, Json]:
    if not isinstance(raw, dict):
        raise NotATrace(f"{where}.events holds {_named(raw)}, not an event")
    return {
        "name": as_text(raw.get("name")) or "",
        "attributes": attributes(raw.get("attributes")),
        "timestamp": _nanoseconds(first_of(raw, "timestamp", "timeUnixNano", "time_unix_nano")),
    }


def _with_tool(attributes: dict[str, Any], name: str) -> dict[str, Any]:
    """If a span is a tool call of the documented tree, add `tool.name`, input and output to its attributes."""
    ag = as_object(attributes.get("ag"))
    kind = as_object(ag.get("type")).get("span", attributes.get("ag.type.span"))
    if "tool.name" in attributes or kind != "tool":
        return attributes
    data = as_object(ag.get("data"))
    told = {"tool.name": name, "input.value": data.get("inputs"), "output.value": data.get("outputs")}
    return {**{key: value for key, value in told.items() if value is not None}, **attributes}


def _id(value: Any, otherwise: int, *, bits: int) -> str:
    """Return an id as hex digits of at most `bits` bits. Other strings are hashed; a missing id becomes `otherwise`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return f"{value % (1 << bits):x}"
    if not isinstance(value, str) or not value.strip("0="):
        return f"{otherwise:x}"
    found = _HEX.fullmatch(value) or _HEX.fullmatch(identifier(value) or "")
    number = int(found[1], 16) if found else int.from_bytes(hashlib.sha256(value.encode()).digest()[:8])
    return f"{number % (1 << bits):x}"


def _parent(value: Any) -> str | None:
    found = _id(value, 0, bits=64)
    return None if found == "0" else found


def _numbered(value: Any, names: dict[str, int], prefix: str) -> int:
    if isinstance(value, str):
        return names.get(value.removeprefix(prefix).rpartition(".")[2].upper(), 0)
    return value if type(value) is int and value in names.values() else 0


def _kind(raw: dict[str, Any]) -> int:
    value = first_of(raw, "kind", "span_kind")
    if isinstance(value, str):
        return _numbered(value, {name: number for number, name in enumerate(_KINDS)}, "SPAN_KIND_")
    # OTLP numbers the kinds of spans from 1, OpenTelemetry's SDK from 0
    first = 1 if "spanId" in raw or "startTimeUnixNano" in raw or "start_time_unix_nano" in raw else 0
    return value - first if type(value) is int and 0 <= value - first < len(_KINDS) else 0


def _nanoseconds(value: Any) -> int | None:
    if isinstance(value, str):
        if INTEGER.fullmatch(value):
            return int(value)
        try:
            when = datetime.fromisoformat(value)
        except ValueError:
            return None
        since = (when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH
        return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MOST_NS else None


def _named(value: Any) -> str:
    name = type(value).__name__
    return "null" if value is None else f"{'an' if name == 'int' else 'a'} {name}"
