from collections.abc import Awaitable, Callable

from fastapi import APIRouter

from evaluator_host.platform.http.auth.access import WorkspaceOf
from evaluator_host.platform.http.json_routes import JsonRoute


def acme_api(give: Callable[[str, int], None], count: Callable[[str], Awaitable[int]]) -> APIRouter:
    """Return Acme's routes."""
    router = APIRouter(prefix="/acme", route_class=JsonRoute, tags=["acme"])

    @router.get("/scale")
    async def scale() -> dict[str, int]:
        """Show how many stars you can give."""
        return {"min": 0, "max": 5}

    @router.put("/stars/{stars}", status_code=202)
    async def put(stars: int, workspace: WorkspaceOf) -> None:
        """Give Acme this many stars."""
        give(workspace, stars)

    @router.get("/stars")
    async def show(workspace: WorkspaceOf) -> dict[str, int]:
        """Show the sum of the stars."""
        return {"sum": await count(workspace)}

    return router
