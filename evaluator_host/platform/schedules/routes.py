"""Routes of schedules: create, list, show, change, run, delete."""

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Response
from pydantic import Field

from evaluator_host.platform.evaluators.bodies import EXACT_MATCH
from evaluator_host.platform.http.auth.access import Access, AuditedCall, CallerOf
from evaluator_host.platform.http.bodies import Body, example
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute, json_response
from evaluator_host.platform.jobs.routes import JobIn
from evaluator_host.platform.named_routes import Named, list_route, used_routes
from evaluator_host.platform.schedules.service import Schedules
from evaluator_host.platform.users import Users
from evaluator_host.types.alerts import ScheduleReport
from evaluator_host.types.jobs import JobReport

_REFUSED = {
    **describe_error(404, "Something that the request names does not exist."),
    **describe_error(409, "There is already a schedule with this name."),
    **describe_error(422, "A field is invalid; the error names the faulty fields."),
}

_Cron: TypeAlias = Annotated[
    str,
    Field(
        max_length=200,
        description="Minute, hour, day of the month, month, day of the week: `0 7 * * 1` is every Monday at 7.",
    ),
]
_Zone: TypeAlias = Annotated[str, Field(max_length=100, description="Time zone of cron: Europe/Berlin.")]
_Name: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=63, description="Use letters, digits, dots, dashes and underscores.")
]


class ScheduleIn(Body):
    """Body of `POST /v1/schedules`: the job to create, and the times."""

    model_config = example(
        name="weekly",
        cron="0 7 * * 1",
        timezone="Europe/Berlin",
        job={"evaluators": [{"code": EXACT_MATCH}], "dataset": {"rows": [{"outputs": "Paris"}]}},
    )

    name: _Name
    cron: _Cron
    timezone: _Zone = "UTC"
    job: JobIn = Field(
        description="The job, as in `POST /v1/jobs`; for a stored evaluator without a version, each run takes the "
        "newest version."
    )


class ScheduleChangeIn(Body):
    """Body of `PATCH /v1/schedules/{name}`: the fields to change."""

    paused: bool | None = None
    cron: _Cron | None = None
    timezone: _Zone | None = None


def schedules_api(service: Schedules, users: Users, access: Access) -> APIRouter:
    """Return the routes under `/v1/schedules`. A caller sees only the schedules of its workspace."""
    router = APIRouter(prefix="/v1/schedules", route_class=JsonRoute, tags=["schedules"])

    @router.post("", status_code=201, response_model=ScheduleReport, responses=_REFUSED)
    async def create(body: ScheduleIn, caller: CallerOf) -> Response:
        """Create jobs on a cron schedule."""
        with AuditedCall(access, caller, "schedules.create", body.name):
            made = await service.add_schedule(
                caller.workspace, body.name, body.job.to_spec(), cron=body.cron, timezone=body.timezone
            )
        return json_response(made, 201, {"Location": f"/v1/schedules/{made.name}"})

    @router.patch("/{name}", response_model=ScheduleReport, responses=_REFUSED)
    async def change(name: str, body: ScheduleChangeIn, caller: CallerOf) -> Response:
        """Pause, resume or change a schedule."""
        with AuditedCall(access, caller, "schedules.update", name):
            return json_response(await service.change_schedule(caller.workspace, name, **dict(body)))

    @router.post("/{name}/run", status_code=202, response_model=JobReport, responses=_REFUSED)
    async def run(name: str, caller: CallerOf) -> Response:
        """Create a job of a schedule now."""
        with AuditedCall(access, caller, "schedules.run", name):
            return json_response(await service.run_schedule(caller.workspace, name), 202)

    list_route(router, ScheduleReport, service.list_schedules, "List schedules, sorted by name.")
    things = Named(
        ScheduleReport,
        service.get_schedule,
        service.delete_schedule,
        "schedules.delete",
        "Show a schedule.",
        "Delete a schedule. Its jobs stay.",
    )
    used_routes(router, things, access, users, "schedule")
    return router
