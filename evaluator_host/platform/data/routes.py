"""Routes of data files: send, list, show, delete."""

import asyncio
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from evaluator_host.engine.data_files import DataFiles
from evaluator_host.platform.http.auth.access import Access, AuditedCall, CallerOf
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute, json_response
from evaluator_host.platform.named_routes import Named, list_route, used_routes
from evaluator_host.platform.store.usage import StorageUsage
from evaluator_host.platform.users import Users
from evaluator_host.types.stored import DataFile

_MISSING: Final = describe_error(404, "The workspace has no file with this digest.")
_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
_FILE: Final[dict[str, Any]] = {"requestBody": {"required": True, "content": {"application/octet-stream": _BINARY}}}


def data_api(files: DataFiles, usage: StorageUsage, users: Users, access: Access) -> APIRouter:
    """Return the routes under `/v1/data`. A caller sees only the files of its workspace."""
    router = APIRouter(prefix="/v1/data", route_class=JsonRoute, tags=["data"])

    @router.post(
        "",
        status_code=201,
        response_model=DataFile,
        responses=describe_error(413, "The file is too large, or the workspace has too many files."),
        openapi_extra=_FILE,
    )
    async def send(request: Request, caller: CallerOf) -> Response:
        """Store a file unchanged. An evaluator's field `data` refers to it by the digest in the response."""
        with AuditedCall(access, caller, "data.send"):
            await usage.require_room(caller.workspace)
            sent = await files.receive(caller.workspace, request.stream())
        return json_response(sent, 201, {"Location": f"/v1/data/{sent.digest}"})

    async def every(workspace: str) -> list[DataFile]:
        return await asyncio.to_thread(files.list_files, workspace)

    async def get(workspace: str, digest: str) -> DataFile:
        return await asyncio.to_thread(files.get_file, workspace, digest)

    async def delete(workspace: str, digest: str) -> None:
        await asyncio.to_thread(files.delete_file, workspace, digest)

    list_route(router, DataFile, every, "List data files, the newest first.")
    things = Named(
        DataFile,
        get,
        delete,
        "data.delete",
        "Show a data file by its digest: its size, and when it was stored.",
        "Delete a data file. Jobs that still need it fail.",
    )
    used_routes(router, things, access, users, "data file", _MISSING)
    return router
