"""Routes of stored evaluators, and of their live traffic: spans of OpenTelemetry exporters, scored traces."""

from dataclasses import fields
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request, Response
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from pydantic import Field, StringConstraints

from evaluator_host.evaluators.live_traffic import SESSION_QUIET_S, Export, Traffic
from evaluator_host.evaluators.registry import EvaluatorRegistry
from evaluator_host.jobs.service import JobService
from evaluator_host.model.outcome import Status
from evaluator_host.schemas.results import JobEvaluatorReport
from evaluator_host.schemas.stored import EvaluatorReport, TraceReport
from evaluator_host.store.evaluators import NameFacts
from evaluator_host.traces.export import PROTOBUF, too_large
from evaluator_host.traces.otlp import TRACE_SPANS
from evaluator_host.web.api.bodies import (
    EXACT_MATCH,
    CasesIn,
    EvaluatorIn,
    WholeNumber,
    Wire,
    case_dicts,
    example,
)
from evaluator_host.web.auth.access import Access, AuditedCall, caller_of
from evaluator_host.web.http.error_responses import describe_error
from evaluator_host.web.http.json_routes import JsonRoute, json_response

_MISSING = describe_error(404, "There is no such evaluator or version.")
_REFUSED = describe_error(422, "The evaluator does not load, or the request is invalid; every faulty field is named.")
_UNAVAILABLE = describe_error(503, "No sandbox starts, or the database does not answer.")
_TAKEN = describe_error(409, "There is already an evaluator of that name.")
_SAME: dict[int | str, dict[str, Any]] = {
    200: {"model": EvaluatorReport, "description": "Nothing changed: this is the newest version."}
}
_NO_EVALUATOR = describe_error(404, "No such evaluator.")
_MEDIA_TYPES: dict[str, Any] = {
    "application/json": {"schema": {"type": "object", "additionalProperties": True}},
    PROTOBUF: {"schema": {"type": "string", "format": "binary"}},
}
_EXPORT: dict[str, Any] = {"requestBody": {"required": True, "content": _MEDIA_TYPES}}
_TAKEN_SPANS: dict[int | str, dict[str, Any]] = {
    200: {"description": "As OTLP answers: `partialSuccess` counts what is not scored.", "content": _MEDIA_TYPES},
    **_NO_EVALUATOR,
    **describe_error(413, "The body is over EVALUATOR_HOST_TRACES_MB once decompressed, or has over 10,000 spans."),
    **describe_error(422, "The body is not an OTLP export."),
    **describe_error(429, "Too many spans of this workspace wait to be scored; see Retry-After."),
}

MOST_TAG: Final = 50  # characters
TagsIn = Annotated[
    list[Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_TAG)]] | None,
    Field(max_length=20),
]

_Force = Annotated[bool, Query(description="Store it even if it does not load.")]
_Require = Annotated[bool, Query(description="Store it only if all its cases hold.")]


class NewVersionIn(EvaluatorIn):
    """Body of `PUT /v1/evaluators/{name}`: an evaluator, a description, a sampling rate."""

    model_config = example(code=EXACT_MATCH, threshold=0.5)

    description: str | None = Field(None, max_length=4000, description="Text for people. Default: unchanged.")
    sampling: float | None = Field(
        None, ge=0, le=1, description="Fraction of live traces to score. Default: unchanged, 1 for a new evaluator."
    )
    tags: TagsIn = Field(None, description="Words to find it by. Default: unchanged.")
    message: str = Field("", max_length=1000, description="Why this version is made, for people.")
    cases: CasesIn = Field(None, description="Rows with what it has to make of them. Default: unchanged.")

    def more(self) -> dict[str, Any]:
        """Return the arguments of the registry that are given."""
        given = {} if self.cases is None else {"cases": case_dicts(self.cases)}
        return {"about": NameFacts(self.description, self.sampling, self.tags), "message": self.message, **given}


class NewEvaluatorIn(NewVersionIn):
    """Body of `POST /v1/evaluators`: a name and an evaluator."""

    model_config = example(name="exact-match", code=EXACT_MATCH)

    name: str = Field(description="Letters, digits, dots, dashes and underscores, at most 63.")


class EvaluatorFactsIn(Wire):
    """Body of `PATCH /v1/evaluators/{name}`: what belongs to the name. No version is created."""

    model_config = example(tags=["regression", "tone"])

    description: str | None = Field(None, max_length=4000, description="Text for people. Default: unchanged.")
    sampling: float | None = Field(
        None, ge=0, le=1, description="Fraction of live traces to score. Default: unchanged."
    )
    tags: TagsIn = Field(None, description="Words to find it by; [] removes all. Default: unchanged.")


