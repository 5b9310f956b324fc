"""Converts a trace to the documented shape, so that one evaluator can read traces of three shapes.

The documented shape is `{"spans": {"<span id>": {"name", "start_time", "end_time", "status_code", "attributes": {"ag":
{"data", "metrics": {"unit": {"costs", "tokens", "duration": {"total" in seconds}}}}}, "children": […]}}}`. An OTLP/JSON
export and a flat list of spans are converted to this shape. A trace as Agenta stores it (spans keyed by name, nested
`spans`, milliseconds) also gets the documented paths: without them, a latency check would read 0 seconds and score 1.0.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

from evaluator_host.engine.contracts import otlp
from evaluator_host.engine.contracts.otlp import SpanRecord, number, with_spans
from evaluator_host.types.evaluator import Json
from evaluator_host.types.outcome import Note

_DEPTH: Final = 48  # maximum depth of spans below a root; each takes two levels of JSON, and encoders stop at 254
_UNITS: Final = ("tokens", "costs")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS: Final = 2.5e20  # latest time that can be read, in nanoseconds since 1970; it is in the year 9892
_SINCE_1970: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""Units of time, as pairs: the smallest number that is read as the unit, and how many units a second has."""

_Span = dict[str, Any]


def convert(trace: dict[str, Json] | None) -> tuple[dict[str, Json] | None, tuple[Note, ...]]:
    """Return the trace in the documented shape, and a `trace_converted` note if it came in another shape.

    A trace in the documented shape or in an unknown shape is returned as it is. The caller's object is never changed.
    An unknown shape is not an error.
    """
    if trace is None:
        return None, ()
    trace = with_spans(trace)
    if not isinstance(trace, dict):
        return trace, ()
    spans = trace.get("spans")
    if isinstance(spans, dict):
        return _from_stored(trace, spans)
    if isinstance(spans, list):
        return _rebuilt(trace, _flat_records(spans), "a flat list of spans")
    for key in ("resourceSpans", "resource_spans"):
        if isinstance(trace.get(key), list):
            return _rebuilt(trace, otlp.records(trace[key]), "OTLP/JSON", drop=key)
    return trace, ()


def has_more_spans(trace: Json, most: int) -> bool:
    """Return whether a trace, in any shape, has more than `most` spans."""
    trace = with_spans(trace)
    if not isinstance(trace, dict):
        return False
    found = sum(1 for _ in islice(otlp.raw_spans(otlp.first_of(trace, "resourceSpans", "resource_spans")), most + 1))
    rest = [trace]
    while rest and found <= most:
        above = rest.pop()
        below = [span for spans in (above.get("spans"), above.get("children")) for _, span in _each(spans)]
        found += len(below)
        rest += below
    return found > most


def _rebuilt(
    trace: dict[str, Json], records: list[SpanRecord], shape: str, *, drop: str | None = None
) -> tuple[dict[str, Json], tuple[Note, ...]]:
    if not records:
        return trace, ()
    spans = _nested(records)
    converted = {key: value for key, value in trace.items() if key != drop}
    converted["spans"] = spans
    trace_id = next(iter(spans.values())).get("trace_id")
    if trace_id is not None:
        converted.setdefault("trace_id", trace_id)
    return converted, (Note("trace_converted", f"the trace came as {shape} and was converted to the documented shape"),)


# Flat lists of spans


def _flat_records(spans: list[Any]) -> list[SpanRecord]:
    found = [span for span in spans if isinstance(span, dict)]
    if not any(_span_id(span) for span in found):
        return []
    return [_flat_record(span, position) for position, span in enumerate(found)]


def _flat_record(span: _Span, position: int) -> SpanRecord:
    if otlp.is_exported(span):
        found = otlp.record(span, position)
        return replace(found, span={**span, **found.span})
    parent = next(
        (span[k] for k in ("parent_id", "parent_span_id", "parentSpanId") if isinstance(span.get(k), str)), None
    )
    start = _moment(span.get("start_time"))
    start_ns = int(start.timestamp() * 1e9) if start else 0
    documented = _documented(span, "")
    if isinstance(documented.get("attributes"), dict):
        documented["attributes"] = otlp.with_unit_sources(dict(documented["attributes"]))
    return SpanRecord(_span_id(span) or f"span-{position}", parent or None, start_ns, documented)


