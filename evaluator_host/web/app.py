"""The FastAPI application over a service."""

from typing import Any

from fastapi import FastAPI

from evaluator_host import __version__
from evaluator_host.config import Settings
from evaluator_host.service import Service
from evaluator_host.web import problems, routes
from evaluator_host.web.guard import Guard

_DESCRIPTION = "Runs pasted Python, JavaScript and TypeScript evaluators in a sandbox and returns one normalised score."


def create_app(service: Service, settings: Settings, *, lifespan: Any = None) -> FastAPI:
    """Return the application. `lifespan` is what `wiring` opens and closes with it."""
    app = FastAPI(
        title="Evaluator Host",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    problems.install(app)
    app.include_router(routes.api(service))
    app.add_middleware(Guard, hosts=(*settings.allowed_hosts, settings.host), body_bytes=settings.body_mb << 20)
    return app
