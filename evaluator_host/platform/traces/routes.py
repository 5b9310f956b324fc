"""Routes of live traffic: receive spans from OpenTelemetry exporters (OTLP/HTTP), list scored traces."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from evaluator_host.engine.contracts.otlp import TRACE_SPANS
from evaluator_host.platform.http.auth.access import Access, AuditedCall, CallerOf, WorkspaceOf
from evaluator_host.platform.http.bodies import WholeNumber
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import LateRoute, json_response, large_json_response
from evaluator_host.platform.http.middleware import memory_of
from evaluator_host.platform.traces.export import PROTOBUF, too_large
from evaluator_host.platform.traces.live_traffic import QUIET_S, SESSION_QUIET_S, ExportRequest, Traffic
from evaluator_host.types.outcome import Status
from evaluator_host.types.stored import TraceReport

_MISSING = describe_error(404, "There is no such evaluator.")
_MEDIA_TYPES: dict[str, Any] = {
    "application/json": {"schema": {"type": "object", "additionalProperties": True}},
    PROTOBUF: {"schema": {"type": "string", "format": "binary"}},
}
_BODY: dict[str, Any] = {"requestBody": {"required": True, "content": _MEDIA_TYPES}}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "OTLP's response: `partialSuccess` counts the spans that are not scored.",
        "content": _MEDIA_TYPES,
    },
    **_MISSING,
    **describe_error(413, "The body is over EVALUATOR_HOST_TRACES_MB once decompressed, or has over 10,000 spans."),
    **describe_error(422, "The body is not an OTLP export."),
    **describe_error(429, "Too many spans of this workspace are waiting to be scored; see Retry-After."),
}


def traces_api(traffic: Traffic, access: Access, *, body_bytes: int) -> APIRouter:
    """Return the routes that receive and list the live traces of one of the caller's evaluators.

    `body_bytes` is the size limit of an export, both before and after it is unpacked.
    """
    router = APIRouter(prefix="/v1/evaluators/{name}/traces", tags=["traces"], route_class=LateRoute)

    @router.post("", response_class=Response, responses=_ANSWERS, openapi_extra=_BODY)
    async def take(
        name: str,
        request: Request,
        caller: CallerOf,
        sampling: Annotated[
            float | None,
            Query(ge=0, le=1, description="Fraction of traces to score. Default: the evaluator's sampling rate."),
        ] = None,
        group: Annotated[
            Literal["trace", "session"], Query(description="Score each trace, or the traces of a session together.")
        ] = "trace",
        quiet_s: Annotated[
            float | None,
            Query(
                ge=1,
                le=600,
                description=f"Seconds without a span before scoring; {QUIET_S:g}, or {SESSION_QUIET_S:g} for sessions.",
            ),
        ] = None,
    ) -> Response:
        """Receive spans from an OpenTelemetry exporter. Each trace is scored once it is complete."""
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        with AuditedCall(access, caller, "traces.take"):
            body = await request.body()
            if len(body) > body_bytes:
                raise too_large(body_bytes)
            export = ExportRequest(body, media_type, request.headers.get("content-encoding", ""))
            by_session = group == "session"
            refused = await traffic.accept_spans(
                caller.workspace, name, export, sampling=sampling, by_session=by_session, quiet_s=quiet_s
            )
        told: dict[str, Any] = {}
        if refused:
            message = (
                f"their trace has over {TRACE_SPANS} spans or 16 MB, or was scored before they arrived (see quiet_s)"
            )
            told = {"partialSuccess": {"rejectedSpans": str(refused), "errorMessage": message}}
        if media_type == PROTOBUF:
            # in a thread, because the first answer imports the libraries of protobuf
            return Response(await asyncio.to_thread(_as_protobuf, told), media_type=PROTOBUF)
        return json_response(told)

    @router.get("", response_model=list[TraceReport], responses=_MISSING)
    async def newest(
        name: str,
        request: Request,
        workspace: WorkspaceOf,
        status: Status | None = None,
        before: Annotated[
            WholeNumber | None, Query(description="`number` of the last trace on the previous page.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """List scored traces, newest first."""
        page: dict[str, Any] = {"limit": limit, "before": before, "status": status}
        found = await traffic.list_traces(workspace, name, **page, memory=memory_of(request.scope))
        return await large_json_response(found)

    return router


def _as_protobuf(told: dict[str, Any]) -> bytes:
    from google.protobuf.json_format import ParseDict  # noqa: PLC0415 - takes 20 ms, and few hosts need it
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: PLC0415 - as above

    return bytes(ParseDict(told, trace_service_pb2.ExportTraceServiceResponse()).SerializeToString())
