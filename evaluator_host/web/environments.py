"""The routes of package sets: have one built, look at it, watch its build, remove it."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute

from evaluator_host.environments.record import BuildEvent, BuildStatus, EnvironmentReport
from evaluator_host.protocol import encode_json
from evaluator_host.service import Service
from evaluator_host.web.problems import ProblemBody
from evaluator_host.web.wire import EnvironmentIn, pin_texts

_PROBLEM: dict[str, Any] = {"model": ProblemBody, "content": {"application/problem+json": {}}}
_MISSING: dict[int | str, dict[str, Any]] = {404: {**_PROBLEM, "description": "No such package set."}}
_REFUSED: dict[int | str, dict[str, Any]] = {
    202: {"model": EnvironmentReport, "description": "It is being built."},
    422: {**_PROBLEM, "description": "A pin is not exact."},
}


def environments_api(service: Service, route_class: type[APIRoute]) -> APIRouter:
    """Return the routes over a service's package sets."""
    router = APIRouter(prefix="/v1/environments", route_class=route_class, tags=["environments"])

    @router.post("", response_model=EnvironmentReport, responses=_REFUSED)
    async def build(body: EnvironmentIn) -> Response:
        """Install a package set, unless it is there: 200 when it is ready, 202 while it is being built."""
        report = await service.environments.request(pin_texts(body.packages, body.language), body.language)
        return _json(report, 200 if report.status is BuildStatus.READY else 202)

    @router.get("", response_model=list[EnvironmentReport])
    async def reports() -> Response:
        """List package sets: being built, installed (most recently used first), failed."""
        return _json(await service.environments.reports())

    @router.get("/{digest}", response_model=EnvironmentReport, responses=_MISSING)
    async def show(digest: str) -> Response:
        """Show a package set by its digest or its key, its lock included."""
        return _json(await service.environments.get(digest))

    @router.delete(
        "/{digest}", status_code=204, responses={**_MISSING, 409: {**_PROBLEM, "description": "It is in use."}}
    )
    async def delete(digest: str) -> Response:
        """Remove a package set and its lock; the next build resolves it anew."""
        await service.environments.delete(digest)
        return Response(status_code=204)

    @router.get(
        "/{digest}/events",
        response_class=StreamingResponse,
        responses={**_MISSING, 200: {"content": {"text/event-stream": {}}, "description": "Steps, until the last."}},
    )
    async def events(digest: str) -> Response:
        """Watch a build: one server-sent event per step, the last being `ready` or `failed`."""
        await service.environments.get(digest)
        return StreamingResponse(_lines(service.environments.events(digest)), media_type="text/event-stream")

    return router


async def _lines(events: AsyncGenerator[BuildEvent, None]) -> AsyncIterator[bytes]:
    async with aclosing(events) as steps:
        async for event in steps:
            yield b"event: " + event.step.encode() + b"\ndata: " + encode_json(event) + b"\n\n"


def _json(value: object, status: int = 200) -> Response:
    return Response(encode_json(value), status, media_type="application/json")
