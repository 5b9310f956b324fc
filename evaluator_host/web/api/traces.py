"""Routes of live traffic: receive spans of OpenTelemetry exporters (OTLP/HTTP), list scored traces."""

import zlib
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evaluator_host.evaluators.live_traffic import Traffic
from evaluator_host.model.errors import InvalidRequest, TooLarge
from evaluator_host.model.json_values import InvalidJson, decode_json
from evaluator_host.model.outcome import Status
from evaluator_host.schemas.stored import TraceReport
from evaluator_host.web.api.bodies import WholeNumber
from evaluator_host.web.auth.access import Access, AuditedCall, caller_of
from evaluator_host.web.http.error_responses import describe_error
from evaluator_host.web.http.json_routes import json_response

_PROTOBUF: Final = "application/x-protobuf"
_MISSING = describe_error(404, "No such evaluator.")
_REFUSED = {**_MISSING, **describe_error(422, "The body is not an OTLP export.")}
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            _PROTOBUF: {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": {"type": "object"}},
        },
    }
}


def traces_api(traffic: Traffic, access: Access, *, body_bytes: int) -> APIRouter:
    """Return the routes of live traffic. A key reaches the evaluators of its workspace."""
    router = APIRouter(prefix="/v1/evaluators/{name}/traces", tags=["traces"])

    @router.post("", response_class=Response, responses=_REFUSED, openapi_extra=_BODY)
    async def take(
        name: str,
        request: Request,
        sampling: Annotated[
            float | None, Query(ge=0, le=1, description="Fraction of traces to score. Default: the evaluator's own.")
        ] = None,
    ) -> Response:
        """Receive spans of an OpenTelemetry exporter. Each trace is scored once it is complete."""
        caller = caller_of(request.scope)
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        with AuditedCall(access, caller, "traces.take"):
            body = _inflated(await request.body(), request.headers.get("content-encoding", ""), body_bytes)
            await traffic.accept_spans(caller.workspace, name, _export(body, media_type), sampling=sampling)
        if media_type == _PROTOBUF:
            return Response(b"", media_type=_PROTOBUF)  # an empty ExportTraceServiceResponse
        return Response(b"{}", media_type="application/json")

    @router.get("", response_model=list[TraceReport], responses=_MISSING)
    async def newest(
        name: str,
        request: Request,
        status: Status | None = None,
        before: Annotated[
            WholeNumber | None, Query(description="`number` of the last trace on the previous page.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """List scored traces, newest first."""
        workspace = caller_of(request.scope).workspace
        return json_response(await traffic.list_traces(workspace, name, limit=limit, before=before, status=status))

    return router


def _export(body: bytes, media_type: str) -> dict[str, Any]:
    if media_type == _PROTOBUF:
        message = ExportTraceServiceRequest()
        try:
            message.ParseFromString(body)
        except DecodeError as error:
            raise InvalidRequest("the body is not an OTLP export in protobuf") from error
        found: dict[str, Any] = MessageToDict(message)
        return found
    try:
        decoded = decode_json(body)
    except InvalidJson as error:
        raise InvalidRequest(f"the body is not an OTLP export: {error}") from error
    if not isinstance(decoded, dict):
        raise InvalidRequest('the body is not an OTLP export: {"resourceSpans": […]}')
    return decoded


def _inflated(body: bytes, encoding: str, ceiling: int) -> bytes:
    match encoding.strip().lower():
        case "" | "identity":
            return body
        case "gzip" | "deflate":
            reader = zlib.decompressobj(zlib.MAX_WBITS | 32)
        case other:
            raise InvalidRequest(f"Content-Encoding {other[:40]!r} is not accepted; send gzip, deflate or identity")
    try:
        inflated = reader.decompress(body, ceiling + 1)
    except zlib.error as error:
        raise InvalidRequest(f"the body is not {encoding}") from error
    if len(inflated) > ceiling or reader.unconsumed_tail:
        raise TooLarge(
            f"the body is over this host's limit of {ceiling >> 20} MB once decompressed; send smaller batches"
        )
    return inflated
