"""Ready-made judges: forms with a rubric, in the folder `ready_judges/`. A user only adds a model."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Response

from evaluator_host.platform.http.auth.access import WorkspaceOf
from evaluator_host.platform.http.json_routes import JsonRoute, json_response
from evaluator_host.types.stored import ReadyJudge

_FOLDER: Final = Path(__file__).parent / "ready_judges"


@cache
def ready_judges() -> tuple[ReadyJudge, ...]:
    """Return the ready-made judges, sorted by title."""
    return tuple(sorted((_read(file) for file in _FOLDER.glob("*.toml")), key=lambda one: one.title))


def _read(file: Path) -> ReadyJudge:
    given = tomllib.loads(file.read_text("utf-8"))
    return ReadyJudge(name=file.stem, **given)


def ready_judges_api() -> APIRouter:
    """Return the route that lists the ready-made judges."""
    router = APIRouter(route_class=JsonRoute, tags=["evaluators"])

    @router.get("/v1/ready-judges", response_model=list[ReadyJudge])
    async def every(_: WorkspaceOf) -> Response:
        """List ready-made judges: forms with a rubric, to which a model is added."""
        return json_response(ready_judges())

    return router
