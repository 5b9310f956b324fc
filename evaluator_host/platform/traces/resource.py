"""Adds live traffic to a host: traces that exporters send, and their scores."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from starlette.routing import BaseRoute

from evaluator_host.engine.system.memory import Reservation
from evaluator_host.platform.evaluators.resource import EvaluatorResource
from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.resource import Kept, Resource, Task
from evaluator_host.platform.traces.live_traffic import Traffic
from evaluator_host.platform.traces.routes import traces_api
from evaluator_host.platform.traces.table import Traces
from evaluator_host.types.jobs import JobScore


class TraceResource(Resource):
    """The live traces of a host. Alerts read their scores, and data sets can get rows from them."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._traces = Traces(host.store.database)
        self._traffic = Traffic(host.service, host.resource(EvaluatorResource).registry, self._traces, host.store.usage)

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        return traces_api(self._traffic, access, body_bytes=self.host.settings.traces_mb << 20).routes

    def tasks(self) -> Iterable[Task]:
        return (Task("the task that scores live traces", self._traffic.run),)

    def kept(self) -> Iterable[Kept]:
        return (Kept("traces", self.host.settings.traces_days, self._traces.delete_before),)

    async def require_evaluator(self, workspace_id: str, name: str) -> None:
        await self._traces.require_evaluator(workspace_id, name)

    async def live_statistics(self, workspace_id: str, name: str, *, since: datetime) -> JobScore:
        return await self._traces.live_statistics(workspace_id, name, since=since)

    async def rows_of_traces(
        self, workspace_id: str, name: str, numbers: Sequence[int], *, memory: Reservation
    ) -> list[dict[str, Any]]:
        return await self._traffic.rows_of_traces(workspace_id, name, numbers, memory=memory)


RESOURCE: Final = TraceResource
