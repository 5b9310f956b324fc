"""The routes of NeMo's workspaces, models and model providers."""

from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field

from evaluator_host.platform.http.auth.access import Access, AuditedCall, caller_of
from evaluator_host.platform.http.bodies import Body, SmallBody, example
from evaluator_host.platform.http.json_routes import JsonRoute, json_response, large_json_response
from evaluator_host.vendors.nemo.entities import EntityKind, Order
from evaluator_host.vendors.nemo.filters import Filter, fields, filtered
from evaluator_host.vendors.nemo.models import NemoModels
from evaluator_host.vendors.nemo.namespaces import Namespaces
from evaluator_host.vendors.nemo.routes import parts

_WORKSPACES: Final = "/apis/entities/v2/workspaces"
_WORKSPACE_FILTER: Final = parts.filter_by(fields("description"))
_FILTERS: Final = {
    EntityKind.MODEL: parts.filter_by(fields("description", "base_model", "fileset", "project", "workspace")),
    EntityKind.PROVIDER: parts.filter_by(fields("description", "host_url", "project", "status", "workspace")),
}
_MODELS: Final = "/apis/models/v2/workspaces/{workspace}"


class WorkspaceIn(Body):
    """Body of a request to create a workspace."""

    model_config = example(name="custom-python-metrics")

    name: str = Field(min_length=1, max_length=255)
    description: str | None = None


class StoredModelIn(SmallBody):
    """Body of a request to create a model. Fields that this host does not use are stored and shown."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"examples": [{"name": "my-model", "model_providers": ["default/my-provider"]}]},
    )

    name: str = Field(min_length=1, max_length=255)
    model_providers: list[str] = Field(default_factory=list, max_length=100)
    api_endpoint: dict[str, Any] | None = None


class ProviderIn(SmallBody):
    """Body of a request to create a model provider. Fields that this host does not use are stored and shown."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"examples": [{"name": "my-provider", "host_url": "http://127.0.0.1:8000/v1"}]},
    )

    name: str = Field(min_length=1, max_length=255)
    host_url: str = Field(min_length=1, max_length=2000, description="https://host/v1")
    api_key_secret_name: str | None = Field(None, max_length=300)


class ChangesIn(SmallBody):
    """Body of a request to change an object: the fields to replace."""

    model_config = ConfigDict(extra="allow")

    api_endpoint: dict[str, Any] | None = None


def workspaces_api(namespaces: Namespaces, access: Access) -> APIRouter:
    """Return the routes for NeMo's workspaces, which this host calls namespaces."""
    router = APIRouter(prefix=_WORKSPACES, route_class=JsonRoute, tags=["nemo"], responses=parts.REFUSED)

    @router.post("", status_code=201, response_model=parts.Described, responses=parts.TAKEN)
    async def create_workspace(body: WorkspaceIn, request: Request) -> Response:
        """Create a namespace in your key's workspace."""
        with AuditedCall(access, caller_of(request.scope), "nemo.workspaces.create") as caller:
            return json_response(await namespaces.create(caller.workspace, body.name, body.description), 201)

    @router.get("", response_model=parts.Described)
    async def workspaces(
        request: Request,
        number: parts.PageNumber = 1,
        page_size: parts.PageSize = 100,
        keep: Filter | None = _WORKSPACE_FILTER,
    ) -> Response:
        """List namespaces by name."""
        fetch = partial(namespaces.all, parts.workspace_of(request))
        return await large_json_response(await filtered(fetch, keep, number=number, size=page_size))

    @router.get("/{name}", response_model=parts.Described, responses=parts.MISSING)
    async def workspace(name: parts.Name, request: Request) -> Response:
        """Show a namespace."""
        return json_response(await namespaces.get(parts.workspace_of(request), name))

    @router.delete("/{name}", status_code=204, responses=parts.IN_USE)
    async def delete_workspace(name: parts.Name, request: Request) -> Response:
        """Delete an empty namespace."""
        with AuditedCall(access, caller_of(request.scope), "nemo.workspaces.delete") as caller:
            await namespaces.delete(caller.workspace, name)
        return Response(status_code=204)

    return router


