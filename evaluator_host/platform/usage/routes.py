"""The route that shows the storage of a workspace."""

from fastapi import APIRouter, Response

from evaluator_host.platform.http.auth.access import WorkspaceOf
from evaluator_host.platform.http.json_routes import JsonRoute, json_response
from evaluator_host.platform.store.usage import StorageUsage
from evaluator_host.types.stored import UsageReport


def usage_api(usage: StorageUsage) -> APIRouter:
    """Return the route that shows the storage of a workspace."""
    router = APIRouter(route_class=JsonRoute, tags=["host"])

    @router.get("/v1/usage", response_model=UsageReport)
    async def show(workspace: WorkspaceOf) -> Response:
        """Show how many bytes the key's workspace stores, and how many it may store."""
        return json_response(await usage.get_usage(workspace))

    return router
