"""The FastAPI application over a service, with its guard around it."""

from typing import cast

from fastapi import FastAPI

from evaluator_host import __version__
from evaluator_host.config.settings import Settings
from evaluator_host.dialects.nemo.host.routes.routes import nemo_api
from evaluator_host.dialects.nemo.host.verbs import nemo_verbs
from evaluator_host.jobs.stored_resources import StoredResources
from evaluator_host.service import Service
from evaluator_host.web.api import routes
from evaluator_host.web.auth.access import Access
from evaluator_host.web.http.error_responses import install_error_handlers
from evaluator_host.web.http.middleware import AccessMiddleware
from evaluator_host.web.workbench import Workbench, is_page

_DESCRIPTION = "Runs pasted Python, JavaScript and TypeScript evaluators in a sandbox and returns one normalised score."


class _Described:
    """Stands for what is described and never called."""

    def __getattr__(self, name: str) -> None:
        return None


def create_app(
    service: Service, settings: Settings, access: Access | None = None, records: StoredResources | None = None
) -> FastAPI:
    """Return the application.

    Args:
      service: What it serves.
      settings: Of the operator.
      access: Who may call; None admits nobody, for whoever wants the description of the API alone.
      records: What is stored; None for the description alone.
    """
    app = FastAPI(
        title="Evaluator Host",
        version=__version__,
        description=_DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        docs_url=None,  # the workbench has a page of its own, with nothing from elsewhere
        redoc_url=None,
    )
    app.state.max_rows = settings.max_rows_per_batch
    install_error_handlers(app)
    kept = records or cast("StoredResources", _Described())
    given = cast("Access", access)
    # Routers are taken apart, not included: including one makes every route in it, and its models' schemas, once more.
    app.router.routes += routes.api(service, given, kept, body_bytes=settings.body_mb << 20).routes
    app.router.routes += nemo_api(nemo_verbs(service, kept, settings), given, route_class=routes.JsonRoute)
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