def models_api(models: NemoModels, access: Access) -> APIRouter:
    """Return the routes for models and model providers."""
    router = APIRouter(prefix=_MODELS, route_class=JsonRoute, tags=["nemo"], responses=parts.REFUSED)

    @router.post("/models", status_code=201, response_model=parts.Described, responses=parts.TAKEN)
    async def create_model(workspace: parts.Namespace, body: StoredModelIn, request: Request) -> Response:
        """Create a model: jobs refer to it as workspace/name."""
        caller = caller_of(request.scope)
        content = body.model_dump(mode="json", exclude_unset=True)
        with AuditedCall(access, caller, "nemo.models.create"):
            made = await models.create(EntityKind.MODEL, caller.workspace, workspace, body.name, content)
        return json_response(made, 201)

    @router.post("/providers", status_code=201, response_model=parts.Described, responses=parts.TAKEN)
    async def create_provider(workspace: parts.Namespace, body: ProviderIn, request: Request) -> Response:
        """Create a model provider: the address of an OpenAI-compatible API."""
        caller = caller_of(request.scope)
        content = body.model_dump(mode="json", exclude_unset=True)
        with AuditedCall(access, caller, "nemo.providers.create"):
            made = await models.create(EntityKind.PROVIDER, caller.workspace, workspace, body.name, content)
        return json_response(made, 201)

    @router.patch("/models/{name}", response_model=parts.Described, responses=parts.MISSING)
    async def change_model(workspace: parts.Namespace, name: parts.Name, body: ChangesIn, request: Request) -> Response:
        """Change a model."""
        return await _changed(models, access, request, (EntityKind.MODEL, workspace, name), body)

    @router.put("/providers/{name}", response_model=parts.Described, responses=parts.MISSING)
    async def change_provider(
        workspace: parts.Namespace, name: parts.Name, body: ChangesIn, request: Request
    ) -> Response:
        """Change a model provider."""
        return await _changed(models, access, request, (EntityKind.PROVIDER, workspace, name), body)

    for kind, segment in ((EntityKind.MODEL, "models"), (EntityKind.PROVIDER, "providers")):
        _add_reading(router, models, access, kind, segment)
    return router


async def _changed(
    models: NemoModels, access: Access, request: Request, which: tuple[EntityKind, str, str], body: ChangesIn
) -> Response:
    caller = caller_of(request.scope)
    kind, workspace, name = which
    changes = {key: value for key, value in body.model_dump(mode="json", exclude_unset=True).items() if key != "name"}
    with AuditedCall(access, caller, f"nemo.{'models' if kind is EntityKind.MODEL else 'providers'}.change"):
        return json_response(await models.change(kind, caller.workspace, workspace, name, changes))


def _add_reading(router: APIRouter, models: NemoModels, access: Access, kind: EntityKind, segment: str) -> None:
    @router.get(
        f"/{segment}",
        response_model=parts.Described,
        name=f"list_{segment}",
    )
    async def all_of_kind(
        workspace: parts.Namespace,
        request: Request,
        number: parts.PageNumber = 1,
        page_size: parts.PageSize = 100,
        sort: parts.Sort = Order.CREATED_DOWN,
        keep: Filter | None = _FILTERS[kind],
    ) -> Response:
        """List models or model providers."""
        fetch = partial(models.all, kind, parts.workspace_of(request), workspace, order=sort)
        return await large_json_response(await filtered(fetch, keep, number=number, size=page_size))

    @router.get(f"/{segment}/{{name}}", response_model=parts.Described, responses=parts.MISSING, name=f"show_{segment}")
    async def show(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Show a model or a model provider."""
        return json_response(await models.get(kind, parts.workspace_of(request), workspace, name))

    @router.delete(f"/{segment}/{{name}}", status_code=204, responses=parts.MISSING, name=f"delete_{segment}")
    async def delete(workspace: parts.Namespace, name: parts.Name, request: Request) -> Response:
        """Delete a model or a model provider."""
        with AuditedCall(access, caller_of(request.scope), f"nemo.{segment}.delete") as caller:
            await models.delete(kind, caller.workspace, workspace, name)
        return Response(status_code=204)
