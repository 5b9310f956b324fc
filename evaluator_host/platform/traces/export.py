"""Reads one request of an OTLP exporter: unpacks it, decodes it, and groups its spans by trace.

This code runs in a child process with limits.

The host gets the spans as encoded JSON and never decodes them, since a request of a few KB may have millions of values.
"""

import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import orjson

from evaluator_host.engine.contracts.otlp import attributes, first_of, identifier, objects, raw_spans
from evaluator_host.types.errors import InvalidRequest, TooLarge
from evaluator_host.types.json_values import InvalidJson, decode_json, encode_json, nests_within

PROTOBUF: Final = "application/x-protobuf"
REQUEST_SPANS: Final = 10_000  # maximum number of spans in one request; exporters send 512
_GROWTH: Final = 4  # how many times larger JSON may be than protobuf, with the resources repeated for each trace
_SESSION: Final = tuple(
    re.compile(rf"(?:.+[._])?{name}") for name in (r"session[._]id", r"conversation[._]id", "thread_id")
)
_SESSION_CHARS: Final = 200
_DEPTH: Final = 200
_PLACES: Final = 16**14
_HEAD: Final = 4  # number of bytes that contain the length of the head


@dataclass(frozen=True, slots=True)
class TraceSpans:
    """The spans in one request that belong to one trace, or to the traces of one session."""

    trace_id: str  # id in hex, or unchanged if it was sent in another form
    spans: int  # number of spans
    rooted: bool  # whether one of the spans is a root
    groups: bytes  # one or more elements of `resourceSpans`, as JSON, with commas between them
    traces: tuple[str, ...] = ()  # for a session, the ids of the session's traces; empty for a single trace


def read_request(
    body: bytes, media_type: str, encoding: str, most_bytes: int, share: float, group_by: str = "trace"
) -> bytes:
    """Return the traces in one request of an exporter, encoded for `traces_of`.

    Args:
      body: `ExportTraceServiceRequest` in protobuf or JSON, perhaps compressed.
      media_type: `application/x-protobuf`; anything else is JSON.
      encoding: The Content-Encoding: gzip, deflate, identity or nothing.
      most_bytes: Size limit of the unpacked body.
      share: Fraction of the traces to keep, from 0 to 1. The choice depends on trace ids only, so that all spans of a
        trace
        are kept, or none.
      group_by: `trace`, or `session` to join the traces of a session under its id. `share` then depends on this id.

    Raises:
      InvalidRequest: the body is not an OTLP export.
      TooLarge: the body has over `most_bytes` bytes or over 10,000 spans, or repeats its resources too often.
    """
    data = _inflated(body, encoding, most_bytes)
    export = _from_protobuf(data) if media_type == PROTOBUF else _from_json(data)
    groups: dict[str, list[bytes]] = defaultdict(list)
    spans: dict[str, int] = defaultdict(int)
    rooted: set[str] = set()
    traces: dict[str, set[str]] = defaultdict(set)
    sessions = _sessions(export) if group_by == "session" else {}
    left = most_bytes * _GROWTH
    for own_id, group, found in _by_trace(export):
        trace_id = sessions.get(own_id, own_id)
        if _place(trace_id) >= share * _PLACES:
            continue
        if own_id in sessions:
            traces[trace_id].add(own_id)
        groups[trace_id].append(encode_json(group))
        left -= len(groups[trace_id][-1])
        if left < 0:
            raise TooLarge("the resources of the request are too large to be stored with each of its traces")
        spans[trace_id] += len(found)
        if any(identifier(first_of(span, "parentSpanId", "parent_span_id")) is None for span in found):
            rooted.add(trace_id)
    joined = {trace_id: b",".join(parts) for trace_id, parts in groups.items()}
    head = orjson.dumps(
        [(one, spans[one], one in rooted, len(part), sorted(traces[one])) for one, part in joined.items()]
    )
    return b"".join((len(head).to_bytes(_HEAD), head, *joined.values()))


def traces_of(answer: bytes) -> Iterator[TraceSpans]:
    """Yield the traces in the bytes that `read_request` returned."""
    start = _HEAD + int.from_bytes(answer[:_HEAD])
    for trace_id, spans, rooted, size, traces in orjson.loads(answer[_HEAD:start]):
        yield TraceSpans(trace_id, spans, rooted, answer[start : start + size], tuple(traces))
        start += size


