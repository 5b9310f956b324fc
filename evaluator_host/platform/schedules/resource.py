"""Adds schedules of jobs to a host."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from starlette.routing import BaseRoute

from evaluator_host.platform.evaluators.resource import EvaluatorResource
from evaluator_host.platform.evaluators.uses import code_use
from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.jobs.resource import JobResource
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.platform.jobs.uses import evaluators_of, references
from evaluator_host.platform.resource import Resource, Task
from evaluator_host.platform.schedules.routes import schedules_api
from evaluator_host.platform.schedules.service import Schedules
from evaluator_host.platform.users import UsedObject


class ScheduleResource(Resource):
    """The schedules of a host. Alerts use this resource to find runs that did not create a job."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._schedules = Schedules(host.store.objects, host.resource(JobResource).service)
        self._registry = host.resource(EvaluatorResource).registry

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        return schedules_api(self._schedules, self.host.users, access).routes

    def tasks(self) -> Iterable[Task]:
        return (Task("the task that creates jobs on schedule", self._schedules.run),)

    async def users_of(self, workspace_id: str, used: UsedObject) -> list[str]:
        """Return `schedule NAME` for each schedule with jobs that use this object."""
        specs = await self._schedules.list_specs(workspace_id)
        return [f"schedule {name}" for name, spec in specs.items() if await self._uses(workspace_id, spec, used)]

    async def _uses(self, workspace_id: str, spec: JobSpec, used: UsedObject) -> bool:
        if used.kind == "evaluator":
            return used.name in (one.partition("@")[0] for one in references(spec))
        if used.kind == "dataset":
            return isinstance(spec.dataset, str) and spec.dataset in used.names
        if used.kind == "secret" and spec.target and spec.target.api_key == used.name:
            return True
        uses = code_use(used)
        return uses is not None and any(map(uses, await evaluators_of(self._registry, workspace_id, spec)))

    async def require_schedule(self, workspace_id: str, name: str) -> None:
        await self._schedules.require_schedule(workspace_id, name)

    async def missed_run(self, workspace_id: str, name: str) -> tuple[datetime, str] | None:
        return await self._schedules.missed_run(workspace_id, name)


RESOURCE: Final = ScheduleResource
