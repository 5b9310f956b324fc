import asyncio
from collections.abc import Iterable, Sequence

from acme_scores.routes import acme_api
from acme_scores.table import StarsTable
from sqlalchemy import func, insert, select
from starlette.routing import BaseRoute

from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.resource import Resource, Task


class Stars(Resource):
    """The `stars` resource: people give Acme stars, and can see their sum."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._given: asyncio.Queue[tuple[str, int]] = asyncio.Queue()

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        """Return Acme's routes."""
        return acme_api(self.give, self.count).routes

    def tasks(self) -> Iterable[Task]:
        """Return the task that stores stars."""
        return (Task("the stars of Acme", self._store),)

    def give(self, workspace_id: str, stars: int) -> None:
        """Queue stars; the task stores them soon."""
        self._given.put_nowait((workspace_id, stars))

    async def count(self, workspace_id: str) -> int:
        """Return the sum of the stored stars."""
        query = select(func.sum(StarsTable.stars)).where(StarsTable.workspace_id == workspace_id)
        return await self.host.store.database.fetch_value(query) or 0

    async def _store(self) -> None:
        while True:
            workspace_id, stars = await self._given.get()
            row = insert(StarsTable).values(workspace_id=workspace_id, stars=stars)
            await self.host.store.database.change_rows(row)


RESOURCE = Stars
