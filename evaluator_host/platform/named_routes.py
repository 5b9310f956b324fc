"""The routes that all named objects have: list, show, delete."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from fastapi import APIRouter, Response

from evaluator_host.platform.http.auth.access import Access, AuditedCall, CallerOf, WorkspaceOf
from evaluator_host.platform.http.deletion import USED, ForceDelete
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import json_response, large_json_response
from evaluator_host.platform.users import Users

MISSING: Final = describe_error(404, "There is no such object in the workspace.")


class Named(NamedTuple):
    """A kind of named object in a workspace. `shows` and `deletes` describe its routes in the API documentation."""

    report: Any
    get: Callable[[str, str], Awaitable[object]]
    delete: Callable[[str, str], Awaitable[None]]
    verb: str  # verb that the audit log records for a deletion: `data.delete`
    shows: str
    deletes: str


def list_route(router: APIRouter, report: Any, every: Callable[[str], Awaitable[object]], says: str) -> None:
    """Add the route that lists what `every(workspace)` returns; `says` describes the route in the API documentation."""

    @router.get("", response_model=list[report], description=says, name=str(router.tags[0]))
    async def all_(workspace: WorkspaceOf) -> Response:
        return await large_json_response(await every(workspace))


def named_routes(router: APIRouter, things: Named, access: Access, missing: Any = MISSING) -> None:
    """Add the routes that show and delete objects of a kind that no other objects use."""
    _show_route(router, things, missing)

    @router.delete("/{name}", status_code=204, response_class=Response, responses=missing, description=things.deletes)
    async def delete(name: str, caller: CallerOf, *, force: ForceDelete = False) -> None:  # noqa: ARG001 - as below
        with AuditedCall(access, caller, things.verb, name):
            await things.delete(caller.workspace, name)


def used_routes(
    router: APIRouter, things: Named, access: Access, users: Users, kind: str, missing: Any = MISSING
) -> None:
    """Add the routes that show an object, and that delete it if nothing else uses it."""
    _show_route(router, things, missing)

    @router.delete(
        "/{name}",
        status_code=204,
        response_class=Response,
        responses={**missing, **USED},
        description=things.deletes,
    )
    async def delete(name: str, caller: CallerOf, *, force: ForceDelete = False) -> None:
        with AuditedCall(access, caller, things.verb, name):
            await users.require_unused(caller.workspace, kind, name, things.get, force=force)
            await things.delete(caller.workspace, name)


def _show_route(router: APIRouter, things: Named, missing: Any) -> None:
    @router.get("/{name}", response_model=things.report, responses=missing, description=things.shows)
    async def show(name: str, workspace: WorkspaceOf) -> Response:
        return json_response(await things.get(workspace, name))
