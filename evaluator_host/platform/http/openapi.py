"""Builds the OpenAPI document. Adds operation names, short schema names, key requirements and error responses."""

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from evaluator_host.platform.http.error_responses import REFERENCE, ProblemBody, describe_error
from evaluator_host.platform.http.json_routes import BodyRoute, LateRoute
from evaluator_host.types.errors import NotFound

_WORDS: Final = {
    "POST /v1/evaluate/batch": "evaluateBatch",
    "POST /v1/evaluators/migrate": "migrateEvaluators",
    "POST /v1/environments": "buildEnvironment",
    "POST /v1/datasets": "uploadDataset",
    "PUT /v1/secrets/{name}": "setSecret",
    "POST /v1/data": "sendDataFile",
    "GET /v1/data": "listDataFiles",
    "GET /v1/data/{name}": "getDataFile",
    "DELETE /v1/data/{name}": "deleteDataFile",
    "POST /v1/models": "addModel",
    "POST /v1/import": "importEvaluators",
    "POST /v1/run": "runProgram",
    "POST /v1/schedules/{name}/run": "runSchedule",
    "POST /v1/label-queues/{name}/next": "takeLabelRow",
    "GET /v1/datasets/{name}/search": "searchDataset",
    "PATCH /v1/datasets/{name}": "editDataset",
    "GET /v1/datasets/{name}/file": "downloadDataset",
    "GET /v1/environments/{digest}/events": "watchEnvironment",
    "GET /v1/jobs/{job_id}/events": "watchJob",
    "PATCH /v1/evaluators/{name}": "describeEvaluator",
    "PATCH /v1/jobs/{job_id}": "renameJob",
    "GET /v1/jobs/{job_id}/results": "getJobResults",
    "GET /v1/jobs/{job_id}/rows.{file_format}": "downloadJobRows",
    "GET /v1/jobs/{job_id}/compare/{other_id}": "compareJobs",
    "GET /v1/jobs/{job_id}/compare/{other_id}/pairs": "pairJobRows",
    "GET /v1/model-answers/export": "exportModelAnswers",
    "POST /v1/model-answers/import": "importModelAnswers",
    "DELETE /v1/model-answers": "deleteModelAnswers",
    "GET /v1/model-answers": "countModelAnswers",
    "POST /v1/evaluators/{name}/traces": "sendTraces",
}
"""Operations whose names do not follow from method and path."""

_VERBS: Final = {"get": "get", "post": "create", "put": "update", "patch": "change", "delete": "delete"}
_OPEN: Final = ("/healthz", "/readyz")
_OWN: Final = "/v1/"
_SCHEMA: Final = re.compile(r'"#/components/schemas/([^"]+)"')
_KEYS: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key from `evaluator-host keys create`. A host without keys needs none.",
}


