"""The routes of `/v1` and the probes: bind, convert, ask the service, convert back."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from evaluator_host.errors import InvalidRequest, Problem
from evaluator_host.model import EvaluationResult
from evaluator_host.protocol import encode_json
from evaluator_host.service import Batch, CheckReport, HostInfo, Service, summarise
from evaluator_host.web.environments import environments_api
from evaluator_host.web.guard import JsonRequest
from evaluator_host.web.problems import ProblemBody
from evaluator_host.web.wire import BatchIn, CheckIn, EvaluateIn

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemBody, "description": text, "content": {"application/problem+json": {}}}
    for status, text in (
        (403, "A foreign Origin or Host."),
        (413, "The body is too large."),
        (422, "The request cannot be taken; every fault is named."),
        (429, "Too many calls are waiting; see Retry-After."),
        (503, "No sandbox can be started, or the package index does not answer."),
    )
}


class _JsonRoute(APIRoute):
    """Reads bodies by `JsonRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(JsonRequest(request.scope, request.receive))

        return handle


def api(service: Service) -> APIRouter:
    """Return the routes over a service."""
    router = APIRouter(route_class=_JsonRoute)

    @router.post("/v1/evaluate", response_model=EvaluationResult, responses=_PROBLEMS, tags=["evaluate"])
    async def evaluate(body: EvaluateIn, request: Request) -> Response:
        """Evaluate one row. A failure of the user's code is a result too (HTTP 200, `status: failed`)."""
        return await _answer(request, service.evaluate(body.evaluator.to_model(), body.to_row()))

    @router.post("/v1/evaluate/batch", response_model=Batch, responses=_PROBLEMS, tags=["evaluate"])
    async def evaluate_batch(body: BatchIn, request: Request) -> Response:
        """Evaluate rows; results keep their order."""
        return await _answer(request, _batch(service, body))

    @router.post("/v1/check", response_model=CheckReport, responses=_PROBLEMS, tags=["evaluate"])
    async def check(body: CheckIn, request: Request) -> Response:
        """Load an evaluator in a sandbox without running a row."""
        return await _answer(request, service.check(body.evaluator.to_model()))

    @router.get("/v1/info", response_model=HostInfo, tags=["host"])
    async def info() -> Response:
        """Say what this host is and has."""
        return _json(service.info())

    @router.get("/healthz", tags=["host"])
    async def healthz() -> dict[str, str]:
        """Liveness: the process answers."""
        return {"status": "ok"}

    @router.get("/readyz", tags=["host"], responses={503: _PROBLEMS[503]})
    async def readyz() -> dict[str, str]:
        """Readiness: a sandbox starts."""
        await service.ready()
        return {"status": "ready"}

    @router.get("/metrics", tags=["host"], response_class=Response)
    async def metrics() -> Response:
        """Prometheus exposition."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    router.include_router(environments_api(service, _JsonRoute))
    return router


async def _batch(service: Service, body: BatchIn) -> Batch:
    ceiling = service.settings.max_rows_per_batch
    if len(body.rows) > ceiling:
        problem = Problem("rows", f"{len(body.rows)} rows are over this host's ceiling of {ceiling}", "send fewer")
        raise InvalidRequest("too many rows in one batch", problems=(problem,))
    loop = asyncio.get_running_loop()
    started = loop.time()
    rows = [row.to_row() for row in body.rows]
    results = await service.evaluate_batch(body.evaluator.to_model(), rows, isolation=body.isolation)
    return Batch(tuple(results), summarise(results, seconds=loop.time() - started))


async def _answer(request: Request, work: Coroutine[Any, Any, Any]) -> Response:
    """Run the work and answer with its result; stop it when the client hangs up."""
    task = asyncio.create_task(work)
    hung_up = asyncio.create_task(_hung_up(request))
    try:
        await asyncio.wait({task, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            return Response(status_code=499)  # nobody reads it
        return _json(task.result())
    finally:
        for leftover in (task, hung_up):
            leftover.cancel()
        await asyncio.wait({task, hung_up})


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _json(value: object) -> Response:
    return Response(encode_json(value), media_type="application/json")
