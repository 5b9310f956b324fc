"""The routes of NeMo's evaluation jobs and their results.

They are the same under each URL prefix that a client uses.
"""

from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from evaluator_host.platform.http.auth.access import Access, AuditedCall, caller_of
from evaluator_host.platform.http.bodies import WholeNumber
from evaluator_host.platform.http.json_routes import JsonRoute, json_response, large_json_response
from evaluator_host.platform.http.middleware import memory_of
from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.platform.jobs.results.row_reader import DOWNLOAD_BYTES
from evaluator_host.types.json_values import encode_json
from evaluator_host.vendors.nemo.entities import Order
from evaluator_host.vendors.nemo.filters import Filter, fields, filtered
from evaluator_host.vendors.nemo.jobs import NemoJobs
from evaluator_host.vendors.nemo.results import NemoResults
from evaluator_host.vendors.nemo.routes import parts
from evaluator_host.vendors.nemo.spec import NemoJobIn

JOBS: Final = "/apis/evaluator/v2/workspaces/{workspace}/evaluate/jobs"
PLATFORM_JOBS: Final = "/apis/jobs/v2/workspaces/{workspace}/jobs"
_FILTER: Final = parts.filter_by(fields("description", "project", "status", "workspace"))
_VERBS: Final = (("cancel", DesiredState.CANCEL), ("pause", DesiredState.PAUSE), ("resume", DesiredState.RUN))
_DOWNLOAD: Final[dict[int | str, dict[str, Any]]] = {
    **parts.MISSING,
    200: {
        "content": {"application/json": {}, "application/jsonl": {}, "application/x-tar": {}},
        "description": "Results as JSON, rows as lines of JSON, or both in a tar file.",
    },
}


def jobs_api(jobs: NemoJobs, results: NemoResults, access: Access, *, prefix: str) -> APIRouter:
    """Return the routes that create, list, show and delete jobs under a URL prefix."""
    router = APIRouter(prefix=prefix, route_class=JsonRoute, tags=["nemo"], responses=parts.REFUSED)

    @router.post("", status_code=201, response_model=parts.Described, responses=parts.TAKEN)
    async def create_job(workspace: parts.Namespace, body: NemoJobIn, request: Request) -> Response:
        """Queue a job that scores rows with metrics.

        The job is also listed at `/v1/jobs`, and survives a restart of the host.
        """
        with AuditedCall(access, caller_of(request.scope), "nemo.jobs.create") as caller:
            return json_response(await jobs.create(caller.workspace, workspace, body), 201)

    add_reading(router, jobs, results, access)
    return router


def add_reading(router: APIRouter, jobs: NemoJobs, results: NemoResults, access: Access) -> None:
    """Add the routes that list, show and delete existing jobs."""

    @router.get("", response_model=parts.Described)
    async def all_jobs(
        workspace: parts.Namespace,
        request: Request,
        number: parts.PageNumber = 1,
        page_size: Annotated[int, Query(ge=1, le=100)] = 10,
        sort: parts.Sort = Order.CREATED_DOWN,
        keep: Filter | None = _FILTER,
    ) -> Response:
        """List jobs, without their pickled metrics."""
        fetch = partial(jobs.all, parts.workspace_of(request), workspace, order=sort)
        return await large_json_response(await filtered(fetch, keep, number=number, size=page_size))

    @router.get("/{name}", response_model=parts.Described, responses=parts.MISSING)
    async def job(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Show a job."""
        return json_response(await jobs.get(parts.workspace_of(request), workspace, name))

    @router.get("/{name}/status", response_model=parts.Described, responses=parts.MISSING)
    async def job_status(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Show the status of a job."""
        return json_response(await jobs.status(parts.workspace_of(request), workspace, name))

    @router.delete("/{name}", status_code=204, responses=parts.IN_USE)
    async def delete_job(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Delete a job that has ended, and its results."""
        with AuditedCall(access, caller_of(request.scope), "nemo.jobs.delete") as caller:
            await jobs.delete(caller.workspace, workspace, name)
        return Response(status_code=204)

    for verb, wanted in _VERBS:
        _add_verb(router, jobs, access, verb, wanted)
    _add_results(router, results)


def _add_verb(router: APIRouter, jobs: NemoJobs, access: Access, verb: str, wanted: DesiredState) -> None:
    @router.post(
        f"/{{name}}/{verb}", response_model=parts.Described, responses=parts.IN_USE, name=f"{verb}_job",
        description=f"Ask a job to {verb}.",
    )  # fmt: skip
    async def ask(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        with AuditedCall(access, caller_of(request.scope), f"nemo.jobs.{verb}") as caller:
            return json_response(await jobs.want(caller.workspace, workspace, name, wanted))


def _add_results(router: APIRouter, results: NemoResults) -> None:
    @router.get("/{name}/logs", response_model=parts.Described, responses=parts.MISSING)
    async def job_logs(
        workspace: parts.Namespace,
        name: parts.Name,
        request: Request,
        limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of rows to read.")] = 100,
        page_cursor: Annotated[str | None, Query(max_length=1000)] = None,
    ) -> Response:
        """Show the output that rows printed, and the errors of failed rows."""
        own = parts.workspace_of(request)
        return json_response(await results.logs(own, workspace, name, cursor=page_cursor, limit=limit))

    @router.get("/{name}/results", response_model=parts.Described, responses=parts.MISSING)
    async def job_results(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """List the results of a job; empty before it has completed."""
        return json_response({"data": await results.listed(parts.workspace_of(request), workspace, name)})

    @router.get("/{name}/results/{result}", response_model=parts.Described, responses=parts.MISSING)
    async def job_result(
        workspace: parts.Namespace, name: parts.Name, result: parts.Name, request: Request
    ) -> Response:
        """Describe one result of a job: aggregate-scores, row-scores or artifacts."""
        return json_response(await results.described(parts.workspace_of(request), workspace, name, result))

    @router.get("/{name}/results/{result}/download", response_class=Response, responses=_DOWNLOAD)
    async def download_result(
        workspace: parts.Namespace,
        name: parts.Name,
        result: parts.Name,
        request: Request,
        limit: Annotated[WholeNumber | None, Query(ge=0, description="Rows to send.")] = None,
    ) -> Response:
        """Download a result: statistics (JSON), rows (lines of JSON), or both in a tar file."""
        own = parts.workspace_of(request)
        if result in ("row-scores", "artifacts"):
            memory_of(request.scope).reserve(DOWNLOAD_BYTES)
        if result == "row-scores":
            rows = await results.rows(own, workspace, name, limit=limit)
            return StreamingResponse(_lines(rows), media_type="application/jsonl")
        if result == "artifacts":
            pieces = results.archive(own, workspace, name)
            # computed before the response starts, so that a failure becomes an error response, not a truncated file
            first = await anext(pieces)
            return StreamingResponse(_whole(first, pieces), media_type="application/x-tar")
        await results.described(own, workspace, name, result)
        return json_response(await results.aggregates(own, workspace, name))


async def _lines(rows: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    async for row in rows:
        yield encode_json(row) + b"\n"


async def _whole(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in others:
        yield piece
