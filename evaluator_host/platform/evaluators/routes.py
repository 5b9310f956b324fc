"""Routes of stored evaluators: create, list, show, create versions, delete."""

from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, Final, Protocol, runtime_checkable

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, StringConstraints

from evaluator_host.platform.evaluators.bodies import EXACT_MATCH, CasesIn, EvaluatorIn, case_dicts
from evaluator_host.platform.evaluators.registry import EvaluatorRegistry, VersionWish
from evaluator_host.platform.evaluators.table import NameFacts
from evaluator_host.platform.http.auth.access import Access, AuditedCall, CallerOf, WorkspaceOf
from evaluator_host.platform.http.bodies import Body, WholeNumber, example
from evaluator_host.platform.http.deletion import USED, ForceDelete
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute, json_list, json_response
from evaluator_host.platform.http.middleware import memory_of
from evaluator_host.platform.users import Users
from evaluator_host.types.jobs import EvaluatorScore
from evaluator_host.types.results import JobEvaluatorReport
from evaluator_host.types.stored import EvaluatorReport

_MISSING = describe_error(404, "There is no such evaluator or version.")
_REFUSED = describe_error(
    422, "The evaluator does not load, or the request is invalid; the error names the faulty fields."
)
_UNAVAILABLE = describe_error(503, "The host cannot start a sandbox, or the database does not answer.")
_TAKEN = describe_error(409, "There is already an evaluator of that name.")
_SAME: dict[int | str, dict[str, Any]] = {
    200: {"model": EvaluatorReport, "description": "Nothing changed: this is the newest version."}
}

MOST_TAG: Final = 50  # maximum number of characters in a tag
TagsIn = Annotated[
    list[Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_TAG)]] | None,
    Field(max_length=20),
]

_Force = Annotated[bool, Query(description="Store the evaluator even if it does not load.")]
_Require = Annotated[bool, Query(description="Store the evaluator only if all its cases pass.")]


class NewVersionIn(EvaluatorIn):
    """Body of `PUT /v1/evaluators/{name}`: an evaluator, a description, a sampling rate."""

    model_config = example(code=EXACT_MATCH, threshold=0.5)

    description: str | None = Field(None, max_length=4000, description="Description for users. Default: unchanged.")
    sampling: float | None = Field(
        None, ge=0, le=1, description="Fraction of live traces to score. Default: unchanged; for a new evaluator, 1."
    )
    tags: TagsIn = Field(None, description="Tags to find the evaluator by. Default: unchanged.")
    message: str = Field("", max_length=1000, description="Reason for this version.")
    cases: CasesIn = Field(
        None, description="Test cases: rows, each with the result that is expected. Default: unchanged."
    )

    def wish(self, key_id: str | None, *, force: bool, require_cases: bool) -> VersionWish:
        about = NameFacts(self.description, self.sampling, self.tags)
        cases = None if self.cases is None else case_dicts(self.cases)
        return VersionWish(about, self.message, cases, force=force, require_cases=require_cases, key_id=key_id)


class NewEvaluatorIn(NewVersionIn):
    """Body of `POST /v1/evaluators`: a name and an evaluator."""

    model_config = example(name="exact-match", code=EXACT_MATCH)

    name: str = Field(description="Letters, digits, dots, dashes and underscores, at most 63.")


class EvaluatorFactsIn(Body):
    """Body of `PATCH /v1/evaluators/{name}`: fields that all versions share. No version is created."""

    model_config = example(tags=["regression", "tone"])

    description: str | None = Field(None, max_length=4000, description="Description for users. Default: unchanged.")
    sampling: float | None = Field(
        None, ge=0, le=1, description="Fraction of live traces to score. Default: unchanged."
    )
    tags: TagsIn = Field(None, description="Tags to find the evaluator by; [] removes all. Default: unchanged.")


@runtime_checkable
class LastScores(Protocol):
    """Interface through which the routes of evaluators read the scores of their newest jobs."""

    async def last_scores(self, workspace_id: str) -> dict[str, EvaluatorScore]:
        """Return the scores of each stored evaluator in its newest job, keyed by the evaluator's name."""


