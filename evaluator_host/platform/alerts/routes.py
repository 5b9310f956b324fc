"""Routes of alerts: create, list, show, change, test, delete."""

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Response
from pydantic import Field

from evaluator_host.platform.alerts.service import Alerts
from evaluator_host.platform.http.auth.access import Access, AuditedCall, CallerOf
from evaluator_host.platform.http.bodies import Body, example, fields_of
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute, json_response
from evaluator_host.platform.named_routes import MISSING, Named, list_route, named_routes
from evaluator_host.types.alerts import AlertReport, AlertRule

_REFUSED = {
    **describe_error(404, "Something that the request names does not exist."),
    **describe_error(409, "There is already an alert with this name."),
    **describe_error(422, "A field is invalid; the error names the faulty fields."),
}

_Name: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=63, description="Use letters, digits, dots, dashes and underscores.")
]


@fields_of(AlertRule)
class AlertIn(Body):
    """Body of `POST /v1/alerts`: the metric to watch, and where to send messages."""

    model_config = example(
        name="weekly-low", schedule="weekly", metric="mean", below=0.8, url="https://hooks.example.com/T0/B1"
    )

    name: _Name

    def to_rule(self) -> AlertRule:
        """Return the rule in this body, in the type that the service uses."""
        return AlertRule(**{name: value for name, value in dict(self).items() if name != "name"})


class AlertChangeIn(Body):
    """Body of `PATCH /v1/alerts/{name}`: the fields to change."""

    paused: bool | None = None
    acknowledged: bool | None = Field(
        None, description="Somebody has seen the alert: the workbench no longer counts it as firing."
    )


def alerts_api(service: Alerts, access: Access) -> APIRouter:
    """Return the routes under `/v1/alerts`. A caller sees only the alerts of its workspace."""
    router = APIRouter(prefix="/v1/alerts", route_class=JsonRoute, tags=["alerts"])

    @router.post("", status_code=201, response_model=AlertReport, responses=_REFUSED)
    async def create(body: AlertIn, caller: CallerOf) -> Response:
        """Create an alert that fires when a metric of a job, a schedule or live traces goes out of bounds."""
        with AuditedCall(access, caller, "alerts.create", body.name):
            made = await service.add_alert(caller.workspace, body.name, body.to_rule())
        return json_response(made, 201, {"Location": f"/v1/alerts/{made.name}"})

    @router.patch("/{name}", response_model=AlertReport, responses=MISSING)
    async def change(name: str, body: AlertChangeIn, caller: CallerOf) -> Response:
        """Pause, resume or acknowledge an alert."""
        with AuditedCall(access, caller, "alerts.update", name):
            return json_response(await service.change_alert(caller.workspace, name, **dict(body)))

    @router.post("/{name}/test", response_model=AlertReport, responses=MISSING)
    async def test(name: str, caller: CallerOf) -> Response:
        """Send a test message; the newest delivery in the response says whether it arrived."""
        with AuditedCall(access, caller, "alerts.test", name):
            return json_response(await service.test_alert(caller.workspace, name))

    list_route(router, AlertReport, service.list_alerts, "List alerts, sorted by name.")
    things = Named(
        AlertReport,
        service.get_alert,
        service.delete_alert,
        "alerts.delete",
        "Show an alert and its last messages.",
        "Delete an alert.",
    )
    named_routes(router, things, access)
    return router
