"""The routes of secrets as NeMo's client calls them; every namespace shares the secrets of the key's workspace."""

from typing import Any, Final

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field, SecretStr

from evaluator_host.platform.http.auth.access import Access, AuditedCall, caller_of
from evaluator_host.platform.http.bodies import Body
from evaluator_host.platform.http.json_routes import JsonRoute, json_response
from evaluator_host.platform.store.secrets import Secrets
from evaluator_host.types.errors import InvalidRequest, NameTaken, Problem
from evaluator_host.types.stored import SecretReport
from evaluator_host.vendors.nemo.filters import Filter, fields
from evaluator_host.vendors.nemo.names import page_of, stamp
from evaluator_host.vendors.nemo.routes import parts

_PREFIX: Final = "/apis/secrets/v2/workspaces/{workspace}/secrets"
_FILTER: Final = parts.filter_by(fields("description"))


class NewSecretIn(Body):
    """Body of a request to create a secret."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "model-key", "value": "the key of a model's API"}]}
    )

    name: str = Field(min_length=1, max_length=63)
    value: SecretStr = Field(description="1 to 8192 characters of ASCII on one line; never shown again.")
    description: str | None = Field(None, description="Accepted, but not stored.")


class SecretChangeIn(Body):
    """Body of a request to change a secret: its new value."""

    model_config = ConfigDict(extra="forbid")

    value: SecretStr | None = None
    description: str | None = Field(None, description="Accepted, but not stored.")


def secrets_api(secrets: Secrets, access: Access) -> APIRouter:
    """Return the routes for secrets. None of them returns a secret's value."""
    router = APIRouter(prefix=_PREFIX, route_class=JsonRoute, tags=["nemo"], responses=parts.REFUSED)

    @router.post("", status_code=201, response_model=parts.Described, responses=parts.TAKEN)
    async def create_secret(workspace: parts.Namespace, body: NewSecretIn, request: Request) -> Response:
        """Create a secret, which models refer to by name."""
        with AuditedCall(access, caller_of(request.scope), "secrets.set") as caller:
            if any(one.name == body.name for one in await secrets.list_secrets(caller.workspace)):
                raise NameTaken(f"there is a secret named {body.name}; choose another name, or delete it first")
            kept = await secrets.set_secret(caller.workspace, body.name, body.value.get_secret_value(), shortest=1)
        return json_response(_shown(kept, workspace), 201)

    @router.get("", response_model=parts.Described)
    async def all_secrets(
        workspace: parts.Namespace,
        request: Request,
        number: parts.PageNumber = 1,
        page_size: parts.PageSize = 100,
        keep: Filter | None = _FILTER,
    ) -> Response:
        """List secrets by name, without their values."""
        every = [_shown(one, workspace) for one in await secrets.list_secrets(parts.workspace_of(request))]
        kept = [one for one in every if keep is None or keep(one)]
        return json_response(page_of(kept, number=number, size=page_size))

    @router.get("/{name}", response_model=parts.Described, responses=parts.MISSING)
    async def secret(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Show a secret's name and dates, without its value."""
        return json_response(_shown(await secrets.get_secret(parts.workspace_of(request), name), workspace))

    @router.patch("/{name}", response_model=parts.Described, responses=parts.MISSING)
    async def change_secret(
        workspace: parts.Namespace, name: parts.Name, body: SecretChangeIn, request: Request
    ) -> Response:
        """Replace the value of a secret."""
        with AuditedCall(access, caller_of(request.scope), "secrets.set") as caller:
            kept = await secrets.get_secret(caller.workspace, name)
            if body.value is None:
                problem = Problem("value", "is missing", "give the new value; secrets have no description to change")
                raise InvalidRequest("the secret was not changed: the request has no value", problems=(problem,))
            kept = await secrets.set_secret(caller.workspace, name, body.value.get_secret_value(), shortest=1)
        return json_response(_shown(kept, workspace))

    @router.delete("/{name}", status_code=204, responses=parts.MISSING)
    async def delete_secret(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:  # noqa: ARG001
        """Delete a secret. Jobs that still need it fail."""
        with AuditedCall(access, caller_of(request.scope), "secrets.delete") as caller:
            await secrets.delete_secret(caller.workspace, name)
        return Response(status_code=204)

    return router


def _shown(report: SecretReport, workspace: str) -> dict[str, Any]:
    made = {"id": report.name, "name": report.name, "workspace": workspace, "description": None}
    return {**made, "created_at": stamp(report.created_at), "updated_at": stamp(report.updated_at)}
