"""Builds the FastAPI application: the routes of `/v1`, the probes, the error handlers and the middleware."""

from dataclasses import replace
from typing import Any, Final, Self

from fastapi import APIRouter, FastAPI, Response

from evaluator_host import __version__
from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.service import Service
from evaluator_host.engine.system.turns import Turns
from evaluator_host.platform.evaluators.registry import EvaluatorRegistry
from evaluator_host.platform.evaluators.resource import EvaluatorResource
from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access, WorkspaceOf
from evaluator_host.platform.http.error_responses import install_error_handlers
from evaluator_host.platform.http.json_routes import json_response
from evaluator_host.platform.http.middleware import AccessMiddleware
from evaluator_host.platform.http.openapi import DescribedApi
from evaluator_host.platform.http.replies import ERRORS
from evaluator_host.platform.wires.table import wires
from evaluator_host.server.calls_api import calls_api
from evaluator_host.types.entry_point import EntryPoint
from evaluator_host.types.errors import Busy, RateLimited
from evaluator_host.types.evaluation import HostInfo
from evaluator_host.web.workbench import Workbench, shows_page

_READ_AT_ONCE: Final = 2  # number of large bodies that are read at once, in threads
_DESCRIPTION = "Runs pasted Python, JavaScript and TypeScript evaluators in a sandbox and returns one normalised score."
_MIGRATION: Final[EntryPoint[Any]] = EntryPoint("evaluator_host.migrate.host.routes:migration_routes")


class _Nothing:
    """A placeholder for the services of a host. Every attribute and every call returns this object itself."""

    def __getattr__(self, name: str) -> Self:
        return self

    def __call__(self, *_: object, **__: object) -> Self:
        return self


def create_app(host: Host, access: Access) -> FastAPI:
    """Return the FastAPI application of a host."""
    app = _app_with_routes(host, access)
    _guard(app, host.service, host.settings, access)
    return app


def describe_app(settings: Settings) -> FastAPI:
    """Return an application without a host, which only makes the OpenAPI document, and refuses every call."""
    host, access = described_host(settings)
    app = _app_with_routes(host, access)
    _guard(app, host.service, settings, None)
    return app


def described_host(settings: Settings) -> tuple[Host, Access]:
    """Return a host and an access object without services, only to list and describe routes."""
    nothing: Any = _Nothing()
    nothing.settings = settings
    host = Host(nothing, nothing)
    host.open_resources()
    return host, nothing


def create_calls_app(service: Service, settings: Settings, access: Access, evaluators: EvaluatorRegistry) -> FastAPI:
    """Return the application of a process that answers only calls (evaluations and checks).

    Of all stored resources, it can use only evaluators.
    """
    app = _new_app(service, settings)
    app.router.routes += calls_api(service, access, evaluators).routes
    app.get("/healthz")(healthz)
    _guard(app, service, settings, access)
    return app


def _app_with_routes(host: Host, access: Access) -> FastAPI:
    app = _new_app(host.service, host.settings)
    # The routes are moved here, because `include_router` would build every route and its schemas again.
    app.router.routes += api(host, access).routes
    for name, resource in host.resources.items():
        app.add_resource(name, resource.routes(access))
    app.router.routes += _MIGRATION.load()(host, access)
    pages = Workbench()
    app.router.routes += pages.routes()
    app.router.default = pages.not_found(app.router.default)
    return app


def _new_app(service: Service, settings: Settings) -> DescribedApi:
    app = DescribedApi(
        title="Evaluator Host",
        version=__version__,
        description=_DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        docs_url=None,  # the workbench serves its own /docs page, which loads nothing from other sites
        redoc_url=None,
    )
    app.state.max_rows = settings.max_rows_per_batch
    app.state.service = service
    app.state.reading = Turns(_READ_AT_ONCE)
    install_error_handlers(app)
    return app


def _guard(app: FastAPI, service: Service, settings: Settings, access: Access | None) -> None:
    """Wrap an application in middleware that checks keys, host names and sizes."""
    codes = (Busy.code, RateLimited.code)
    refused = service.metrics.counter("refused", "Requests refused with 429, by code.", "code", values=codes)
    app.add_middleware(
        AccessMiddleware,
        access=access,
        hosts=(*settings.allowed_hosts, settings.host),
        body_bytes=settings.body_mb << 20,
        upload_bytes=settings.datasets_mb << 20,
        body_timeout_s=settings.body_timeout_s,
        memory_bytes=settings.memory_mb << 20,
        open_paths=("/metrics",) if settings.open_metrics else (),
        is_page=lambda scope: shows_page(scope, app.router.routes),
        calls=None if access is None else service.calls.call,
        count_refused=lambda code: refused.labels(code).inc(),
    )


async def healthz() -> dict[str, str]:
    """Liveness: the process responds."""
    return {"status": "ok"}


def api(host: Host, access: Access) -> APIRouter:
    """Return the routes that belong to no resource: calls, and the state of the host."""
    service = host.service
    router = calls_api(service, access, host.resource(EvaluatorResource).registry)

    @router.get("/v1/info", response_model=HostInfo, tags=["host"])
    async def info(workspace: WorkspaceOf) -> Response:
        """Show the version, backend, languages and limits of this host."""
        told = replace(await service.full_info(), resources=tuple(host.resources), wires=tuple(wires()))
        own = await host.store.limits.of(workspace)
        return json_response(told if own.model_day is None else replace(told, model_day=own.model_day))

    router.get("/healthz", tags=["host"])(healthz)

    @router.get("/readyz", tags=["host"], responses={503: ERRORS[503]})
    async def readyz() -> dict[str, str]:
        """Readiness: a sandbox can start, the database works, and every task of the host runs."""
        await service.ready()
        return {"status": "ready"}

    @router.get("/metrics", tags=["host"], response_class=Response)
    async def metrics() -> Response:
        """Metrics in the Prometheus format."""
        return Response(await service.metrics.text_of_host(), media_type="text/plain; version=0.0.4")

    return router