def _span_id(span: _Span) -> str | None:
    return next((span[k] for k in ("span_id", "spanId", "id") if isinstance(span.get(k), str) and span[k]), None)


def _nested(records: list[SpanRecord]) -> dict[str, _Span]:
    """Return the root spans by id, each with the spans below it; roots without a parent id come first.

    Each span occurs once, even if the parent ids are contradictory. If the parent is unknown, the span is a root. A
    cycle is broken at its earliest span. Spans that are too deep become siblings of their parent.
    """
    ordered = sorted(records, key=lambda record: (record.parent is not None, record.start_ns))
    by_id: dict[str, SpanRecord] = {}
    below: dict[str, list[str]] = defaultdict(list)
    for position, record in enumerate(ordered):
        key = record.id
        while key in by_id:
            key = f"{key}-{position}"
        by_id[key] = record
    for key, record in by_id.items():
        if record.parent in by_id and record.parent != key:
            below[str(record.parent)].append(key)
    roots: dict[str, _Span] = {}
    placed: dict[str, str | None] = {}
    in_root = [key for key, record in by_id.items() if record.parent not in by_id or record.parent == key]
    for key in (*in_root, *by_id):  # spans that are only in `by_id` are in a cycle of parents
        if key not in placed:
            roots[key] = by_id[key].span
            _place(key, by_id, below, placed)
    _sum_up(by_id, placed)
    return roots


def _place(root: str, by_id: dict[str, SpanRecord], below: dict[str, list[str]], placed: dict[str, str | None]) -> None:
    placed[root] = None
    queue = deque([(root, 1, _own_children(by_id[root].span))])
    while queue:
        key, depth, children = queue.popleft()
        for child in below.get(key, ()):
            if child not in placed:
                placed[child] = key
                span = by_id[child].span
                children.append(span)
                own = _own_children(span)
                queue.append((child, depth + 1, own if depth < _DEPTH else children))


def _own_children(span: _Span) -> list[_Span]:
    """Replace a span's `children` with a new list of the same children; return the list."""
    brought = span.get("children")
    children: list[_Span] = list(brought) if isinstance(brought, list) else _stored_children(span, 1)
    span["children"] = children
    return children


def _sum_up(by_id: dict[str, SpanRecord], placed: dict[str, str | None]) -> None:
    """Set missing tokens and costs of each span to the sums over the spans below it."""
    sums: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for key in reversed(placed):  # the order is reversed, because `placed` has parents before their children
        span, parent = by_id[key].span, placed[key]
        for unit in _UNITS:
            if unit in sums[key]:
                _add_units(span, {unit: sums[key][unit]})
            own = _dig(span, "attributes", "ag", "metrics", "unit", unit)
            if parent is not None and isinstance(own, dict):
                total = sums[parent].setdefault(unit, {})
                for name, value in own.items():
                    if (count := number(value)) is not None:
                        total[name] = total.get(name, 0) + count


# Traces in the shape that Agenta stores


def _from_stored(trace: dict[str, Json], spans: dict[str, Any]) -> tuple[dict[str, Json], tuple[Note, ...]]:
    if not any(_lacks_documented_paths(span) for _, span in _each(spans)):
        return trace, ()
    note = Note(
        "trace_converted",
        "the trace has the shape in which Agenta stores traces; the documented paths (name, children, metrics.unit) "
        "were added",
    )
    return {**trace, "spans": _stored_spans(spans, 0)}, (note,)


def _lacks_documented_paths(span: _Span) -> bool:
    metrics = _dig(span, "attributes", "ag", "metrics")
    sources = [metrics.get(unit) for unit in ("duration", *_UNITS)] if isinstance(metrics, dict) else []
    is_stored = (
        "span_name" in span
        or isinstance(span.get("spans"), dict)
        or any(isinstance(source, dict) and "cumulative" in source for source in sources)
    )
    unit_is_due = any(sources) and isinstance(metrics, dict) and "unit" not in metrics
    return is_stored and ("name" not in span or "children" not in span or unit_is_due)


