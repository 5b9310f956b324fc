"""Builds the FastAPI application: routes, error handlers, and the middleware around them."""

from typing import cast

from fastapi import FastAPI

from evaluator_host import __version__
from evaluator_host.config.settings import Settings
from evaluator_host.dialects.table import all_dialects
from evaluator_host.jobs.open import StoredResources
from evaluator_host.service import Service
from evaluator_host.web.api import routes
from evaluator_host.web.auth.access import Access
from evaluator_host.web.http.error_responses import install_error_handlers
from evaluator_host.web.http.middleware import AccessMiddleware
from evaluator_host.web.workbench import Workbench, is_page

_DESCRIPTION = "Runs pasted Python, JavaScript and TypeScript evaluators in a sandbox and returns one normalised score."


class _Described:
    """Stands in for an object whose methods are never called: only the routes are described."""

    def __getattr__(self, name: str) -> None:
        return None


def create_app(
    service: Service, settings: Settings, access: Access | None = None, records: StoredResources | None = None
) -> FastAPI:
    """Return the application.

    Args:
      service: Evaluates.
      settings: The operator's settings.
      access: Decides who may call. None refuses every call: enough to describe the API.
      records: The stored evaluators, data sets, jobs and secrets. None: enough to describe the API.
    """
    app = FastAPI(
        title="Evaluator Host",
        version=__version__,
        description=_DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        docs_url=None,  # the workbench serves its own, which loads nothing from other sites
        redoc_url=None,
    )
    app.state.max_rows = settings.max_rows_per_batch
    install_error_handlers(app)
    kept = records or cast("StoredResources", _Described())
    given = cast("Access", access)
    # The routes are moved, not included: `include_router` would build every route and its schemas again.
    app.router.routes += routes.api(service, given, kept, body_bytes=settings.body_mb << 20).routes
    for dialect in all_dialects():
        if dialect.routes is not None:
            app.router.routes += dialect.routes.load()(service, kept, settings, given)
    app.router.routes += Workbench().routes()
    app.add_middleware(
        AccessMiddleware,
        access=access,
        hosts=(*settings.allowed_hosts, settings.host),
        body_bytes=settings.body_mb << 20,
        upload_bytes=settings.datasets_mb << 20,
        body_timeout_s=settings.body_timeout_s,
        open_paths=("/metrics",) if settings.open_metrics else (),
        is_page=is_page,
    )
    return app
