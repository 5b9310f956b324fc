"""The older routes that NeMo Evaluator's documentation still names, under each of their URL prefixes."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError
from starlette.routing import BaseRoute

from evaluator_host.platform.http.auth.access import Access, AuditedCall, caller_of
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute, json_response
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.vendors.nemo.jobs import NemoJobs
from evaluator_host.vendors.nemo.names import stamp
from evaluator_host.vendors.nemo.older import OlderVerbs, RowFailed, aggregate_fields
from evaluator_host.vendors.nemo.routes import parts
from evaluator_host.vendors.nemo.routes.jobs import add_reading
from evaluator_host.vendors.nemo.routes.metrics import eval_results_api
from evaluator_host.vendors.nemo.spec import NemoEvaluateIn, OlderJobIn
from evaluator_host.vendors.nemo.verbs import Nemo

OLDER: Final = (
    "/apis/evaluation/v2/workspaces/{workspace}",  # the only prefix that the OpenAPI document shows
    "/v2/workspaces/{workspace}/evaluation",
    "/v2/workspaces/{workspace}",
)
_FAILED: Final[dict[int | str, dict[str, Any]]] = {
    **parts.MISSING,
    **describe_error(503, "No sandbox can be started, or the package index or the database does not answer."),
    500: {"content": {"application/json": {}}, "description": "A row cannot be scored; `detail` says which and why."},
}


def older_api(nemo: Nemo, access: Access, *, prefix: str) -> list[BaseRoute]:
    """Return the older routes under one of their URL prefixes."""
    router = APIRouter(prefix=prefix, route_class=JsonRoute, tags=["nemo"], responses=parts.REFUSED)
    _add_evaluate(router, nemo.older, access)
    _add_metrics(router, nemo, access)
    jobs = APIRouter(prefix=f"{prefix}/metric-jobs", route_class=JsonRoute, tags=["nemo"], responses=parts.REFUSED)
    _add_create(jobs, nemo.older, nemo.jobs, access)
    add_reading(jobs, nemo.jobs, nemo.results, access)
    where = f"{prefix}/metric-job-results"
    results = eval_results_api(nemo.jobs, nemo.results, access, prefix=where)
    return [*router.routes, *jobs.routes, *results.routes]


def _add_evaluate(router: APIRouter, older: OlderVerbs, access: Access) -> None:
    @router.post("/metric-evaluate", response_model=parts.Described, responses=_FAILED)
    async def metric_evaluate(
        workspace: parts.Namespace,
        body: NemoEvaluateIn,
        request: Request,
        aggregate_fields_: Annotated[list[str] | None, Query(alias="aggregate_fields", max_length=20)] = None,
    ) -> Response:
        """Score one to ten rows at once with a built-in or a stored metric."""
        caller = caller_of(request.scope)
        rows = body.dataset.rows
        with AuditedCall(access, caller, "nemo.evaluate", rows=len(rows)):
            fields = aggregate_fields(aggregate_fields_ or ())
            try:
                found = await older.evaluate(caller.workspace, workspace, body.metric, rows, fields=fields)
            except RowFailed as failed:
                return json_response({"detail": failed.detail}, 500)
        return json_response(found)


def _add_create(router: APIRouter, older: OlderVerbs, jobs: NemoJobs, access: Access) -> None:
    @router.post("", status_code=201, response_model=parts.Described, responses=parts.TAKEN)
    async def create_metric_job(workspace: parts.Namespace, body: OlderJobIn, request: Request) -> Response:
        """Queue a job with one metric; the current job routes show it in their own format."""
        with AuditedCall(access, caller_of(request.scope), "nemo.jobs.create") as caller:
            try:
                order = await older.job(caller.workspace, workspace, body)
            except ValidationError as error:
                raise _invalid(error) from error
            return json_response(await jobs.create(caller.workspace, workspace, order), 201)


def _add_metrics(router: APIRouter, nemo: Nemo, access: Access) -> None:
    @router.post("/metrics/{name}", status_code=201, response_model=parts.Described, responses=parts.TAKEN)
    async def create_built_in(
        workspace: parts.Namespace, name: parts.Name, body: parts.BuiltIn, request: Request
    ) -> Response:
        """Store a built-in metric under a name."""
        caller = caller_of(request.scope)
        metric = body.model_dump(mode="json", exclude_unset=True)
        with AuditedCall(access, caller, "nemo.metrics.create"):
            return json_response(await nemo.older.keep(caller.workspace, workspace, name, metric), 201)

    @router.get("/metrics/{name}", response_model=parts.Described, responses=parts.MISSING)
    async def built_in(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Show a metric."""
        return json_response(await nemo.older.get(parts.workspace_of(request), workspace, name))

    @router.delete("/metrics/{name}", response_model=parts.Described, responses=parts.MISSING)
    async def delete_built_in(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Delete a metric; jobs keep their own copy."""
        with AuditedCall(access, caller_of(request.scope), "nemo.metrics.delete") as caller:
            gone = await nemo.metrics.delete(caller.workspace, workspace, name)
        return json_response(
            {"message": "Resource deleted successfully.", "id": gone.id, "deleted_at": stamp(gone.updated_at)}
        )


def _invalid(error: ValidationError) -> InvalidRequest:
    faults = error.errors(include_url=False, include_input=False)
    problems = tuple(
        Problem(".".join(["spec", *(str(part) for part in fault["loc"])]), str(fault["msg"])) for fault in faults[:50]
    )
    return InvalidRequest(f"the request is not valid: {problems[0].field}", problems=problems)
