"""Routes of data sets: upload, list, read, delete. An upload goes to disk while it arrives."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse

from evaluator_host.datasets.format import Format
from evaluator_host.datasets.service import DatasetService
from evaluator_host.schemas.stored import DatasetReport
from evaluator_host.web.api.bodies import WholeNumber
from evaluator_host.web.auth.access import Access, AuditedCall, caller_of
from evaluator_host.web.http.error_responses import describe_error
from evaluator_host.web.http.json_routes import json_response

_MISSING = describe_error(404, "No such data set.")
_REFUSED = {
    **describe_error(409, "There is already a data set of that name."),
    **describe_error(413, "The file is too large."),
    **describe_error(422, "The file does not match its format, or has no rows."),
}
_FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            media_type: {"schema": {"type": "string", "format": "binary"}}
            for media_type in ("application/x-ndjson", "text/csv", "application/json", "application/vnd.apache.parquet")
        },
    }
}


def datasets_api(shelf: DatasetService, access: Access) -> APIRouter:
    """Return the routes of data sets. A key sees those of its workspace."""
    router = APIRouter(prefix="/v1/datasets", tags=["datasets"])

    @router.post("", status_code=201, response_model=DatasetReport, responses=_REFUSED, openapi_extra=_FILE)
    async def upload(
        request: Request,
        name: Annotated[str, Query(description="Letters, digits, dots, dashes and underscores, at most 63.")],
        *,
        replace: Annotated[bool, Query(description="Replace the data set that has this name.")] = False,
    ) -> Response:
        """Store the rows of a file: JSONL, CSV, TSV, JSON (an array, or an eval set) or Parquet, by its type.

        Lines that are not rows are left out, and reported by number.
        """
        with AuditedCall(access, caller_of(request.scope), "datasets.upload") as caller:
            format_ = Format.of_media_type(request.headers.get("content-type", ""))
            report = await shelf.add_dataset(caller.workspace, name, request.stream(), format_, replace=replace)
        return json_response(report, 201, {"Location": f"/v1/datasets/{report.name}"})

    @router.get("", response_model=list[DatasetReport])
    async def datasets(request: Request) -> Response:
        """List data sets, newest first."""
        return json_response(await shelf.list_datasets(caller_of(request.scope).workspace))

    @router.get("/{name}", response_model=DatasetReport, responses=_MISSING)
    async def show(name: str, request: Request) -> Response:
        """Show a data set: its columns, its size, its bad lines."""
        return json_response(await shelf.get_dataset(caller_of(request.scope).workspace, name))

    @router.get("/{name}/rows", response_model=list[dict[str, Any]], responses=_MISSING)
    async def rows(
        name: str,
        request: Request,
        first: Annotated[WholeNumber, Query(ge=0, description="Number of the first row, starting at 0.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """List rows of a data set."""
        parts = await shelf.rows_json(caller_of(request.scope).workspace, name, first, limit=limit)
        return StreamingResponse(parts, media_type="application/json")

    @router.get(
        "/{name}/file",
        response_class=FileResponse,
        responses={**_MISSING, 200: {"content": {"application/x-ndjson": {}}, "description": "One row per line."}},
    )
    async def download(name: str, request: Request) -> Response:
        """Download all rows as JSONL."""
        path = await shelf.path(caller_of(request.scope).workspace, name)
        return FileResponse(path, media_type="application/x-ndjson", filename=f"{name}.jsonl")

    @router.delete("/{name}", status_code=204, responses=_MISSING)
    async def delete(name: str, request: Request) -> Response:
        """Delete a data set. Jobs that use its rows keep them."""
        with AuditedCall(access, caller_of(request.scope), "datasets.delete") as caller:
            await shelf.delete_dataset(caller.workspace, name)
        return Response(status_code=204)

    return router
