"""Routes of jobs: create, list, show, watch, pause, resume, cancel, delete."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import FailFast, Field

from evaluator_host.platform.evaluators.bodies import EXACT_MATCH, BudgetIn, EvaluatorRef, ReplayField
from evaluator_host.platform.http.auth.access import Access, AuditedCall, CallerOf, WorkspaceOf
from evaluator_host.platform.http.bodies import Body, Few, Moment, example, fields_of
from evaluator_host.platform.http.deletion import ForceDelete
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute, json_list, json_response, large_json_response
from evaluator_host.platform.http.middleware import memory_of
from evaluator_host.platform.jobs.estimates import JobEstimates
from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.platform.jobs.service import JobService, job_report
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.platform.plugins import row_document
from evaluator_host.platform.users import Users
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Evaluator, Replay
from evaluator_host.types.jobs import (
    EvaluatorScore,
    JobConfig,
    JobEstimate,
    JobReport,
    JobStatus,
    MappingAdvice,
    ScoreHistory,
    Target,
)

_MISSING = describe_error(404, "There is no such job.")
_STAYS = describe_error(409, "The job has not ended, or it is in use; `detail` names what uses it.")
_ENDED = {**_MISSING, **describe_error(409, "The state of the job does not allow this.")}
_REFUSED = {
    **describe_error(404, "There is no such evaluator or data set."),
    **describe_error(422, "The job is invalid; the error names the faulty fields."),
}
_EVENTS: dict[int | str, dict[str, Any]] = {
    **_MISSING,
    200: {"content": {"text/event-stream": {}}, "description": "The job after each change, until it ends."},
}


JobName: TypeAlias = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


class InlineRowsIn(Body):
    """Rows inside the body of a job."""

    rows: Annotated[list[dict[str, Any]], FailFast()] = Field(
        min_length=1, description="Rows as in a data set: `inputs`, `outputs`, …, or flat columns."
    )


class EvalSetIn(Body):
    """An eval set in the body of a job, and optionally the executions of the agent."""

    eval_set: dict[str, Any] = Field(description="The eval set, as its platform documents it or its tools write it.")
    executions: Annotated[list[dict[str, Any]], Field(fail_fast=True)] | None = Field(
        None,
        description='For each test case {"id", "output", "spans", "error"}. Without executions, a target writes the '
        "outputs.",
    )


@fields_of(JobConfig)
class JobConfigIn(Body):
    """Parallelism and limits of a job."""

    replay: ReplayField = Replay.OFF
    budget: BudgetIn = Field(BudgetIn(), description="Limits for the whole job's use of granted models.")

    def to_model(self) -> JobConfig:
        """Return the configuration in the type that the service uses."""
        return JobConfig(**{**dict(self), "budget": self.budget.to_model()})


class SecretNameIn(Body):
    """A reference to a secret by name."""

    secret: str = Field(min_length=1, max_length=63, description="Name of a secret in the workspace.")


@fields_of(Target)
class TargetIn(Body):
    """An OpenAI-compatible model that produces the outputs before they are scored."""

    api_key: SecretNameIn | None = Field(None, description="The API key, sent as a bearer token. Default: no key.")
    messages: list[dict[str, Any]] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="Instead of prompt_template: messages {role, content}; each content is a template.",
    )

    def to_model(self) -> Target:
        """Return the model and its endpoint in the form that is stored with a job."""
        given = {**dict(self), "messages": tuple(self.messages or ())}
        return Target(**{**given, "api_key": self.api_key.secret if self.api_key else None})


class JobIn(Body):
    """Body of `POST /v1/jobs`: evaluators, and the rows to score."""

    model_config = example(
        evaluators=[{"code": EXACT_MATCH}],
        dataset={"rows": [{"question": "Capital of France?", "gold": "Paris", "answer": "Paris"}]},
        mapping={"outputs": "answer", "correct_answer": "gold"},
        config={"parallelism": 2},
    )

    evaluators: Annotated[list[EvaluatorRef], FailFast()] = Field(
        default_factory=list,
        max_length=100,
        description="Evaluators, or names of stored ones: exact-match, exact-match@3. Default: those of the eval set.",
    )
    dataset: str | InlineRowsIn | EvalSetIn = Field(description="Name of a stored data set, rows, or an eval set.")
    mapping: Annotated[dict[str, str], Few] = Field(
        default_factory=dict,
        description="The column, dotted path or {{ template }} for each row field; see docs/jobs.md.",
    )
    target: TargetIn | None = Field(None, description="A model that produces the outputs first; see docs/jobs.md.")
    config: JobConfigIn = JobConfigIn()
    name: JobName | None = Field(None, description="Name of the job; lists show it, and `search` finds it.")

    def to_spec(self) -> JobSpec:
        """Return the spec of the job, for `JobService.create_job`.

        Raises:
          InvalidRequest: the eval set is invalid.
        """
        evaluators: list[Evaluator | str] = [one if isinstance(one, str) else one.to_model() for one in self.evaluators]
        dataset: str | list[dict[str, Any]]
        match self.dataset:
            case EvalSetIn():
                document = dict(self.dataset)
                reader = row_document(document)
                if reader is None:
                    raise InvalidRequest("this host cannot read an eval set of this form; send rows instead")
                dataset = reader.rows(document)
                evaluators = evaluators or list(reader.evaluators(document))
            case InlineRowsIn():
                dataset = self.dataset.rows
            case _:
                dataset = self.dataset
        return JobSpec(
            evaluators=evaluators,
            dataset=dataset,
            mapping=self.mapping,
            target=self.target.to_model() if self.target else None,
            config=self.config.to_model(),
            name=self.name,
        )


class JobNameIn(Body):
    """Body of `PATCH /v1/jobs/{job_id}`: the job's new name."""

    name: JobName | None = Field(description="The new name; null removes the name.")


