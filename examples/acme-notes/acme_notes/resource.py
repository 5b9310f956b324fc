from collections.abc import Sequence

from acme_notes.routes import notes_api
from acme_notes.table import Notes
from starlette.routing import BaseRoute

from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.resource import Resource
from evaluator_host.platform.users import UsedObject


class NoteResource(Resource):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._notes = Notes(host.store.database)

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        return notes_api(self._notes, access).routes

    async def users_of(self, workspace_id: str, used: UsedObject) -> list[str]:
        notes = await self._notes.list_notes(workspace_id) if used.kind == "dataset" else []
        return [f"note {one.name}" for one in notes if one.name in used.names]


RESOURCE = NoteResource
