"""Routes of data sets: upload, list, read, delete. An upload goes to disk while it arrives."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Protocol, TypeAlias, runtime_checkable

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from pydantic import FailFast, Field

from evaluator_host.engine.system.memory import Reservation
from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.platform.http.auth.access import Access, AuditedCall, CallerOf, WorkspaceOf
from evaluator_host.platform.http.bodies import Body, Few, WholeNumber, example
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute, json_list, json_response, large_json_response
from evaluator_host.platform.http.middleware import memory_of
from evaluator_host.platform.named_routes import Named, used_routes
from evaluator_host.platform.users import Users
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.formats import Format
from evaluator_host.types.stored import ColumnFacts, DatasetReport, FoundRows, RowChanges

_MISSING = describe_error(404, "There is no such data set.")
_QUERIED = {**_MISSING, **describe_error(422, "A condition is invalid, or the data set is too large to be searched.")}
_REFUSED = {
    **describe_error(409, "There is already a data set with that name."),
    **describe_error(413, "The file is too large."),
    **describe_error(422, "The file does not match its format, or has no rows."),
}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": _BINARY,
            "text/csv": _BINARY,
            "application/vnd.apache.parquet": _BINARY,
            Format.XLSX.media_type: _BINARY,
            # this type must be last, because generated clients send files with the last type in this list
            "application/x-ndjson": _BINARY,
        },
    }
}


_Numbers: TypeAlias = Annotated[list[Annotated[int, Field(ge=0, le=1 << 53)]], FailFast()]


class JobRowsIn(Body):
    """Rows of a job's data set, to add to another data set."""

    job: str = Field(min_length=1, max_length=100, description="Id of the job.")
    rows: _Numbers = Field(min_length=1, max_length=1000, description="Numbers of the rows to add, from 0.")


class TraceRowsIn(Body):
    """Scored live traces, to add to a data set as rows."""

    evaluator: str = Field(min_length=1, max_length=100, description="Name of the evaluator that scored the traces.")
    traces: _Numbers = Field(min_length=1, max_length=100, description="The `number` of each trace to add.")


class EditIn(Body):
    """Body of `PATCH /v1/datasets/{name}`: what to change; the result is the next version."""

    model_config = example(set={"7": {"question": "Capital of Peru?", "gold": "Lima"}}, remove=[3])

    set: Annotated[dict[Annotated[int, Field(ge=0)], dict[str, Any]], Few] = Field(
        default_factory=dict,
        max_length=1000,
        description="New rows, keyed by the number (from 0) of the row to replace.",
    )
    remove: _Numbers = Field(default_factory=list, max_length=100_000, description="Numbers of rows to remove.")
    add: Annotated[list[dict[str, Any]], FailFast()] = Field(
        default_factory=list, max_length=10_000, description="Rows to append."
    )
    add_from: JobRowsIn | TraceRowsIn | None = Field(None, description="Rows of a job, or live traces, to append.")
    create: bool = Field(False, description="Create the data set if it does not exist.")  # noqa: FBT003
    version: WholeNumber | None = Field(
        None, ge=1, description="Edit only if this is the newest version; otherwise the error is 409 `in_use`."
    )


@runtime_checkable
class TraceRows(Protocol):
    """Interface through which data sets read live traces as rows."""

    async def rows_of_traces(
        self, workspace_id: str, name: str, numbers: Sequence[int], *, memory: Reservation
    ) -> list[dict[str, Any]]:
        """Convert an evaluator's traces with these numbers to rows, and reserve their memory in `memory`.

        Raises:
          NotFound: a trace does not exist.
          TooLarge: the traces together are too large.
          Busy: there is not enough memory now.
        """


@runtime_checkable
class JobRows(Protocol):
    """Interface through which data sets find the data set of a job."""

    async def dataset_of_job(self, workspace_id: str, job_id: str) -> str:
        """Return the data set of a job; raise `NotFound` if the job does not exist."""