def _stored_spans(spans: Any, depth: int) -> Any:
    """Return a copy of the stored tree with the documented paths added.

    Only roots get `children`, because each level of `children` doubles the size.
    """
    if depth == _DEPTH:
        return spans
    if isinstance(spans, list):
        return [_stored_span(span, "", depth) if isinstance(span, dict) else span for span in spans]
    if not isinstance(spans, dict):
        return spans
    return {
        name: _stored_span(value, name, depth)
        if isinstance(value, dict)
        else [_stored_span(span, name, depth) if isinstance(span, dict) else span for span in value]
        if isinstance(value, list)
        else value
        for name, value in spans.items()
    }


def _stored_span(span: _Span, name: str, depth: int) -> _Span:
    added = _documented(span, name)
    if "spans" in span:
        added["spans"] = _stored_spans(span["spans"], depth + 1)
    if depth == 0 and "children" not in span:
        added["children"] = _stored_children(span, 1)
    return added


def _stored_children(span: _Span, depth: int) -> list[_Span]:
    if depth == _DEPTH:
        return []
    children = []
    for name, child in _each(span.get("spans")):
        added = _documented({key: value for key, value in child.items() if key != "spans"}, name)
        added.setdefault("children", _stored_children(child, depth + 1))
        children.append(added)
    return children


def _each(spans: Any) -> Iterator[tuple[str, _Span]]:
    """Yield each span with its name; stored traces keep spans of the same name in a list."""
    pairs = spans.items() if isinstance(spans, dict) else [("", spans)]
    for name, value in pairs:
        for span in value if isinstance(value, list) else [value]:
            if isinstance(span, dict):
                yield str(name), span


# Paths that each span has according to the documentation


def _documented(span: _Span, name: str) -> _Span:
    """Return a copy of a span; documented paths that are missing are filled from other fields."""
    added = dict(span)
    if "name" not in added:
        added["name"] = span["span_name"] if isinstance(span.get("span_name"), str) else name
    status = span.get("status")
    if "status_code" not in added and isinstance(status, dict) and isinstance(status.get("code"), str):
        added["status_code"] = status["code"]
    if isinstance(added.get("attributes"), dict):
        added["attributes"] = otlp.expanded(added["attributes"])
    metrics = _dig(added, "attributes", "ag", "metrics")
    metrics = metrics if isinstance(metrics, dict) else {}
    units: dict[str, Any] = {unit: amount for unit in _UNITS if (amount := _amount(metrics, unit))}
    seconds = _seconds(added, metrics)
    if seconds is not None:
        units["duration"] = {"total": seconds}
    _add_units(added, units)
    return added


def _amount(metrics: dict[str, Any], unit: str) -> dict[str, Any] | None:
    stored = metrics.get(unit)
    found = [stored.get("cumulative"), stored.get("incremental")] if isinstance(stored, dict) else []
    found.append(_dig(metrics, "acc", unit))
    return next((dict(amount) for amount in found if isinstance(amount, dict) and amount), None)


def _seconds(span: _Span, metrics: dict[str, Any]) -> float | None:
    milliseconds = number(_dig(metrics, "duration", "cumulative"))
    if milliseconds is not None:
        return milliseconds / 1000
    start, end = _moment(span.get("start_time")), _moment(span.get("end_time"))
    return (end - start).total_seconds() if start and end and end >= start else None


def _add_units(span: _Span, units: dict[str, Any]) -> None:
    """Add missing units to `attributes.ag.metrics.unit`, without changing objects that the caller may share."""
    chain: list[dict[str, Any]] = [span]
    for step in ("attributes", "ag", "metrics", "unit"):
        inner = chain[-1].get(step, {})
        if not isinstance(inner, dict):
            return
        chain.append(dict(inner))
    unit = chain[-1]
    missing = {name: value for name, value in units.items() if name not in unit}
    duration = unit.get("duration")
    if "duration" in units and isinstance(duration, dict) and "total" not in duration:
        missing["duration"] = {**duration, **units["duration"]}
    if not missing:
        return
    unit.update(missing)
    for outer, step, inner in zip(chain, ("attributes", "ag", "metrics", "unit"), chain[1:], strict=False):
        outer[step] = inner


def _moment(value: Any) -> datetime | None:
    """Read a time: ISO 8601, or a number of seconds, milliseconds, microseconds or nanoseconds since 1970."""
    if isinstance(value, int | float) and 0 < value < _LAST_NS:
        return _EPOCH + timedelta(seconds=value / next((unit for least, unit in _SINCE_1970 if value >= least), 1))
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _dig(value: Any, *path: str) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value
