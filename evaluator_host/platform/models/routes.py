"""Routes of registered models, of their use by day, and of recorded answers. No route returns a key."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import MISSING, fields
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field, SecretStr

from evaluator_host.platform.http.auth.access import Access, AuditedCall, CallerOf, WorkspaceOf
from evaluator_host.platform.http.auth.keyring import KeyHolder
from evaluator_host.platform.http.bodies import Body, example
from evaluator_host.platform.http.deletion import USED, ForceDelete
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute, json_response
from evaluator_host.platform.http.middleware import memory_of
from evaluator_host.platform.models.service import ModelService
from evaluator_host.platform.models.table import PART_BYTES
from evaluator_host.platform.users import Users
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import ModelKind
from evaluator_host.types.line_buffer import LineBuffer
from evaluator_host.types.models import DayUsage, ModelHosts, ModelTest, RecordedAnswers, RegisteredModel

_MISSING = describe_error(404, "There is no such model.")
_REFUSED = {
    **describe_error(404, "There is no such model or secret."),
    **describe_error(409, "There is already a model of that name."),
    **describe_error(422, "A field is invalid, or the operator does not allow models on that host."),
}
_NOT_ALLOWED = describe_error(404, "The host was not allowed with `allow_host`.")
_NO_ANSWER = describe_error(422, "A line is not a recorded answer.")
_FIELDS: Final = {one.name for one in fields(RegisteredModel)}
_DEFAULTS: Final = {one.name: one.default for one in fields(RegisteredModel) if one.default is not MISSING}
_LINE_BYTES: Final = 4 << 20
# bytes of memory that an export takes: a part and a line that begins in it, with up to four bytes for each character
_EXPORT_BYTES: Final = 4 * (PART_BYTES + _LINE_BYTES)
_LINES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/x-ndjson": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_EXPORT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/x-ndjson": {}}, "description": "One recorded answer per line."}
}


class ModelChangeIn(Body):
    """Body of `PATCH /v1/models/{name}`: the fields to change. null gives a field its default."""

    model_config = example(input_price=0.1, output_price=0.4)

    url: str = Field(  # the schema shows no default for this field, because generated clients would send the default
        default_factory=str, min_length=1, max_length=2000, description="Base URL of the API: https://api.openai.com/v1"
    )
    kind: ModelKind | None = Field(None, description="Kind of API. Default: openai, also for compatible APIs.")
    model: str | None = Field(
        None, min_length=1, max_length=200, description="Name of the model at the provider. Default: `name`."
    )
    secret: str | None = Field(
        None, min_length=1, max_length=63, description="Name of the secret with its API key. Default: no key."
    )
    input_price: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Price of a million tokens of requests."
    )
    output_price: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Price of a million tokens of answers."
    )
    cached_price: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="Price of a million tokens of requests that the provider read from its cache. Default: "
        "`input_price`.",
    )
    timeout_s: float | None = Field(
        None, gt=0, le=3600, allow_inf_nan=False, description="Seconds to wait for one answer. Default: 60."
    )
    retries: int | None = Field(None, ge=0, le=10, description="Retries after a failed request. Default: 2.")
    allow_host: bool = Field(
        default=False,
        description="Let evaluators call the host in the URL. Works only if GET /v1/model-hosts returns `may_allow`: "
        "true.",
    )

    def to_fields(self) -> dict[str, Any]:
        """Return the fields of a `RegisteredModel` that are set in the request."""
        given = {name: value for name, value in dict(self).items() if name in self.model_fields_set & _FIELDS}
        return {**given, **{name: _DEFAULTS[name] for name, value in given.items() if value is None}}


class ModelIn(ModelChangeIn):
    """Body of `POST /v1/models`: a model that evaluators of the workspace may be granted."""

    model_config = example(
        name="judge-small",
        url="https://api.openai.com/v1",
        model="gpt-4o-mini",
        secret="openai",  # noqa: S106 - its name
        input_price=0.15,
        output_price=0.6,
    )

    name: str = Field(min_length=1, max_length=63, description="Use letters, digits, dots, dashes and underscores.")
    url: str = Field(min_length=1, max_length=2000, description="Base URL of the API: https://api.openai.com/v1")
    key: SecretStr | None = Field(
        None,
        description="API key, in place of `secret`. It is stored as a secret with the model's name, and no route "
        "returns it.",
    )


def models_api(service: ModelService, users: Users, access: Access) -> APIRouter:
    """Return the routes under `/v1/models`. A caller sees the models of its workspace and the operator's models."""
    router = APIRouter(prefix="/v1/models", route_class=JsonRoute, tags=["models"])

    @asynccontextmanager
    async def allowed(asked: bool, url: str, caller: KeyHolder) -> AsyncIterator[None]:  # noqa: FBT001 - a field of the body
        """If `asked`, allow a URL's host, and forbid the host again if the block fails."""
        is_new, hosts = False, service.directory.hosts
        if asked:
            with AuditedCall(access, caller, "models.allow_host"):
                is_new = await hosts.allow(url)
        async with hosts.kept_if_done(url, is_new=is_new):
            yield

    @router.get("", response_model=list[RegisteredModel])
    async def every(workspace: WorkspaceOf) -> Response:
        """List the models that evaluators may be granted: those of the operator and of the workspace."""
        return json_response(await service.directory.list(workspace))

    @router.post("", status_code=201, response_model=RegisteredModel, responses=_REFUSED)
    async def add(body: ModelIn, caller: CallerOf) -> Response:
        """Register a model. The operator decides on which hosts evaluators may call models."""
        key = body.key.get_secret_value() if body.key is not None else None
        async with allowed(body.allow_host, body.url, caller):
            with AuditedCall(access, caller, "models.create", body.name):
                added = await service.add_model(caller.workspace, RegisteredModel(**body.to_fields()), key=key)
        return json_response(added, 201, {"Location": f"/v1/models/{added.name}"})

    @router.get("/{name}", response_model=RegisteredModel, responses=_MISSING)
    async def show(name: str, workspace: WorkspaceOf) -> Response:
        """Show a model, without its key."""
        return json_response(await service.get_model(workspace, name))

    @router.patch("/{name}", response_model=RegisteredModel, responses=_REFUSED)
    async def change(name: str, body: ModelChangeIn, caller: CallerOf) -> Response:
        """Change fields of a workspace's model.

        The changes apply from the model's next request. null gives a field its default.
        """
        url = body.url
        if body.allow_host and not url:
            url = (await service.directory.get_own(caller.workspace, name)).url
        async with allowed(body.allow_host, url or "", caller):
            with AuditedCall(access, caller, "models.update", name):
                changed = await service.directory.change(caller.workspace, name, body.to_fields())
        return json_response(changed)

    @router.post("/{name}/test", response_model=ModelTest, responses=_MISSING)
    async def test(name: str, caller: CallerOf) -> Response:
        """Ask a model one short question. The response has status 200 whether the model works or not."""
        with AuditedCall(access, caller, "models.test", name):
            await service.get_model(caller.workspace, name)
            outcome = await service.test_model(caller.workspace, name)
        return json_response(outcome)

    @router.delete("/{name}", status_code=204, response_class=Response, responses={**_MISSING, **USED})
    async def delete(name: str, caller: CallerOf, *, force: ForceDelete = False) -> None:
        """Remove a model of the workspace. Evaluators that were granted it are refused from then on."""
        with AuditedCall(access, caller, "models.delete", name):
            await users.require_unused(caller.workspace, "model", name, service.directory.get_own, force=force)
            await service.directory.delete(caller.workspace, name)

    return router