def jobs_api(service: JobService, estimates: JobEstimates, users: Users, access: Access) -> APIRouter:
    """Return the routes under `/v1/jobs`. A caller sees only the jobs of its workspace."""
    router = APIRouter(prefix="/v1/jobs", route_class=JsonRoute, tags=["jobs"])

    @router.post("", status_code=202, response_model=JobReport, responses=_REFUSED)
    async def create(
        body: JobIn,
        caller: CallerOf,
        idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
    ) -> Response:
        """Queue a job. A request with the same Idempotency-Key returns the first job instead of a new one."""
        audited = AuditedCall(access, caller, "jobs.create")
        with audited:
            report = await service.create_job(body.to_spec(), caller.workspace, idempotency_key=idempotency_key)
            audited.subject = report.id
            audited.note_grants(await service.grants_of(report.id))
        return json_response(report, 202, {"Location": f"/v1/jobs/{report.id}"})

    @router.post("/estimate", response_model=JobEstimate, responses=_REFUSED)
    async def estimate(
        body: JobIn,
        caller: CallerOf,
        rows: Annotated[
            int, Query(ge=1, le=100, description="Number of rows to score for the estimate, starting with the first.")
        ] = 3,
    ) -> Response:
        """Score the first rows of a job, and estimate how much the whole job would use models."""
        with AuditedCall(access, caller, "jobs.estimate"):
            found = await estimates.estimate_job(body.to_spec(), caller.workspace, rows=rows)
        return json_response(found)

    @router.post("/mapping", response_model=MappingAdvice, responses=_REFUSED)
    async def mapping(body: JobIn, caller: CallerOf) -> Response:
        """Suggest the mapping of a job, from the columns of its data and the fields that its evaluators read."""
        with AuditedCall(access, caller, "jobs.mapping"):
            return json_response(await service.advise_mapping(body.to_spec(), caller.workspace))

    @router.get("", response_model=list[JobReport])
    async def jobs(
        request: Request,
        workspace: WorkspaceOf,
        status: JobStatus | None = None,
        before: Annotated[
            Moment | None, Query(description="`created_at` of the last job on the previous page.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        search: Annotated[
            str | None,
            Query(max_length=200, description="Only jobs with this text in their name, data set or evaluators."),
        ] = None,
        schedule: Annotated[str | None, Query(description="Only jobs that this schedule created.")] = None,
    ) -> Response:
        """List jobs, newest first, with the scores of each evaluator so far."""
        chosen = {"before": before, "status": status, "search": search, "schedule": schedule}
        parts = service.overviews(workspace, limit=limit, **chosen)
        return await json_list(parts, lambda part: [job_report(one) for one in part], memory=memory_of(request.scope))

    @router.get("/{job_id}", response_model=JobReport, responses=_MISSING)
    async def show(job_id: str, workspace: WorkspaceOf) -> Response:
        """Show a job and its progress."""
        return json_response(await service.get_job(workspace, job_id))

    @router.patch("/{job_id}", response_model=JobReport, responses=_MISSING)
    async def rename(job_id: str, body: JobNameIn, caller: CallerOf) -> Response:
        """Give a job another name."""
        with AuditedCall(access, caller, "jobs.rename", job_id):
            return json_response(await service.rename_job(caller.workspace, job_id, body.name))

    @router.get("/{job_id}/events", response_class=StreamingResponse, responses=_EVENTS)
    async def events(job_id: str, caller: CallerOf) -> Response:
        """Watch a job: an event `progress` after each change, and an event named after its status when it ends."""
        access.streams.require_free(caller.key_id)
        await service.get_job(caller.workspace, job_id)
        return access.streams.respond(caller.key_id, _events(service, caller.workspace, job_id))

    for verb, desired, text in (
        ("pause", DesiredState.PAUSE, "Pause a job. Its results so far are kept."),
        ("resume", DesiredState.RUN, "Continue a paused or failed job; existing results are kept."),
        ("cancel", DesiredState.CANCEL, "Cancel a job. Its results so far are kept."),
    ):
        _add_verb(router, service, access, verb, desired, text)

    @router.delete("/{job_id}", status_code=204, response_class=Response, responses={**_MISSING, **_STAYS})
    async def delete(job_id: str, caller: CallerOf, *, force: ForceDelete = False) -> None:
        """Delete a job that has ended, and its results."""
        with AuditedCall(access, caller, "jobs.delete", job_id):
            await users.require_unused(caller.workspace, "job", job_id, service.get_job, force=force)
            await service.delete_job(caller.workspace, job_id)

    return router


def scores_api(service: JobService) -> APIRouter:
    """Return the routes that list scores from many jobs: of one evaluator, or over one data set."""
    router = APIRouter(prefix="/v1", route_class=JsonRoute)

    @router.get("/evaluators/{name}/scores", response_model=list[EvaluatorScore], tags=["evaluators"])
    async def scores(
        name: str,
        workspace: WorkspaceOf,
        dataset: Annotated[str | None, Query(description="Only jobs over the data set of this name.")] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """List the scores of each version of an evaluator in completed jobs, newest first."""
        return await large_json_response(await service.scores_of(workspace, name, dataset=dataset, limit=limit))

    @router.get(
        "/datasets/{name}/scores",
        response_model=ScoreHistory,
        responses=describe_error(404, "There is no data set of that name, and no job has used one."),
        tags=["datasets"],
    )
    async def history(
        name: str,
        workspace: WorkspaceOf,
        limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of jobs.")] = 20,
    ) -> Response:
        """Show the scores of each stored evaluator in the newest completed jobs over a data set."""
        return await large_json_response(await service.history_of(workspace, name, limit=limit))

    return router


def _add_verb(
    router: APIRouter, service: JobService, access: Access, verb: str, desired: DesiredState, text: str
) -> None:
    async def ask(job_id: str, caller: CallerOf) -> Response:
        with AuditedCall(access, caller, f"jobs.{verb}", job_id):
            report = await service.set_desired_state(caller.workspace, job_id, desired)
        return json_response(report, 200 if report.status is not JobStatus.RUNNING else 202)

    accepted: dict[int | str, dict[str, Any]] = {
        202: {"model": JobReport, "description": "The request was accepted, and takes effect within a second."}
    }
    router.add_api_route(
        f"/{{job_id}}/{verb}",
        ask,
        methods=["POST"],
        name=verb,
        description=text,
        response_model=JobReport,
        responses={**_ENDED, **accepted},
    )


async def _events(service: JobService, workspace: str, job_id: str) -> AsyncGenerator[tuple[str, object], None]:
    async with aclosing(service.watch_job(workspace, job_id)) as reports:
        async for report in reports:
            yield (report.status if report.status.final else "progress"), report
