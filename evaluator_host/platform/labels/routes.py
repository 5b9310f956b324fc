"""Routes of label queues: create, list, show and delete queues, list rows, get the next row, and set labels."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from evaluator_host.platform.http.auth.access import Access, AuditedCall, CallerOf, WorkspaceOf
from evaluator_host.platform.http.bodies import Body, WholeNumber, example
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute, json_list, json_response, large_json_response
from evaluator_host.platform.http.middleware import memory_of
from evaluator_host.platform.labels.queues import MOST_ROWS, LabelQueues
from evaluator_host.platform.labels.table import LabelState
from evaluator_host.platform.named_routes import Named, named_routes
from evaluator_host.types.labels import LabelKind, LabelPage, LabelQueue, LabelRow, LabelTask, RowChoice

_MISSING = describe_error(404, "There is no such queue or row.")
_REFUSED = {
    **describe_error(404, "There is no such queue, row, job, evaluator or data set."),
    **describe_error(409, "There is already a queue with this name."),
    **describe_error(422, "A field is invalid; the error names the faulty fields."),
}
_NONE: dict[int | str, dict[str, Any]] = {204: {"description": "No row is waiting for a label."}}


class PersonIn(Body):
    """Body of `POST /v1/label-queues/{name}/next`: the person who labels."""

    by: str | None = Field(
        None, min_length=1, max_length=100, description="Name of the person. A host with keys takes the key's name."
    )


class LabelIn(PersonIn):
    """Body of `PUT /v1/label-queues/{name}/rows/{index}`: a label, or `skip`."""

    label: bool | float | Annotated[str, Field(max_length=1000)] | None = Field(
        None, description="A label of the queue's kind; null removes the label."
    )
    skip: bool = Field(default=False, description="Skip the row: it gets no label.")
    note: str = Field("", max_length=10_000, description="Remark on the label.")


class LabelQueueIn(Body):
    """Body of `POST /v1/label-queues`: which rows to label, and how."""

    model_config = example(name="review", dataset="capitals")

    name: str = Field(description="Letters, digits, dots, dashes and underscores, at most 63.")
    job: str | None = Field(None, max_length=100, description="Id of the job with the rows to label.")
    dataset: str | None = Field(None, max_length=200, description="Name of a data set, in place of a job.")
    kind: LabelKind = LabelKind.PASSED
    choices: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        default_factory=list, max_length=50, description="The labels of kind `choice`."
    )
    min: float = Field(0.0, allow_inf_nan=False, description="The lowest label of kind `score`.")
    max: float = Field(1.0, allow_inf_nan=False, description="The highest label of kind `score`.")
    instructions: str = Field("", max_length=20_000, description="Instructions for the people who label.")
    show_results: bool = Field(default=False, description="Show the evaluators' results before a row has a label.")
    evaluator: str | None = Field(
        None, max_length=200, description="The evaluator whose results decide which rows to label."
    )
    rows: RowChoice | Annotated[list[WholeNumber], Field(max_length=MOST_ROWS, fail_fast=True)] = Field(
        RowChoice.ALL, description="Which rows of the job to label, or the numbers of rows."
    )
    limit: int = Field(
        MOST_ROWS, ge=1, le=MOST_ROWS, description="Maximum number of rows, spread evenly over the chosen ones."
    )

    def task(self) -> LabelTask:
        """Return the labelling task: kind of label, choices or range, and instructions."""
        return LabelTask(self.kind, tuple(self.choices), self.min, self.max, self.instructions, self.show_results)


def labels_api(service: LabelQueues, access: Access) -> APIRouter:
    """Return the routes under `/v1/label-queues`. A caller sees only the queues of its workspace."""
    router = APIRouter(prefix="/v1/label-queues", route_class=JsonRoute, tags=["labels"])

    @router.post("", status_code=201, response_model=LabelQueue, responses=_REFUSED)
    async def create(body: LabelQueueIn, caller: CallerOf) -> Response:
        """Create a queue of rows for people to label."""
        chosen = {name: getattr(body, name) for name in ("job", "dataset", "rows", "evaluator", "limit")}
        with AuditedCall(access, caller, "label-queues.create", body.name):
            made = await service.create_queue(caller.workspace, body.name, body.task(), **chosen)
        return json_response(made, 201, {"Location": f"/v1/label-queues/{made.name}"})

    @router.get("", response_model=list[LabelQueue], responses=_MISSING)
    async def queues(
        request: Request,
        workspace: WorkspaceOf,
        job: Annotated[str | None, Query(description="Only queues whose labels apply to this job.")] = None,
    ) -> Response:
        """List label queues, newest first."""
        return await json_list(service.list_queues(workspace, job=job), list, memory=memory_of(request.scope))

    @router.post("/{name}/next", response_model=LabelRow, responses={**_MISSING, **_NONE})
    async def next_(name: str, body: PersonIn, request: Request, caller: CallerOf) -> Response:
        """Return the next row to label, and reserve it for the caller for 10 minutes."""
        memory = memory_of(request.scope)
        found = await service.next_row(caller.workspace, name, by=body.by, key_id=caller.key_id, memory=memory)
        return Response(status_code=204) if found is None else await large_json_response(found)

    @router.get("/{name}/rows", response_model=LabelPage, responses=_MISSING)
    async def rows(
        name: str,
        workspace: WorkspaceOf,
        *,
        state: LabelState | None = None,
        after: Annotated[WholeNumber, Query(description="`next_after` of the previous page.")] = -1,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """List the rows of a label queue with their labels, without their data."""
        found = await service.list_rows(workspace, name, state=state, after=after, limit=limit)
        return await large_json_response(found)

    @router.get("/{name}/rows/{index}", response_model=LabelRow, responses=_MISSING)
    async def row(name: str, index: WholeNumber, request: Request, workspace: WorkspaceOf) -> Response:
        """Show a row of a label queue with its data."""
        found = await service.get_row(workspace, name, index, memory=memory_of(request.scope))
        return await large_json_response(found)

    @router.put("/{name}/rows/{index}", response_model=LabelQueue, responses=_REFUSED)
    async def label(name: str, index: WholeNumber, body: LabelIn, caller: CallerOf) -> Response:
        """Label a row, skip it, or remove its label; return the queue with its progress."""
        with AuditedCall(access, caller, "label-queues.label", name, rows=1):
            who = {"by": body.by, "key_id": caller.key_id}
            changed = await service.label_row(
                caller.workspace, name, index, body.label, skip=body.skip, note=body.note, **who
            )
        return json_response(changed)

    things = Named(
        LabelQueue,
        service.get_queue,
        service.delete_queue,
        "label-queues.delete",
        "Show a label queue and its progress.",
        "Delete a label queue and its labels.",
    )
    named_routes(router, things, access, _MISSING)
    return router
