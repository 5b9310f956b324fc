"""Reads the spans of an OTLP/JSON export, and the fields of spans in every supported trace format.

Values of the wrong shape are skipped and never raise an error. Field names may have either spelling that exporters use
(`spanId` or `span_id`). Ids may be in hex (the OTLP/JSON rule) or base64 (the protobuf rule). 64-bit integers may be
strings or numbers.
"""

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from evaluator_host.types.json_values import VALUE_DEPTH, nests_within

TRACE_SPANS: Final = 50_000  # maximum number of spans in one trace; converting them takes a second or two
_NANO: Final = 1_000_000_000
_LAST_SECOND: Final = 253_402_300_799  # 9999-12-31T23:59:59Z, the last second whose year has four digits in ISO 8601
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_STATUS: Final = {0: "UNSET", 1: "OK", 2: "ERROR", "0": "UNSET", "1": "OK", "2": "ERROR"}
_DECODED: Final = ("ag.data.inputs", "ag.data.outputs", "ag.data.parameters", "ag.data.internals")
_ALIASES: Final = {  # for each documented value, the attributes in which other instrumentations record it
    "inputs": ("input.value", "traceloop.entity.input"),
    "outputs": ("output.value", "traceloop.entity.output"),
    "prompt": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    "completion": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
    "total": ("gen_ai.usage.total_tokens", "llm.usage.total_tokens", "llm.token_count.total"),
    "cost": ("gen_ai.usage.cost", "gen_ai.usage.total_cost", "llm.cost.total"),
}
ATTRIBUTE_DEPTH: Final = 16  # maximum number of nested levels of kvlistValue and arrayValue
INTEGER: Final = re.compile(r"-?[0-9]{1,19}")

_ID_CHARACTERS: Final = 64
_HEX_ID: Final = re.compile(r"[0-9a-fA-F]{16}|[0-9a-fA-F]{32}")


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """One span with the fields that evaluators get; it is not linked to its parent yet."""

    id: str  # id of the span, in hex for OTLP, otherwise as sent; `span-<position>` if it has none
    parent: str | None  # id of its parent; None for a root
    start_ns: int  # start time in nanoseconds since 1970, for sorting siblings; 0 when unknown
    span: dict[str, Any]  # `{"name", "start_time", "end_time", "status_code", "attributes", …}`


def with_spans(trace: Any) -> Any:
    """Wrap a flat list of spans in a trace object, `{"spans": […]}`; return any other value unchanged."""
    return {"spans": trace} if isinstance(trace, list) else trace


def first_of(raw: dict[str, Any], *keys: str) -> Any:
    """Return the first non-null value among the fields with these names, or None."""
    return next((raw[key] for key in keys if raw.get(key) is not None), None)


