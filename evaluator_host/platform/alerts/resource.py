"""Adds alerts to a host."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from starlette.routing import BaseRoute

from evaluator_host.engine.system.lookups import TENANT_NAMES
from evaluator_host.platform.alerts.routes import alerts_api
from evaluator_host.platform.alerts.service import Alerts, LiveScores, MissedRuns
from evaluator_host.platform.alerts.webhooks import Webhooks
from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.jobs.resource import JobResource
from evaluator_host.platform.resource import Resource, Task
from evaluator_host.platform.users import UsedObject
from evaluator_host.types.alerts import AlertRule

_USES: Final[dict[str, Callable[[AlertRule], str | None]]] = {
    "evaluator": lambda rule: rule.live,
    "schedule": lambda rule: rule.schedule,
    "job": lambda rule: rule.job,
    "secret": lambda rule: rule.secret,
}


class AlertResource(Resource):
    """The alerts of a host: on jobs, and also on schedules and live traces if the host has these resources."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._alerts = Alerts(
            host.store.objects,
            host.resource(JobResource).service,
            Webhooks(host.settings, host.store.secrets, TENANT_NAMES),
            live=lambda: host.find(LiveScores),
            schedules=lambda: host.find(MissedRuns),
        )

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        return alerts_api(self._alerts, access).routes

    def tasks(self) -> Iterable[Task]:
        return (Task("the task that checks alerts", self._alerts.run),)

    async def users_of(self, workspace_id: str, used: UsedObject) -> list[str]:
        """Return `alert NAME` for each alert that watches this object, or signs its messages with this secret."""
        if (named := _USES.get(used.kind)) is None:
            return []
        alerts = await self._alerts.list_alerts(workspace_id)
        return [f"alert {one.name}" for one in alerts if named(one.rule) == used.name]


RESOURCE: Final = AlertResource
