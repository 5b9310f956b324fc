"""Routes of secrets: set, list, delete. No route returns a secret's value."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, runtime_checkable

from fastapi import APIRouter, Response
from pydantic import ConfigDict, Field, SecretStr

from evaluator_host.platform.http.auth.access import Access, AuditedCall, CallerOf, WorkspaceOf
from evaluator_host.platform.http.bodies import Body
from evaluator_host.platform.http.deletion import USED, ForceDelete
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute, json_response
from evaluator_host.platform.store.secrets import Secrets
from evaluator_host.platform.users import Users
from evaluator_host.types.stored import SecretReport

_MISSING = describe_error(404, "There is no such secret.")
_REFUSED = describe_error(422, "The name or the value is invalid.")


class SecretIn(Body):
    """Body of `PUT /v1/secrets/{name}`: the value to store."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"value": "the key of a model's API"}]}
    )

    value: SecretStr = Field(description="8 to 8192 ASCII characters on one line. No route returns it.")


@runtime_checkable
class CodeSecrets(Protocol):
    """Interface through which the routes of secrets read which secrets code may get."""

    async def code_secrets(self, workspace_id: str) -> set[str]:
        """Return the names of the secrets that code of a workspace may get. `*` means all of them."""


def secrets_api(
    secrets: Secrets, users: Users, access: Access, *, granted: Callable[[], CodeSecrets | None]
) -> APIRouter:
    """Return the routes under `/v1/secrets`. A caller sees only the secrets of its workspace."""
    router = APIRouter(prefix="/v1/secrets", route_class=JsonRoute, tags=["secrets"])

    async def shown(workspace: str, *reports: SecretReport) -> list[SecretReport]:
        grants = granted()
        allowed = set[str]() if grants is None else await grants.code_secrets(workspace)
        return [replace(one, in_code=bool(allowed & {one.name, "*"})) for one in reports]

    @router.get("", response_model=list[SecretReport])
    async def every(workspace: WorkspaceOf) -> Response:
        """List secrets by name, without their values."""
        return json_response(await shown(workspace, *await secrets.list_secrets(workspace)))

    @router.get("/{name}", response_model=SecretReport, responses=_MISSING)
    async def show(name: str, workspace: WorkspaceOf) -> Response:
        """Show when a secret was created and last set, without its value."""
        return json_response((await shown(workspace, await secrets.get_secret(workspace, name)))[0])

    @router.put("/{name}", response_model=SecretReport, responses=_REFUSED)
    async def put(name: str, body: SecretIn, caller: CallerOf) -> Response:
        """Create a secret, or replace its value."""
        with AuditedCall(access, caller, "secrets.set", name):
            report = await secrets.set_secret(caller.workspace, name, body.value.get_secret_value())
        return json_response((await shown(caller.workspace, report))[0])

    @router.delete("/{name}", status_code=204, response_class=Response, responses={**_MISSING, **USED})
    async def delete(name: str, caller: CallerOf, *, force: ForceDelete = False) -> None:
        """Delete a secret. Jobs that still need it fail."""
        with AuditedCall(access, caller, "secrets.delete", name):
            await users.require_unused(caller.workspace, "secret", name, secrets.get_secret, force=force)
            await secrets.delete_secret(caller.workspace, name)

    return router
