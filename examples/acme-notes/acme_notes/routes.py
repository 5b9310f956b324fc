from acme_notes.table import Note, Notes
from fastapi import APIRouter, Response
from pydantic import Field

from evaluator_host.platform.http.auth.access import Access, AuditedCall, CallerOf, WorkspaceOf
from evaluator_host.platform.http.bodies import Body
from evaluator_host.platform.http.json_routes import JsonRoute, json_response


class NoteIn(Body):
    """Body of `PUT /v1/notes/{name}`."""

    text: str = Field(max_length=10_000, description="The note.")
    colour: str = Field("yellow", max_length=100, description="The colour of the paper.")


def notes_api(notes: Notes, access: Access) -> APIRouter:
    """Return the routes for notes. A key gives access to the notes of its own workspace."""
    router = APIRouter(prefix="/v1/notes", route_class=JsonRoute, tags=["notes"])

    @router.get("", response_model=list[Note])
    async def every(workspace: WorkspaceOf) -> Response:
        """List notes by name."""
        return json_response(await notes.list_notes(workspace))

    @router.put("/{name}", response_model=Note)
    async def put(name: str, body: NoteIn, caller: CallerOf) -> Response:
        """Store a note."""
        with AuditedCall(access, caller, "notes.put"):
            return json_response(await notes.put_note(caller.workspace, name, body.text, body.colour))

    @router.delete("/{name}", status_code=204, response_class=Response)
    async def delete(name: str, caller: CallerOf) -> None:
        """Delete a note."""
        with AuditedCall(access, caller, "notes.delete"):
            await notes.delete_note(caller.workspace, name)

    return router
