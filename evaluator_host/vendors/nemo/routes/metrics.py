"""The routes of stored metrics, and of the results of completed jobs."""

from functools import partial
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response

from evaluator_host.platform.http.auth.access import Access, AuditedCall, caller_of
from evaluator_host.platform.http.json_routes import JsonRoute, json_response, large_json_response
from evaluator_host.vendors.nemo.entities import Order
from evaluator_host.vendors.nemo.filters import Filter, fields, filtered
from evaluator_host.vendors.nemo.jobs import NemoJobs
from evaluator_host.vendors.nemo.metrics import NemoMetrics
from evaluator_host.vendors.nemo.results import NemoResults
from evaluator_host.vendors.nemo.routes import parts
from evaluator_host.vendors.nemo.spec import BundleIn

_EVALUATOR: Final = "/apis/evaluator"
_PREFIX: Final = f"{_EVALUATOR}/v2/workspaces/{{workspace}}"
_FILTER: Final = parts.filter_by(fields("metric_type", "description", "project"))
_RESULT_FILTER: Final = parts.filter_by(
    fields("job_id", "target_kind", "target_name", "target_url", "dataset_ref", "project")
)


def metrics_api(metrics: NemoMetrics, access: Access) -> APIRouter:
    """Return the routes for stored metrics, and the health check of NeMo's client."""
    router = APIRouter(route_class=JsonRoute, tags=["nemo"], responses=parts.REFUSED)

    @router.get(f"{_EVALUATOR}/v1/healthz", response_model=dict[str, str])
    async def healthz() -> Response:
        """Liveness: the evaluator service responds."""
        return json_response({"status": "ok"})

    @router.post(f"{_PREFIX}/metrics/{{name}}", status_code=201, response_model=parts.Described, responses=parts.TAKEN)
    async def create_metric(
        workspace: parts.Namespace,
        name: parts.Name,
        body: BundleIn,
        request: Request,
        project: Annotated[str | None, Query(max_length=255)] = None,
    ) -> Response:
        """Store a metric under a name; a stored metric cannot be changed."""
        with AuditedCall(access, caller_of(request.scope), "nemo.metrics.create") as caller:
            bundle = body.model_dump(mode="json")
            return json_response(await metrics.create(caller.workspace, workspace, name, bundle, project), 201)

    @router.get(f"{_PREFIX}/metrics", response_model=parts.Described)
    async def all_metrics(
        workspace: parts.Namespace,
        request: Request,
        number: parts.PageNumber = 1,
        page_size: parts.PageSize = 100,
        sort: parts.Sort = Order.CREATED,
        keep: Filter | None = _FILTER,
    ) -> Response:
        """List metrics."""
        fetch = partial(metrics.all, parts.workspace_of(request), workspace, order=sort)
        return await large_json_response(await filtered(fetch, keep, number=number, size=page_size))

    @router.get(f"{_PREFIX}/metrics/{{name}}", response_model=parts.Described, responses=parts.MISSING)
    async def metric(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Show a metric, without its content."""
        return json_response(await metrics.get(parts.workspace_of(request), workspace, name))

    @router.delete(f"{_PREFIX}/metrics/{{name}}", status_code=204, responses=parts.MISSING)
    async def delete_metric(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Delete a metric; jobs keep their own copy."""
        with AuditedCall(access, caller_of(request.scope), "nemo.metrics.delete") as caller:
            await metrics.delete(caller.workspace, workspace, name)
        return Response(status_code=204)

    return router


def eval_results_api(jobs: NemoJobs, results: NemoResults, access: Access, *, prefix: str) -> APIRouter:
    """Return the routes that list, show and delete the results of completed jobs, each under its job's name."""
    router = APIRouter(prefix=prefix, route_class=JsonRoute, tags=["nemo"], responses=parts.REFUSED)

    @router.get("", response_model=parts.Described)
    async def eval_results(
        workspace: parts.Namespace,
        request: Request,
        number: parts.PageNumber = 1,
        page_size: Annotated[int, Query(ge=1, le=100)] = 100,
        sort: parts.Sort = Order.CREATED_DOWN,
        keep: Filter | None = _RESULT_FILTER,
    ) -> Response:
        """List the results of completed jobs."""
        own = parts.workspace_of(request)
        return await large_json_response(
            await results.records(own, workspace, keep, number=number, size=page_size, order=sort)
        )

    @router.get("/{name}", response_model=parts.Described, responses=parts.MISSING)
    async def eval_result(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Show the result of a job."""
        return json_response(await results.record(parts.workspace_of(request), workspace, name))

    @router.delete("/{name}", status_code=204, responses=parts.IN_USE)
    async def delete_eval_result(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Delete a result and its job."""
        with AuditedCall(access, caller_of(request.scope), "nemo.results.delete") as caller:
            await jobs.delete(caller.workspace, workspace, name)
        return Response(status_code=204)

    return router


EVAL_RESULTS: Final = f"{_PREFIX}/eval-results"