class DirectRoutes:
    """ASGI middleware that calls some routes without the layers below it.

    `routes` have fixed paths, accept only POST, and raise only errors that `AccessMiddleware` answers.
    """

    def __init__(self, app: ASGIApp, routes: Iterable[BodyRoute]) -> None:
        self._app = app
        self._routes = {route.path: route for route in routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the route of this path, or pass the request on."""
        route = self._routes.get(scope["path"]) if scope.get("method") == "POST" else None
        if route is None:
            await self._app(scope, receive, send)
        else:
            scope["route"] = route
            await route.answer(scope, receive, send)


class DescribedApi(FastAPI):
    """A FastAPI application that builds its OpenAPI document at the first request, in a thread, in about a second."""

    def __init__(self, **options: Any) -> None:
        # the host has its own metrics; without this, FastAPI looks for OpenTelemetry at each request
        off: Any = {"tracing": False, "metrics": False, "logs": False}
        super().__init__(**options, openapi_url=None, telemetry=off)
        self._describing = Lock()
        self._of_vendors: dict[str, frozenset[str]] = {}
        self.add_route("/openapi.json", self._document, include_in_schema=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, without FastAPI's own steps for telemetry and for a path before all routes."""
        scope["app"] = self
        if self.middleware_stack is None:
            self.middleware_stack = self.build_middleware_stack()
        await self.middleware_stack(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        """Return the application with its middleware, but not the FastAPI layers that `AccessMiddleware` replaces."""
        app: ASGIApp = AsyncExitStackMiddleware(self.router)
        app = ExceptionMiddleware(app, handlers=self.exception_handlers)
        app = DirectRoutes(app, (route for route in self.routes if isinstance(route, BodyRoute)))
        for kind, positional, named in reversed(self.user_middleware):
            app = kind(app, *positional, **named)
        return app

    def add_resource(self, name: str, routes: Iterable[BaseRoute]) -> None:
        """Add the routes of a resource. Routes that imitate a vendor's API have a separate document."""
        added = list(routes)
        self.router.routes += added
        paths = frozenset(
            re.sub(r":path(?=})", "", route.path)
            for route in added
            if isinstance(route, LateRoute) and route.include_in_schema and not route.path.startswith(_OWN)
        )
        if paths:
            self._of_vendors[name] = paths

    async def _document(self, request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(self.document, request.query_params.get("of")))

    def document(self, vendor: str | None = None) -> dict[str, Any]:
        """Return the document of the host's own routes, or of the routes that imitate a vendor's API.

        Raises:
          NotFound: no vendor with this name has routes.
        """
        if vendor is None:
            left_out = frozenset().union(*self._of_vendors.values())
            own = _part(self.openapi(), lambda path: path not in left_out)
            return {**own, "x-documents": sorted(self._of_vendors)}
        if vendor not in self._of_vendors:
            known = (
                f"there are documents for {', '.join(sorted(self._of_vendors))}"
                if self._of_vendors
                else "there are none"
            )
            raise NotFound(f"there is no OpenAPI document for the vendor {vendor[:40]}; {known}")
        return _part(self.openapi(), self._of_vendors[vendor].__contains__)

    def openapi(self) -> dict[str, Any]:
        """Return the document of all routes."""
        with self._describing:
            if self.openapi_schema is None:
                late = [route for route in self.routes if isinstance(route, LateRoute) and route.include_in_schema]
                document = get_openapi(
                    title=self.title,
                    version=self.version,
                    description=self.description,
                    license_info=self.license_info,
                    routes=[APIRoute(route.path, route.endpoint, **route.options) for route in late],
                )
                self.openapi_schema = _completed(document)
            return self.openapi_schema


def _part(document: dict[str, Any], is_of: Callable[[str], bool]) -> dict[str, Any]:
    """Return a document with only the paths that `is_of` selects, and the schemas that these paths need."""
    paths = {path: methods for path, methods in document["paths"].items() if is_of(path)}
    schemas = document["components"]["schemas"]
    needed: dict[str, Any] = {}
    left = _SCHEMA.findall(json.dumps(paths))
    while left:
        name = left.pop()
        if name not in needed:
            needed[name] = schemas[name]
            left += _SCHEMA.findall(json.dumps(schemas[name]))
    components = document["components"] | {"schemas": {name: schemas[name] for name in schemas if name in needed}}
    return {**document, "paths": paths, "components": components}


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI document with operation ids, short names, security and errors, for client generators."""
    body = ProblemBody.model_json_schema(ref_template=REFERENCE)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas.update({**body.pop("$defs"), ProblemBody.__name__: body})
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own schemas, which no response here uses
        schemas.pop(name, None)
    for responses in (route["responses"] for routes in document["paths"].values() for route in routes.values()):
        if "application/json" in responses.get("422", {}).get("content", ()):
            responses.update(describe_error("422", "The request is invalid; the error names the faulty fields."))
    document = _with_short_names(document)
    document["components"]["securitySchemes"] = {"key": _KEYS}
    document["security"] = [{}, {"key": []}]
    refused = {
        **describe_error("401", "The host needs a key, and the request has no valid key."),
        **describe_error("403", "The Origin or Host is not allowed."),
        **describe_error("429", "The key has sent too many requests, or too many calls are waiting; see Retry-After."),
    }
    names: set[str] = set()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = _operation(method, path)
            while name in names:
                name += "_"
            names.add(name)
            operation["operationId"] = name
            if path in _OPEN:
                operation["security"] = []
            else:
                operation["responses"] = {**refused, **operation["responses"]}
            _describe_files(operation["responses"].values())
    return document


def _describe_files(responses: Iterable[dict[str, Any]]) -> None:
    """Add a schema for files and event streams, because generated clients leave out responses without a schema."""
    for response in responses:
        for media_type, content in response.get("content", {}).items():
            if media_type == "text/event-stream":
                content.setdefault("schema", {"type": "string"})
            elif not content:
                content["schema"] = {"type": "string", "format": "binary"}


def _operation(method: str, path: str) -> str:
    """Return the name of an operation: `listJobs`, `createJob`, `getJobRow`, `pauseJob`."""
    if (known := _WORDS.get(f"{method.upper()} {path}")) is not None:
        return known
    parts = [part for part in path.removeprefix("/v1").split("/") if part]
    fixed = [part for part in parts if not part.startswith("{")]
    is_item = bool(parts) and parts[-1].startswith("{")
    names = [_camel(part.partition(".")[0]) for part in fixed]
    owners = [_singular(name) for name in names[:-1]]
    last = names[-1]
    if method == "post" and len(fixed) > 1 and len(parts) > 2 and not is_item and path.startswith("/v1"):
        return last[:1].lower() + last[1:] + "".join(owners)  # the path ends in a verb, as in pauseJob
    if method == "post" and not is_item and not last.endswith("s"):
        return last[:1].lower() + last[1:] + "".join(owners)  # the path ends in a singular word, as in estimateJob
    if is_item or method in ("put", "patch"):
        return _VERBS[method] + "".join(owners) + _singular(last)
    if method == "get":
        return ("list" if last.endswith("s") else "get") + "".join(owners) + last
    return _VERBS[method] + "".join(owners) + _singular(last)


def _camel(part: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", part))


def _singular(name: str) -> str:
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def _with_short_names(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with `JobIn` in place of `evaluator_host__…__jobs__JobIn`; equal names keep a prefix."""
    text = json.dumps(document)
    taken = set(document["components"]["schemas"])
    for name in sorted(one for one in taken if "__" in one):
        *path, short = name.split("__")
        if "vendors" in path:
            vendor = path[path.index("vendors") + 1].capitalize()
            short = vendor + short if vendor + short not in taken else vendor + path[-1].capitalize() + short
        taken.add(short)
        text = text.replace(f'"{name}"', f'"{short}"').replace(f'schemas/{name}"', f'schemas/{short}"')
    renamed: dict[str, Any] = json.loads(text)
    for name, schema in renamed["components"]["schemas"].items():
        schema["title"] = name  # client generators name classes after the title
    return renamed