def as_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; an empty list if the value is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def as_object(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def number(value: Any) -> float | int | None:
    """Return the value if it is a finite number below 10^18, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value if isinstance(value, float) else 0.0) and abs(value) < 1e18 else None


def identifier(value: Any) -> str | None:
    """Return a span or trace id in hex, or None for an absent, empty or all-zero id.

    An id in another form is kept if it is printable and has at most 64 characters. Otherwise it is replaced with its
    hash, because ids are logged, stored and shown.
    """
    if not isinstance(value, str) or not value.strip("0="):
        return None
    if _HEX_ID.fullmatch(value):
        return value.lower()
    try:
        raw = base64.b64decode(value, validate=True) if len(value) <= _ID_CHARACTERS else b""
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) in (8, 16):
        return raw.hex() if any(raw) else None
    if len(value) <= _ID_CHARACTERS and value.isprintable():
        return value
    return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()[:32]


def attributes(raw: Any, *, depth: int = ATTRIBUTE_DEPTH) -> dict[str, Any]:
    """Return span attributes by name, from an object or from OTLP's list `[{"key", "value": {"stringValue": …}}]`.

    Args:
      raw: The object or the list.
      depth: Levels of arrayValue and kvlistValue to decode; deeper values become null.
    """
    if isinstance(raw, dict):
        return {str(key): value for key, value in raw.items()}
    return {item["key"]: _value(item.get("value"), depth) for item in objects(raw) if isinstance(item.get("key"), str)}


def _value(raw: Any, depth: int) -> Any:
    if not isinstance(raw, dict) or depth == 0:
        return raw if isinstance(raw, str | int | float | bool) else None
    for key, value in raw.items():
        kind = str(key).replace("_v", "V")
        if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue", "intValue"):
            is_text = kind == "intValue" and isinstance(value, str) and INTEGER.fullmatch(value)
            return int(value) if is_text else _value(value, 0)
        inner = value.get("values") if isinstance(value, dict) else value
        if kind == "arrayValue":
            return [_value(item, depth - 1) for item in inner] if isinstance(inner, list) else []
        if kind == "kvlistValue":
            return attributes(inner, depth=depth - 1)
    return None


def records(groups: Any) -> list[SpanRecord]:
    """Return every span of `resourceSpans` once, in the order of the export."""
    return [record(span, number) for number, span in enumerate(distinct_spans(groups))]


def expanded(flat: dict[str, Any]) -> dict[str, Any]:
    """Return attributes with `ag.…` keys nested: `{"ag.data.inputs": 1}` becomes `{"ag": {"data": {"inputs": 1}}}`."""
    if not any(key.startswith("ag.") for key in flat):
        return flat
    nested = {key: value for key, value in flat.items() if not key.startswith("ag.")}
    nested["ag"] = _copied(nested.get("ag", {}), ATTRIBUTE_DEPTH)
    for key, value in flat.items():
        if key.startswith("ag."):
            decoded = _decoded(value) if key in _DECODED else value
            if not _insert(nested, key.split("."), _copied(decoded, ATTRIBUTE_DEPTH)):
                nested[key] = value
    return nested


def distinct_spans(groups: Any) -> Iterator[dict[str, Any]]:
    """Yield the spans of `resourceSpans` unchanged, but skip exact copies: exporters that retry send spans twice."""
    known: dict[tuple[str | None, str], dict[str, Any]] = {}
    for span in raw_spans(groups):
        trace_id, span_id = first_of(span, "traceId", "trace_id"), first_of(span, "spanId", "span_id")
        key = (as_text(trace_id), span_id) if isinstance(span_id, str) and span_id else None
        if key is None or known.get(key) != span:
            yield span
        if key is not None:
            known.setdefault(key, span)


def raw_spans(groups: Any) -> Iterator[dict[str, Any]]:
    """Yield the spans of `resourceSpans` unchanged."""
    for resource in objects(groups):
        scopes = first_of(
            resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans"
        )
        for scope in objects(scopes):
            yield from objects(scope.get("spans"))


def is_exported(span: dict[str, Any]) -> bool:
    """Return whether a span has OTLP's own form: times in nanoseconds, or attributes in a list."""
    times = ("startTimeUnixNano", "start_time_unix_nano", "endTimeUnixNano", "end_time_unix_nano")
    return isinstance(span.get("attributes"), list) or first_of(span, *times) is not None


def record(raw: dict[str, Any], position: int) -> SpanRecord:
    """Return the record of a span in OTLP's own form; if it has no id, its `position` replaces the id."""
    start_ns = _nanoseconds(first_of(raw, "startTimeUnixNano", "start_time_unix_nano"))
    end_ns = _nanoseconds(first_of(raw, "endTimeUnixNano", "end_time_unix_nano"))
    status = raw.get("status") if isinstance(raw.get("status"), dict) else {}
    span_id = identifier(first_of(raw, "spanId", "span_id")) or f"span-{position}"
    parent = identifier(first_of(raw, "parentSpanId", "parent_span_id"))
    span: dict[str, Any] = {
        "name": raw["name"] if isinstance(raw.get("name"), str) else "",
        "trace_id": identifier(first_of(raw, "traceId", "trace_id")),
        "span_id": span_id,
        "parent_id": parent,
        "start_time": _iso(start_ns) or as_text(first_of(raw, "startTime", "start_time")),
        "end_time": _iso(end_ns) or as_text(first_of(raw, "endTime", "end_time")),
        "status_code": _status(status.get("code") if status else first_of(raw, "statusCode", "status_code")),
        "attributes": with_unit_sources(expanded(attributes(raw.get("attributes"))), start_ns, end_ns),
    }
    if status and isinstance(status.get("message"), str):
        span["status_message"] = status["message"]
    if events := objects(raw.get("events")):
        span["events"] = [_event(event) for event in events]
    return SpanRecord(span_id, parent, start_ns or 0, span)


def _event(raw: dict[str, Any]) -> dict[str, Any]:
    when = _iso(_nanoseconds(first_of(raw, "timeUnixNano", "time_unix_nano")))
    return {
        "name": as_text(raw.get("name")),
        "timestamp": when,
        "attributes": attributes(raw.get("attributes"), depth=4),
    }


def with_unit_sources(
    attributes: dict[str, Any], start_ns: int | None = None, end_ns: int | None = None
) -> dict[str, Any]:
    """Fill `ag.data` and `ag.metrics.unit` from the attributes that other instrumentations use.

    Return the attributes.
    """
    if "ag" in attributes:
        attributes["ag"] = _copied(attributes["ag"], ATTRIBUTE_DEPTH)
    found = {name: next((attributes[k] for k in keys if k in attributes), None) for name, keys in _ALIASES.items()}
    for name in ("inputs", "outputs"):
        if found[name] is not None:
            _insert(attributes, ["ag", "data", name], _decoded(found[name]))
    tokens = {name: count for name in ("prompt", "completion", "total") if (count := _count(found[name])) is not None}
    if tokens:
        tokens.setdefault("total", tokens.get("prompt", 0) + tokens.get("completion", 0))
        _insert(attributes, ["ag", "metrics", "unit", "tokens"], tokens)
    cost = _count(found["cost"])
    if cost is not None:
        _insert(attributes, ["ag", "metrics", "unit", "costs"], {"total": cost})
    if start_ns and end_ns and end_ns >= start_ns:
        _insert(attributes, ["ag", "metrics", "unit", "duration", "total"], (end_ns - start_ns) / _NANO)
    return attributes


def _insert(target: dict[str, Any], path: list[str], value: Any) -> bool:
    """Set the value at a path unless a value is there already; return whether it was set."""
    if len(path) > ATTRIBUTE_DEPTH or not all(path):
        return False
    for step in path[:-1]:
        inner = target.setdefault(step, {})
        if not isinstance(inner, dict):
            return False
        target = inner
    if path[-1] in target:
        return False
    target[path[-1]] = value
    return True


def _copied(value: Any, depth: int) -> Any:
    return {k: _copied(v, depth - 1) for k, v in value.items()} if isinstance(value, dict) and depth else value


def _decoded(value: Any) -> Any:
    """Decode a string that contains a JSON object, array or string; return other strings unchanged, such as `"70"`."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        decoded = orjson.loads(value)
    except ValueError:
        return value
    return decoded if nests_within(decoded, VALUE_DEPTH) else value


def _count(value: Any) -> float | int | None:
    return int(value) if isinstance(value, str) and INTEGER.fullmatch(value) else number(value)


def _nanoseconds(value: Any) -> int | None:
    if isinstance(value, str):
        value = int(value) if INTEGER.fullmatch(value) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 1 <= value <= _LAST_SECOND * _NANO else None


def _iso(time_ns: int | None) -> str | None:
    if time_ns is None:
        return None
    when = _EPOCH + timedelta(microseconds=time_ns // 1000)
    return when.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _status(code: Any) -> str:
    if isinstance(code, str) and code.removeprefix("STATUS_CODE_") in ("UNSET", "OK", "ERROR"):
        return code.removeprefix("STATUS_CODE_")
    return _STATUS.get(code, "UNSET") if isinstance(code, int | str) else "UNSET"