def model_answers_api(service: ModelService, access: Access) -> APIRouter:
    """Return the routes for model hosts, for the use of models by day, and for recorded answers."""
    router = APIRouter(route_class=JsonRoute, tags=["models"])

    @router.get("/v1/model-hosts", response_model=ModelHosts)
    async def hosts(_: WorkspaceOf) -> Response:
        """Show on which hosts evaluators may call models, and whether more may be allowed with `allow_host`."""
        return json_response(await service.directory.hosts.show())

    @router.delete("/v1/model-hosts/{host}", status_code=204, response_class=Response, responses=_NOT_ALLOWED)
    async def forbid(host: str, caller: CallerOf) -> None:
        """Forbid a host that was allowed with `allow_host`."""
        with AuditedCall(access, caller, "models.forbid_host", host):
            await service.store.forbid_host(host)

    @router.get("/v1/model-usage", response_model=list[DayUsage])
    async def usage(
        workspace: WorkspaceOf,
        days: Annotated[int, Query(ge=1, le=3660, description="Number of days, today included.")] = 30,
    ) -> Response:
        """Show the workspace's use of each model by day (UTC), the newest day first."""
        return json_response(await service.list_usage(workspace, days=days))

    @router.get("/v1/model-answers", response_model=RecordedAnswers)
    async def count(workspace: WorkspaceOf) -> Response:
        """Show how many answers of models are recorded."""
        return json_response(RecordedAnswers(*await service.store.count_answers(workspace)))

    @router.get("/v1/model-answers/export", response_class=StreamingResponse, responses=_EXPORT)
    async def export(request: Request, workspace: WorkspaceOf) -> Response:
        """Download the recorded answers as JSONL."""
        memory_of(request.scope).reserve(_EXPORT_BYTES)
        lines = service.recordings.export(workspace)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    @router.post("/v1/model-answers/import", response_model=RecordedAnswers, openapi_extra=_LINES, responses=_NO_ANSWER)
    async def import_(request: Request, caller: CallerOf) -> Response:
        """Record the answers in an export; they replace recorded answers to the same requests."""
        with AuditedCall(access, caller, "models.import"):
            await service.recordings.import_lines(caller.workspace, _lines(request.stream()))
        return json_response(RecordedAnswers(*await service.store.count_answers(caller.workspace)))

    @router.delete("/v1/model-answers", status_code=204, response_class=Response)
    async def delete(
        caller: CallerOf, model: Annotated[str | None, Query(description="Only recorded answers of this model.")] = None
    ) -> None:
        """Delete the recorded answers of the workspace."""
        with AuditedCall(access, caller, "models.delete_answers", model):
            await service.store.delete_answers(caller.workspace, model=model)

    return router


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    buffer = LineBuffer()
    async for chunk in chunks:
        lines = buffer.feed(chunk)
        if len(buffer.rest) > _LINE_BYTES:
            raise InvalidRequest(f"a line is longer than {_LINE_BYTES >> 20} MB")
        # drop blank lines here, because one part may have a quarter of a million of them
        for line in filter(bytes.strip, lines):
            yield line
    yield bytes(buffer.rest)