def _sessions(export: dict[str, Any]) -> dict[str, str]:
    """Return the session of each trace, if an attribute of a span or of the spans' resource names the session."""
    found: dict[str, str] = {}
    for trace_id, group, spans in _by_trace(export):
        resource = group["resource"] if isinstance(group["resource"], dict) else {}
        known = [item for one in (*spans, resource) for item in attributes(one.get("attributes")).items()]
        values = (
            str(value) for name in _SESSION for key, value in known if value and name.fullmatch(key[:_SESSION_CHARS])
        )
        if (session := next(values, None)) is not None:
            found.setdefault(trace_id, session[:_SESSION_CHARS])
    return found


def _inflated(body: bytes, encoding: str, ceiling: int) -> bytes:
    match encoding.strip().lower():
        case "" | "identity":
            inflated = body
        case "gzip" | "deflate":
            reader = zlib.decompressobj(zlib.MAX_WBITS | 32)
            try:
                inflated = reader.decompress(body, ceiling + 1)
            except zlib.error as error:
                raise InvalidRequest(
                    f"the body is not {encoding}, although Content-Encoding says so; encode it, or leave out this "
                    "header"
                ) from error
            if len(inflated) <= ceiling and (not reader.eof or reader.unused_data):
                raise InvalidRequest(f"the {encoding} body is cut off, or goes on after its end; send it as one stream")
        case other:
            raise InvalidRequest(f"Content-Encoding {other[:40]!r} is not accepted; send gzip, deflate or identity")
    if len(inflated) > ceiling:
        raise too_large(ceiling)
    return inflated


def too_large(ceiling: int) -> TooLarge:
    """Return the error for a request over the size limit, which is given in bytes."""
    return TooLarge(
        f"the spans have over {ceiling >> 20} MB once decompressed; send smaller batches, or ask the operator to raise "
        "EVALUATOR_HOST_TRACES_MB"
    )


def _from_protobuf(data: bytes) -> dict[str, Any]:
    # these imports take 50 ms, and only this process needs them
    from google.protobuf.json_format import MessageToDict  # noqa: PLC0415
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: PLC0415

    message = ExportTraceServiceRequest()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise InvalidRequest(
            "the body is not an OTLP export in protobuf; for JSON, send Content-Type: application/json"
        ) from error
    _require_few(sum(len(scope.spans) for group in message.resource_spans for scope in group.scope_spans))
    found: dict[str, Any] = MessageToDict(message)
    return found


def _from_json(data: bytes) -> dict[str, Any]:
    try:
        decoded = decode_json(data)
    except InvalidJson as error:
        raise InvalidRequest(f"the body is not an OTLP export: {error}") from error
    if not isinstance(decoded, dict):
        raise InvalidRequest('the body is not an OTLP export; send {"resourceSpans": […]}')
    if not nests_within(decoded, _DEPTH):
        raise InvalidRequest(f"the body is nested more than {_DEPTH} levels deep")
    groups = first_of(decoded, "resourceSpans", "resource_spans")
    _require_few(sum(1 for _ in islice(raw_spans(groups), REQUEST_SPANS + 1)))
    return decoded


def _require_few(spans: int) -> None:
    if spans > REQUEST_SPANS:
        raise TooLarge(f"the request has over {REQUEST_SPANS} spans; send smaller batches")


def _by_trace(export: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    """Yield the spans of each trace with their resource and scope. Values without the expected form are skipped."""
    for group in objects(export.get("resourceSpans", export.get("resource_spans"))):
        for scoped in objects(group.get("scopeSpans", group.get("scope_spans"))):
            by_trace: dict[str, list[Any]] = {}
            for span in objects(scoped.get("spans")):
                trace_id = identifier(span.get("traceId", span.get("trace_id")))
                if trace_id is not None:
                    by_trace.setdefault(trace_id, []).append(span)
            for trace_id, spans in by_trace.items():
                scope = {"scope": scoped.get("scope"), "spans": spans}
                yield trace_id, {"resource": group.get("resource"), "scopeSpans": [scope]}, spans


def _place(trace_id: str) -> int:
    """Return a number below `_PLACES` that depends only on the id of a trace or session.

    The number is a hash of the id, because OpenTelemetry's samplers choose traces by bits of the id itself. This host
    must not choose by the same bits among the traces that a sampler let through.
    """
    return int(sha256(trace_id.encode()).hexdigest()[:14], 16)
