"""The routes of NeMo's filesets and of the files in them."""

from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import ConfigDict, Field

from evaluator_host.platform.http.auth.access import Access, AuditedCall, caller_of
from evaluator_host.platform.http.bodies import Body, SmallBody
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute, LateRoute, json_response, large_json_response
from evaluator_host.vendors.nemo.entities import Order
from evaluator_host.vendors.nemo.filesets import Filesets
from evaluator_host.vendors.nemo.filters import Filter, fields, filtered
from evaluator_host.vendors.nemo.routes import parts

_PREFIX: Final = "/apis/files/v2/workspaces/{workspace}/filesets"
_FILTER: Final = parts.filter_by(fields("description", "project", "purpose", storage_type="storage.type"))
_FILE: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_BYTES: Final[dict[int | str, dict[str, Any]]] = {
    **parts.MISSING,
    200: {"content": {"application/octet-stream": {}}, "description": "The file as it was sent."},
}


class FilesetIn(SmallBody):
    """Body of a request to create a fileset."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"name": "qa", "purpose": "dataset"}]})

    name: str = Field(min_length=1, max_length=255)
    description: str | None = None
    project: str | None = None
    purpose: str = "generic"
    metadata: dict[str, Any] = Field(default_factory=dict)
    custom_fields: dict[str, Any] = Field(default_factory=dict)


class FilesetChangesIn(SmallBody, Body):
    """Body of a request to change a fileset's description."""

    model_config = ConfigDict(extra="forbid")

    description: str | None = None
    project: str | None = None
    purpose: str | None = None
    metadata: dict[str, Any] | None = None
    custom_fields: dict[str, Any] | None = None


def filesets_api(filesets: Filesets, access: Access) -> APIRouter:
    """Return the routes for filesets, and the route that lists the files in a fileset."""
    router = APIRouter(prefix=_PREFIX, route_class=JsonRoute, tags=["nemo"], responses=parts.REFUSED)

    @router.post("", status_code=201, response_model=parts.Described, responses=parts.TAKEN)
    async def create_fileset(workspace: parts.Namespace, body: FilesetIn, request: Request) -> Response:
        """Create a fileset."""
        caller = caller_of(request.scope)
        content = body.model_dump(mode="json", include=set(FilesetIn.model_fields))
        with AuditedCall(access, caller, "nemo.filesets.create"):
            return json_response(await filesets.create(caller.workspace, workspace, body.name, content), 201)

    @router.get("", response_model=parts.Described)
    async def all_filesets(
        workspace: parts.Namespace,
        request: Request,
        number: parts.PageNumber = 1,
        page_size: parts.PageSize = 100,
        sort: parts.Sort = Order.CREATED_DOWN,
        keep: Filter | None = _FILTER,
    ) -> Response:
        """List filesets."""
        fetch = partial(filesets.all, parts.workspace_of(request), workspace, order=sort)
        return await large_json_response(await filtered(fetch, keep, number=number, size=page_size))

    @router.get("/{name}", response_model=parts.Described, responses=parts.MISSING)
    async def fileset(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Show a fileset."""
        return json_response(await filesets.get(parts.workspace_of(request), workspace, name))

    @router.patch("/{name}", response_model=parts.Described, responses=parts.MISSING)
    async def change_fileset(
        workspace: parts.Namespace, name: parts.Name, body: FilesetChangesIn, request: Request
    ) -> Response:
        """Change the description of a fileset."""
        with AuditedCall(access, caller_of(request.scope), "nemo.filesets.change") as caller:
            changes = body.model_dump(mode="json", exclude_unset=True)
            return json_response(await filesets.change(caller.workspace, workspace, name, changes))

    @router.delete("/{name}", response_model=parts.Described, responses=parts.MISSING)
    async def delete_fileset(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Delete a fileset with its files. Jobs keep the rows that they copied."""
        with AuditedCall(access, caller_of(request.scope), "nemo.filesets.delete") as caller:
            return json_response(await filesets.delete(caller.workspace, workspace, name))

    @router.get("/{name}/files", response_model=parts.Described, responses=parts.MISSING)
    async def files(
        workspace: parts.Namespace,
        name: parts.Name,
        request: Request,
        path: Annotated[str, Query(description="Folder whose files to list.")] = "",
    ) -> Response:
        """List the files of a fileset."""
        own = parts.workspace_of(request)
        return await large_json_response({"data": await filesets.files(own, workspace, name, below=path)})

    return router


def files_api(filesets: Filesets, access: Access) -> APIRouter:
    """Return the routes that upload, download and delete one file; its content is not JSON."""
    router = APIRouter(prefix=_PREFIX, tags=["nemo"], responses=parts.REFUSED, route_class=LateRoute)
    refused = {**parts.MISSING, **describe_error(413, "The file is too large.")}

    @router.put("/{name}/-/{path:path}", response_model=parts.Described, responses=refused, openapi_extra=_FILE)
    async def upload(workspace: parts.Namespace, name: parts.Name, path: str, request: Request) -> Response:
        """Store a file; an existing file with that path is replaced."""
        with AuditedCall(access, caller_of(request.scope), "nemo.files.upload") as caller:
            kept = await filesets.upload(caller.workspace, workspace, name, path, chunks=request.stream())
        return json_response(kept)

    @router.get("/{name}/-/{path:path}", response_class=FileResponse, responses=_BYTES)
    async def download(workspace: parts.Namespace, name: parts.Name, path: str, request: Request) -> Response:
        """Download a file unchanged."""
        file = await filesets.file(parts.workspace_of(request), workspace, name, path)
        return FileResponse(file, media_type="application/octet-stream")

    @router.delete("/{name}/-/{path:path}", response_model=parts.Described, responses=parts.MISSING)
    async def delete_file(workspace: parts.Namespace, name: parts.Name, path: str, request: Request) -> Response:
        """Delete a file of a fileset."""
        with AuditedCall(access, caller_of(request.scope), "nemo.files.delete") as caller:
            return json_response(await filesets.delete_file(caller.workspace, workspace, name, path))

    return router
