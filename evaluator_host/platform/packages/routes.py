"""Routes of package sets (build, list, show, watch a build, delete) and of the packages that they can pin."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from evaluator_host.engine.environments.record import BuildEvent, BuildStatus, EnvironmentReport
from evaluator_host.engine.environments.store import Environments
from evaluator_host.engine.packages.versions import PackageVersions
from evaluator_host.engine.service import Service
from evaluator_host.platform.http.auth.access import Access, AuditedCall, CallerOf, WorkspaceOf
from evaluator_host.platform.http.auth.keyring import KeyHolder
from evaluator_host.platform.http.auth.package_visibility import no_such_set
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute, LateRoute, json_response
from evaluator_host.platform.http.pins import EnvironmentIn, pin_texts
from evaluator_host.types.errors import NotFound
from evaluator_host.types.evaluator import Language

_MISSING = describe_error(404, "There is no such package set.")
_IN_USE = {**_MISSING, **describe_error(409, "The package set is in use.")}
_REFUSED: dict[int | str, dict[str, Any]] = {
    202: {"model": EnvironmentReport, "description": "The build is running."},
    **describe_error(422, "A pin is not exact, or the host has no such Python."),
}
_VERSIONS: dict[int | str, dict[str, Any]] = {
    **describe_error(404, "The index has no such package for this host."),
    **describe_error(422, "This is not a valid package name."),
    **describe_error(503, "The package index does not answer."),
}


def environments_api(service: Service, access: Access) -> APIRouter:
    """Return the routes under `/v1/environments`. A caller sees only the package sets that its workspace requested."""
    router = APIRouter(prefix="/v1/environments", route_class=JsonRoute, tags=["environments"])

    @router.post("", response_model=EnvironmentReport, responses=_REFUSED)
    async def build(body: EnvironmentIn, caller: CallerOf) -> Response:
        """Install a package set: 200 when it is ready, 202 while it is being built."""
        with AuditedCall(access, caller, "environments.build"):
            pins = pin_texts(body.packages, body.language)
            report = await service.install(pins, body.language, body.python, workspace=caller.workspace)
            access.package_visibility.note(caller.workspace, report.key, report.digest)
        return json_response(report, 200 if report.status is BuildStatus.READY else 202)

    @router.get("", response_model=list[EnvironmentReport])
    async def reports(caller: CallerOf) -> Response:
        """List the package sets that this workspace requested: being built, installed (last used first) or failed."""
        found = await service.environments.reports()
        return json_response(await access.package_visibility.filtered(caller, found))

    @router.get("/{digest}", response_model=EnvironmentReport, responses=_MISSING)
    async def show(digest: str, caller: CallerOf) -> Response:
        """Show a package set and its lock, by digest or key."""
        return json_response(await _seen(service.environments, access, caller, digest))

    @router.delete("/{digest}", status_code=204, response_class=Response, responses=_IN_USE)
    async def delete(digest: str, caller: CallerOf) -> None:
        """Delete a package set and its lock. If another workspace requested it, only hide it from this workspace."""
        with AuditedCall(access, caller, "environments.delete", digest):
            report = await _seen(service.environments, access, caller, digest)
            if not await access.package_visibility.is_shared(caller, report):
                await service.environments.delete(digest)
            await access.package_visibility.forget(caller, report)

    @router.get(
        "/{digest}/events",
        response_class=StreamingResponse,
        responses={
            **_MISSING,
            200: {"content": {"text/event-stream": {}}, "description": "One event for each step of the build."},
        },
    )
    async def events(digest: str, caller: CallerOf) -> Response:
        """Watch a build: one server-sent event per step; the last is `ready` or `failed`."""
        access.streams.require_free(caller.key_id)
        await _seen(service.environments, access, caller, digest)
        return access.streams.respond(caller.key_id, _build_events(service.environments.events(digest)))

    return router


async def _seen(environments: Environments, access: Access, caller: KeyHolder, name: str) -> EnvironmentReport:
    """Return a package set that the caller may see.

    The host does not look up other workspaces' package sets, because the time of a look-up reveals whether a set
    exists.

    Raises:
      NotFound: there is no such package set, or the caller's workspace has not requested it.
    """
    if await access.package_visibility.sees(caller, name):
        with suppress(NotFound):
            return await environments.find_report(name)
    else:  # the name may be the digest of a set that the workspace requested by its key
        for report in await access.package_visibility.filtered(caller, await environments.reports()):
            if name in (report.key, report.digest):
                return report
    raise no_such_set(name)


async def _build_events(events: AsyncGenerator[BuildEvent, None]) -> AsyncGenerator[tuple[str, object], None]:
    async with aclosing(events) as steps:
        async for event in steps:
            yield event.step, event


def packages_api(service: Service) -> APIRouter:
    """Return the route that lists the versions of a package."""
    router = APIRouter(prefix="/v1/packages", tags=["environments"], route_class=LateRoute)

    @router.get("/{language}/{name:path}/versions", response_model=PackageVersions, responses=_VERSIONS)
    async def versions(language: Language, name: str, workspace: WorkspaceOf) -> Response:
        """List the versions of a package that this host can install, newest first."""
        return json_response(await service.environments.queries.versions(name, language, workspace=workspace))

    return router