def datasets_api(
    shelf: DatasetService,
    users: Users,
    access: Access,
    *,
    jobs: Callable[[], JobRows | None],
    traces: Callable[[], TraceRows | None],
) -> APIRouter:
    """Return the routes under `/v1/datasets`. A caller sees only the data sets of its workspace."""
    router = APIRouter(prefix="/v1/datasets", route_class=JsonRoute, tags=["datasets"])

    router.routes.extend(_queries(shelf).routes)

    @router.patch("/{name}", response_model=DatasetReport, responses={**_MISSING, **_REFUSED})
    async def edit(name: str, body: EditIn, request: Request, caller: CallerOf) -> Response:
        """Change, remove and add rows; the result is the next version of the data set."""
        audited = AuditedCall(access, caller, "datasets.edit", name)
        with audited:
            added = list(body.add)
            if body.add_from is not None:
                memory = memory_of(request.scope)
                added += await _rows_from(body.add_from, caller.workspace, shelf, jobs(), traces(), memory)
            edited = partial(shelf.edit_dataset, caller.workspace, name, create=body.create, version=body.version)
            report = await edited(changed=body.set, removed=body.remove, added=added)
            audited.rows = len(body.set) + len(body.remove) + len(added)
        return json_response(report)

    @router.post("", status_code=201, response_model=DatasetReport, responses=_REFUSED, openapi_extra=_FILE)
    async def upload(
        request: Request,
        caller: CallerOf,
        name: Annotated[str, Query(description="Letters, digits, dots, dashes and underscores, at most 63.")],
        *,
        replace: Annotated[bool, Query(description="Replace the data set that has this name.")] = False,
    ) -> Response:
        """Store the rows of a file: JSONL, CSV, TSV, JSON (an array, or an eval set), Parquet or XLSX.

        The Content-Type of the request says which format the file has.

        Lines that are not rows are left out, and reported by number.
        """
        audited = AuditedCall(access, caller, "datasets.upload", name)
        with audited:
            format_ = Format.of_media_type(request.headers.get("content-type", ""))
            report = await shelf.add_dataset(caller.workspace, name, request.stream(), format_, replace=replace)
            audited.rows = report.rows
        return json_response(report, 201, {"Location": f"/v1/datasets/{report.name}"})

    @router.get("/{name}/rows", response_model=list[dict[str, Any]], responses=_MISSING)
    async def rows(
        name: str,
        workspace: WorkspaceOf,
        first: Annotated[WholeNumber, Query(ge=0, description="Number of the first row, starting at 0.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """List rows of a data set."""
        parts = await shelf.rows_json(workspace, name, first, limit=limit)
        return StreamingResponse(parts, media_type="application/json")

    @router.get(
        "/{name}/file",
        response_class=FileResponse,
        responses={**_MISSING, 200: {"content": {"application/x-ndjson": {}}, "description": "One row per line."}},
    )
    async def download(name: str, workspace: WorkspaceOf) -> Response:
        """Download all rows as JSONL."""
        path = await shelf.path(workspace, name)
        return FileResponse(path, media_type="application/x-ndjson", filename=f"{name}.jsonl")

    @router.get("", response_model=list[DatasetReport], name="datasets")
    async def datasets(request: Request, workspace: WorkspaceOf) -> Response:
        """List data sets, newest first."""
        return await json_list(shelf.list_datasets(workspace), list, memory=memory_of(request.scope))

    things = Named(
        DatasetReport,
        shelf.get_dataset,
        shelf.delete_dataset,
        "datasets.delete",
        "Show a data set: its columns, its size, its bad lines.",
        "Delete a data set. Jobs that use its rows keep them.",
    )
    used_routes(router, things, access, users, "dataset", _MISSING)
    return router


def _queries(shelf: DatasetService) -> APIRouter:
    router = APIRouter(prefix="/v1/datasets", route_class=JsonRoute, tags=["datasets"])

    @router.get("/{name}/search", response_model=FoundRows, responses=_QUERIED)
    async def search(
        name: str,
        workspace: WorkspaceOf,
        text: Annotated[
            str, Query(max_length=200, description="Only rows that contain this text, in upper or lower case.")
        ] = "",
        where: Annotated[
            list[str] | None, Query(max_length=20, description="Conditions: city=Rome, answer~paris, score>=0.5.")
        ] = None,
        sort: Annotated[
            str | None, Query(max_length=200, description="Column to sort by; put `-` before it for descending order.")
        ] = None,
        first: Annotated[WholeNumber, Query(ge=0, description="Number of matching rows to skip.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """Find and sort the rows of a data set that contain some text and meet conditions on columns."""
        found = await shelf.search_rows(
            workspace, name, text=text, where=where or (), sort=sort, first=first, limit=limit
        )
        return _json(found)

    @router.get("/{name}/changes", response_model=RowChanges, responses=_QUERIED)
    async def changes(
        name: str,
        workspace: WorkspaceOf,
        to: Annotated[
            str, Query(max_length=100, description="A later version, such as `qa@3`, or any other data set.")
        ],
        first: Annotated[WholeNumber, Query(ge=0, description="Number of changes to skip.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """Show which rows differ between two versions of a data set."""
        return _json(await shelf.compare_rows(workspace, name, to, first=first, limit=limit))

    @router.get("/{name}/columns", response_model=list[ColumnFacts], responses=_QUERIED)
    async def columns(name: str, workspace: WorkspaceOf) -> Response:
        """Show what the columns of a data set contain: kinds, missing and frequent values, ranges."""
        return _json(await shelf.describe_columns(workspace, name))

    @router.get("/{name}/versions", response_model=list[DatasetReport], responses=_MISSING)
    async def versions(name: str, workspace: WorkspaceOf) -> Response:
        """List the kept versions of a data set, newest first. `qa@2` is version 2 of `qa`."""
        return await large_json_response(await shelf.list_versions(workspace, name))

    return router


def _json(text: bytes) -> Response:
    return Response(text, media_type="application/json")


async def _rows_from(
    source: JobRowsIn | TraceRowsIn,
    workspace: str,
    shelf: DatasetService,
    jobs: JobRows | None,
    traces: TraceRows | None,
    memory: Reservation,
) -> list[dict[str, Any]]:
    if isinstance(source, JobRowsIn):
        if jobs is None:
            raise InvalidRequest("this host does not run jobs; send the rows themselves")
        dataset = await jobs.dataset_of_job(workspace, source.job)
        return await shelf.rows_by_number(workspace, dataset, source.rows, memory=memory)
    if traces is None:
        raise InvalidRequest("this host does not receive live traces; send the rows themselves, or name rows of a job")
    return await traces.rows_of_traces(workspace, source.evaluator, source.traces, memory=memory)