def evaluators_api(
    registry: EvaluatorRegistry, users: Users, access: Access, *, jobs: Callable[[], LastScores | None]
) -> APIRouter:
    """Return the routes under `/v1/evaluators`. A caller sees only the evaluators of its workspace."""
    router = APIRouter(prefix="/v1/evaluators", route_class=JsonRoute, tags=["evaluators"])

    @router.post("", status_code=201, response_model=EvaluatorReport, responses={**_TAKEN, **_REFUSED, **_UNAVAILABLE})
    async def create(
        body: NewEvaluatorIn, caller: CallerOf, *, force: _Force = False, require_cases: _Require = False
    ) -> Response:
        """Store an evaluator under a name, as version 1, if it loads."""
        evaluator = body.to_model()
        with AuditedCall(access, caller, "evaluators.create", body.name, evaluator=evaluator):
            wish = body.wish(caller.key_id, force=force, require_cases=require_cases)
            report = await registry.create_evaluator(caller.workspace, body.name, evaluator, wish)
        return json_response(shown(report), 201, {"Location": f"/v1/evaluators/{report.name}"})

    @router.get("", response_model=list[EvaluatorReport])
    async def evaluators(
        request: Request,
        workspace: WorkspaceOf,
        tag: Annotated[str | None, Query(max_length=MOST_TAG, description="Only evaluators with this tag.")] = None,
    ) -> Response:
        """List the newest version of each evaluator and its last job, sorted by name."""
        scores = jobs()
        last = {} if scores is None else await scores.last_scores(workspace)

        def chosen(part: list[EvaluatorReport]) -> list[dict[str, Any]]:
            wanted = (one for one in part if tag is None or tag in one.tags)
            return [{**shown(one), "last_job": last.get(one.name)} for one in wanted]

        return await json_list(registry.newest_versions(workspace), chosen, memory=memory_of(request.scope))

    @router.get("/{name}", response_model=EvaluatorReport, responses=_MISSING)
    async def newest(name: str, workspace: WorkspaceOf) -> Response:
        """Show the newest version of an evaluator."""
        return json_response(shown(await registry.get_evaluator(workspace, name)))

    @router.put(
        "/{name}",
        status_code=201,
        response_model=EvaluatorReport,
        responses={**_SAME, **_MISSING, **_REFUSED, **_UNAVAILABLE},
    )
    async def update(
        name: str, body: NewVersionIn, caller: CallerOf, *, force: _Force = False, require_cases: _Require = False
    ) -> Response:
        """Create the next version, if it loads. If nothing changed, no version is created."""
        evaluator = body.to_model()
        with AuditedCall(access, caller, "evaluators.update", name, evaluator=evaluator):
            before = await registry.get_evaluator(caller.workspace, name)
            wish = body.wish(caller.key_id, force=force, require_cases=require_cases)
            report = await registry.update_evaluator(caller.workspace, name, evaluator, wish)
        return json_response(shown(report), 200 if report.version == before.version else 201)

    @router.patch(
        "/{name}",
        response_model=EvaluatorReport,
        responses={**_MISSING, **describe_error(422, "The request is invalid; the error names the faulty fields.")},
    )
    async def describe(name: str, body: EvaluatorFactsIn, caller: CallerOf) -> Response:
        """Change description, sampling rate or tags of an evaluator. No version is created."""
        about = NameFacts(body.description, body.sampling, body.tags)
        with AuditedCall(access, caller, "evaluators.describe", name):
            report = await registry.describe_evaluator(caller.workspace, name, about)
        return json_response(shown(report))

    @router.delete("/{name}", status_code=204, response_class=Response, responses={**_MISSING, **USED})
    async def delete(name: str, caller: CallerOf, *, force: ForceDelete = False) -> None:
        """Delete an evaluator and all its versions. Jobs keep their copies."""
        with AuditedCall(access, caller, "evaluators.delete", name):
            await users.require_unused(caller.workspace, "evaluator", name, registry.get_evaluator, force=force)
            await registry.delete_evaluator(caller.workspace, name)

    @router.get("/{name}/versions", response_model=list[EvaluatorReport], responses=_MISSING)
    async def versions(name: str, request: Request, workspace: WorkspaceOf) -> Response:
        """List all versions, newest first."""
        found = registry.versions(workspace, name)
        return await json_list(found, lambda part: [shown(one) for one in part], memory=memory_of(request.scope))

    @router.get(
        "/{name}/versions/{version}",
        response_model=EvaluatorReport,
        responses={**_MISSING, **describe_error(422, "The version is not a number.")},
    )
    async def version(name: str, version: WholeNumber, workspace: WorkspaceOf) -> Response:
        """Show one version."""
        return json_response(shown(await registry.get_evaluator(workspace, name, version)))

    return router


def shown(report: EvaluatorReport | JobEvaluatorReport) -> dict[str, Any]:
    """Convert an evaluator version to the API's format; its `evaluator` has the form of `POST /v1/evaluate`."""
    found = {one.name: getattr(report, one.name) for one in fields(report)}
    evaluator = {one.name: getattr(report.evaluator, one.name) for one in fields(report.evaluator)}
    del evaluator["name"], evaluator["version"]
    return {**found, "evaluator": evaluator}
