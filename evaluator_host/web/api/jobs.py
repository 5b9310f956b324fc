"""Routes of jobs: create, list, show, watch, pause, resume, cancel, delete."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute

from evaluator_host.jobs.service import JobService
from evaluator_host.schemas.jobs import JobReport, JobStatus
from evaluator_host.store.jobs import DesiredState
from evaluator_host.web.api.job_bodies import JobIn
from evaluator_host.web.auth.access import Access, caller_of
from evaluator_host.web.auth.audit import AuditedCall
from evaluator_host.web.http.error_responses import describe_error
from evaluator_host.web.http.responses import event_response, json_response

_MISSING = describe_error(404, "No such job.")
_ENDED = {**_MISSING, **describe_error(409, "Not possible in the state that the job is in.")}
_REFUSED = {
    **describe_error(404, "No such evaluator or data set."),
    **describe_error(422, "The job is invalid; every faulty field is named."),
}
_EVENTS: dict[int | str, dict[str, Any]] = {
    **_MISSING,
    200: {"content": {"text/event-stream": {}}, "description": "The job after each change, until it ends."},
}


def jobs_api(service: JobService, access: Access, *, route_class: type[APIRoute]) -> APIRouter:
    """Return the routes of jobs. A key sees those of its workspace."""
    router = APIRouter(prefix="/v1/jobs", route_class=route_class, tags=["jobs"])

    @router.post("", status_code=202, response_model=JobReport, responses=_REFUSED)
    async def create(
        body: JobIn,
        request: Request,
        idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
    ) -> Response:
        """Queue a job. A request with the same Idempotency-Key returns the first job instead of a new one."""
        caller = caller_of(request.scope)
        with AuditedCall(access, caller, "jobs.create"):
            report = await service.create_job(body.to_spec(), caller.workspace, idempotency_key=idempotency_key)
        return json_response(report, 202, {"Location": f"/v1/jobs/{report.id}"})

    @router.get("", response_model=list[JobReport])
    async def jobs(
        request: Request,
        status: JobStatus | None = None,
        before: Annotated[
            datetime | None, Query(description="`created_at` of the last job on the previous page.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """List jobs, newest first."""
        workspace = caller_of(request.scope).workspace
        return json_response(await service.list_jobs(workspace, limit=limit, before=before, status=status))

    @router.get("/{job_id}", response_model=JobReport, responses=_MISSING)
    async def show(job_id: str, request: Request) -> Response:
        """Show a job and its progress."""
        return json_response(await service.get_job(caller_of(request.scope).workspace, job_id))

    @router.get("/{job_id}/events", response_class=StreamingResponse, responses=_EVENTS)
    async def events(job_id: str, request: Request) -> Response:
        """Watch a job: an event `progress` after each change, and one named after its status when it ends."""
        workspace = caller_of(request.scope).workspace
        await service.get_job(workspace, job_id)
        return event_response(_events(service, workspace, job_id))

    for verb, desired, text in (
        ("pause", DesiredState.PAUSE, "Pause a job. Its results so far are kept."),
        ("resume", DesiredState.RUN, "Continue a paused job."),
        ("cancel", DesiredState.CANCEL, "Cancel a job. Its results so far are kept."),
    ):
        _add_verb(router, service, access, verb, desired, text)

    @router.delete("/{job_id}", status_code=204, responses=_ENDED)
    async def delete(job_id: str, request: Request) -> Response:
        """Delete a job that has ended, and its results."""
        caller = caller_of(request.scope)
        with AuditedCall(access, caller, "jobs.delete"):
            await service.delete_job(caller.workspace, job_id)
        return Response(status_code=204)

    return router


def _add_verb(
    router: APIRouter, service: JobService, access: Access, verb: str, desired: DesiredState, text: str
) -> None:
    async def ask(job_id: str, request: Request) -> Response:
        caller = caller_of(request.scope)
        with AuditedCall(access, caller, f"jobs.{verb}"):
            report = await service.set_desired_state(caller.workspace, job_id, desired)
        return json_response(report, 200 if report.status is not JobStatus.RUNNING else 202)

    accepted: dict[int | str, dict[str, Any]] = {
        202: {"model": JobReport, "description": "Accepted; takes effect within a second."}
    }
    router.add_api_route(
        f"/{{job_id}}/{verb}",
        ask,
        methods=["POST"],
        name=verb,
        description=text,
        response_model=JobReport,
        responses={**_ENDED, **accepted},
    )


async def _events(service: JobService, workspace: str, job_id: str) -> AsyncGenerator[tuple[str, object], None]:
    async with aclosing(service.watch_job(workspace, job_id)) as reports:
        async for report in reports:
            yield (report.status if report.status.final else "progress"), report