def evaluators_api(registry: EvaluatorRegistry, jobs: JobService, access: Access) -> APIRouter:
    """Return the routes of stored evaluators. A key sees those of its workspace."""
    router = APIRouter(prefix="/v1/evaluators", route_class=JsonRoute, tags=["evaluators"])

    @router.post("", status_code=201, response_model=EvaluatorReport, responses={**_TAKEN, **_REFUSED, **_UNAVAILABLE})
    async def create(
        body: NewEvaluatorIn, request: Request, *, force: _Force = False, require_cases: _Require = False
    ) -> Response:
        """Store an evaluator under a name, as version 1, if it loads."""
        caller, evaluator = caller_of(request.scope), body.to_model()
        with AuditedCall(access, caller, "evaluators.create", evaluator=evaluator):
            how = {"force": force, "require_cases": require_cases, "key_id": caller.key_id, **body.more()}
            report = await registry.create_evaluator(caller.workspace, body.name, evaluator, **how)
        return json_response(shown(report), 201, {"Location": f"/v1/evaluators/{report.name}"})

    @router.get("", response_model=list[EvaluatorReport])
    async def evaluators(
        request: Request,
        tag: Annotated[str | None, Query(max_length=MOST_TAG, description="Only those that have this tag.")] = None,
    ) -> Response:
        """List the newest version of each evaluator, by name, with its last job."""
        workspace = caller_of(request.scope).workspace
        found, last = await registry.list_evaluators(workspace), await jobs.last_scores(workspace)
        chosen = (one for one in found if tag is None or tag in one.tags)
        return json_response([{**shown(one), "last_job": last.get(one.name)} for one in chosen])

    @router.get("/{name}", response_model=EvaluatorReport, responses=_MISSING)
    async def newest(name: str, request: Request) -> Response:
        """Show the newest version of an evaluator."""
        return json_response(shown(await registry.get_evaluator(caller_of(request.scope).workspace, name)))

    @router.put(
        "/{name}",
        status_code=201,
        response_model=EvaluatorReport,
        responses={**_SAME, **_MISSING, **_REFUSED, **_UNAVAILABLE},
    )
    async def update(
        name: str, body: NewVersionIn, request: Request, *, force: _Force = False, require_cases: _Require = False
    ) -> Response:
        """Create the next version, if it loads. If nothing changed, no version is created."""
        caller, evaluator = caller_of(request.scope), body.to_model()
        with AuditedCall(access, caller, "evaluators.update", evaluator=evaluator):
            before = await registry.get_evaluator(caller.workspace, name)
            how = {"force": force, "require_cases": require_cases, "key_id": caller.key_id, **body.more()}
            report = await registry.update_evaluator(caller.workspace, name, evaluator, **how)
        return json_response(shown(report), 200 if report.version == before.version else 201)

    @router.patch(
        "/{name}",
        response_model=EvaluatorReport,
        responses={**_MISSING, **describe_error(422, "The request is invalid; every faulty field is named.")},
    )
    async def describe(name: str, body: EvaluatorFactsIn, request: Request) -> Response:
        """Change description, sampling rate or tags of an evaluator, without a new version."""
        about = NameFacts(body.description, body.sampling, body.tags)
        with AuditedCall(access, caller_of(request.scope), "evaluators.describe") as caller:
            report = await registry.describe_evaluator(caller.workspace, name, about)
        return json_response(shown(report))

    @router.delete("/{name}", status_code=204, responses=_MISSING)
    async def delete(name: str, request: Request) -> Response:
        """Delete an evaluator and all its versions. Jobs keep their copies."""
        with AuditedCall(access, caller_of(request.scope), "evaluators.delete") as caller:
            await registry.delete_evaluator(caller.workspace, name)
        return Response(status_code=204)

    @router.get("/{name}/versions", response_model=list[EvaluatorReport], responses=_MISSING)
    async def versions(name: str, request: Request) -> Response:
        """List all versions, newest first."""
        return json_response([shown(one) for one in await registry.versions(caller_of(request.scope).workspace, name)])

    @router.get(
        "/{name}/versions/{version}",
        response_model=EvaluatorReport,
        responses={**_MISSING, **describe_error(422, "The version is not a number.")},
    )
    async def version(name: str, version: WholeNumber, request: Request) -> Response:
        """Show one version."""
        return json_response(shown(await registry.get_evaluator(caller_of(request.scope).workspace, name, version)))

    return router


def shown(report: EvaluatorReport | JobEvaluatorReport) -> dict[str, Any]:
    """Return an evaluator version as the API shows it, with `evaluator` in the form of `POST /v1/evaluate`."""
    found = {one.name: getattr(report, one.name) for one in fields(report)}
    evaluator = {one.name: getattr(report.evaluator, one.name) for one in fields(report.evaluator)}
    del evaluator["name"], evaluator["version"]
    return {**found, "evaluator": evaluator}


def traces_api(traffic: Traffic, access: Access, *, body_bytes: int) -> APIRouter:
    """Return the routes of live traffic. A key reaches the evaluators of its workspace.

    `body_bytes` limits an export, compressed or not.
    """
    router = APIRouter(prefix="/v1/evaluators/{name}/traces", tags=["traces"])

    @router.post("", response_class=Response, responses=_TAKEN_SPANS, openapi_extra=_EXPORT)
    async def take(
        name: str,
        request: Request,
        sampling: Annotated[
            float | None, Query(ge=0, le=1, description="Fraction of traces to score. Default: the evaluator's own.")
        ] = None,
        group: Annotated[
            Literal["trace", "session"], Query(description="Score each trace, or the traces of a session together.")
        ] = "trace",
        quiet_s: Annotated[
            float, Query(ge=1, le=600, description="Seconds without a span after which a session is complete.")
        ] = SESSION_QUIET_S,
    ) -> Response:
        """Receive spans of an OpenTelemetry exporter. Each trace is scored once it is complete."""
        caller = caller_of(request.scope)
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        with AuditedCall(access, caller, "traces.take"):
            body = await request.body()
            if len(body) > body_bytes:
                raise too_large(body_bytes)
            export = Export(body, media_type, request.headers.get("content-encoding", ""))
            session_quiet_s = quiet_s if group == "session" else None
            refused = await traffic.accept_spans(
                caller.workspace, name, export, sampling=sampling, session_quiet_s=session_quiet_s
            )
        told: dict[str, Any] = {}
        if refused:
            message = f"a trace with over {TRACE_SPANS} spans or 16 MB is not scored"
            told = {"partialSuccess": {"rejectedSpans": str(refused), "errorMessage": message}}
        if media_type == PROTOBUF:
            return Response(ParseDict(told, ExportTraceServiceResponse()).SerializeToString(), media_type=PROTOBUF)
        return json_response(told)

    @router.get("", response_model=list[TraceReport], responses=_NO_EVALUATOR)
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
