"""Routes that read and return JSON. A body is refused if it needs too much memory once it is decoded.

A body of 32 MB may hold ten million small objects. Each takes about sixty bytes in Python, or hundreds if it is a row,
and each may cause an error message. So the host estimates the memory before it decodes a body, and counts the rows
before it validates them.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

from fastapi import Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from evaluator_host.engine.system.memory import Reservation
from evaluator_host.engine.system.turns import Turns
from evaluator_host.platform.http.auth.access import caller_of
from evaluator_host.platform.http.error_responses import invalid_request
from evaluator_host.platform.http.middleware import BODY_COPIES, headers_of, memory_of
from evaluator_host.platform.plugins import row_document
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.json_texts import Octets
from evaluator_host.types.json_values import (
    LARGE_BYTES,
    InvalidJson,
    decode_given,
    encode_json,
    is_large,
    memory_bytes,
    require_single_keys,
)
from evaluator_host.types.names import what_was_meant

_Part = TypeVar("_Part")

_OWN: Final = "/v1/"  # prefix of all paths of the host's own API
_NAMED: Final = 50  # maximum number of unknown parameters that an error names
_LETTERS: Final = 80  # maximum number of characters of each name that an error shows
# every Content-Type that stands for JSON
_JSON: Final = re.compile(r"\s*application/(?:[^/;\s]*\+)?json\s*(?:;.*)?", re.IGNORECASE)
_SHORT_LIST_BYTES: Final = 2 << 20  # memory to reserve for a list before its size is known; most lists need no more
_LONG_LIST_BYTES: Final = 24 << 20  # memory of a list sent in parts: objects, decoded objects and text of one part
DECODED_MB: Final = 128  # memory limit of a decoded body, in MB: a million small objects, which take 25 ms to free


class JsonRequest(Request):
    """A request whose body is decoded by orjson."""

    model: type[BaseModel] | None = None  # model of the body; None for a body without one

    async def body(self) -> bytes:
        """Return the whole body. A large body may be a `memoryview` (see `arrived`).

        Raises:
          InvalidRequest: the body is compressed, so that its size would be known only after it has filled the memory.
        """
        encoding = headers_of(self.scope).get(b"content-encoding", "identity").lower()
        if encoding != "identity":
            raise InvalidRequest(f"Content-Encoding {encoding[:40]!r} is not accepted; send uncompressed JSON")
        return await self.arrived()  # type: ignore[return-value] # only `decoded` reads it

    async def arrived(self) -> Octets:
        """Return the whole body as it was received; its Content-Encoding is not checked.

        This does the same as Starlette's `body`, without its asynchronous generator, which the event loop would have to
        track.
        """
        if not hasattr(self, "_body"):
            chunks, more = [], True
            while more:
                message = await self.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                chunks.append(message.get("body", b""))
                more = message.get("more_body", False)
            self._body = b"".join(chunks)
        return self._body

    async def json(self) -> Any:
        """Return the decoded body; integers beyond 64 bits stay exact.

        Raises:
          InvalidRequest: the body has too many values, or more rows than one request may have.
        """
        return await self.decoded(await self.body())

    async def decoded(self, body: bytes) -> Any:
        """Return a body as JSON values. A large body is decoded in a thread, and returned as the route's model.

        Raises:
          InvalidRequest: the body has too many values or rows, or does not fit the model.
        """
        memory = memory_of(self.scope)
        if not is_large(body):
            memory.reserve(BODY_COPIES * len(body) + weigh(body))
            return self._read(body)
        turns: Turns = self.app.state.reading
        async with turns.turn(caller_of(self.scope).workspace):
            memory.reserve(BODY_COPIES * len(body) + await asyncio.to_thread(weigh, body))
            return await asyncio.to_thread(self._read_large, body)

    def _read(self, body: bytes) -> Any:
        try:
            value = decode_given(body)
            require_single_keys(body, value)
        except InvalidJson as error:
            raise json.JSONDecodeError(str(error), "", 0) from error
        require_few_rows(value, self.app.state.max_rows)
        return value

    def _read_large(self, body: bytes) -> Any:
        value = self._read(body)
        try:
            return value if self.model is None else self.model.model_validate(value)
        except ValidationError as error:
            raise invalid_request(error.errors(include_url=False, include_input=False)) from error


class LateRoute(APIRoute):
    """A route that FastAPI builds when it is first called. Building all routes takes 0.4 s of processor time.

    Responses are not checked against models, because handlers build responses from models. The OpenAPI document
    contains the models (see `DescribedApi`).
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        Route.__init__(self, path, endpoint, name=options["name"], include_in_schema=options.pop("include_in_schema"))
        self.methods = set(options["methods"])  # without this, Starlette would add HEAD
        self.options = options
        self._is_built = False

    def build(self) -> None:
        """Build the route, unless it is already built."""
        if not self._is_built:
            options = self.options | {"response_model": None, "responses": None}
            super().__init__(self.path, self.endpoint, include_in_schema=self.include_in_schema, **options)
            self._is_built = True

    @cached_property
    def query_names(self) -> list[str]:
        """Return the names of the route's query parameters. `build` must have been called."""
        return [one.alias for one in get_flat_params(self.dependant) if isinstance(one.field_info, Query)]

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or raise an error as `begin` does."""
        self.begin(scope)
        await super().handle(scope, receive, send)

    def begin(self, scope: Scope) -> None:
        """Build the route, and check the query of a request.

        Raises:
          InvalidRequest: the route belongs to the host's own API, and the request has a query parameter unknown to it.
        """
        if not self._is_built:
            self.build()
        if scope["query_string"] and self.path.startswith(_OWN) and scope["method"] in (self.methods or ()):
            require_known_parameters(QueryParams(scope["query_string"]), self.query_names)


class JsonRoute(LateRoute):
    """A route that reads bodies with `JsonRequest`."""

    request_class = JsonRequest

    @cached_property
    def model(self) -> type[BaseModel] | None:
        """Return the model of the body; None for a route without a body. `build` must have been called."""
        kind = None if self.body_field is None else self.body_field.field_info.annotation
        return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the route's handler, wrapped to receive a `JsonRequest`."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(self._request(request.scope, request.receive))

        return handle

    def _request(self, scope: Scope, receive: Receive) -> JsonRequest:
        request = self.request_class(scope, receive)
        request.model = self.model
        return request


class BodyRoute(JsonRoute):
    """A route for a function that takes only `body`, which is a model, and `request`.

    It calls the function without FastAPI's steps for other parameters, dependencies and files. For each call, these
    steps take as much processor time as evaluating a row in Python.
    """

    def build(self) -> None:
        """Build the route, unless it is already built."""
        if not self._is_built:
            super().build()
            self.app = self._answer

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose method and path match this route; raise the same errors as `begin`."""
        self.begin(scope)
        await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = self._request(scope, receive)
        response = await self.endpoint(body=await self._body(request), request=request)
        await response(scope, receive, send)

    async def _body(self, request: JsonRequest) -> BaseModel:
        """Return the body as the route's model.

        Raises:
          InvalidRequest: the body is missing, not JSON, or does not fit the model; the error names the faulty fields.
        """
        assert self.model is not None  # noqa: S101 - see the class
        given: Any = await request.body()
        if not given:
            raise invalid_request([{"type": "missing", "loc": ("body",), "msg": "Field required"}])
        try:
            if _JSON.fullmatch(headers_of(request.scope).get(b"content-type", "")) is not None:
                given = await request.decoded(given)
            # FastAPI validates in the same way, so the errors are the same
            return self.model.model_validate(given, from_attributes=True)
        except json.JSONDecodeError as error:
            fault = {"type": "json_invalid", "loc": ("body",), "msg": "", "ctx": {"error": error.msg}}
            raise invalid_request([fault]) from error
        except ValidationError as error:
            raise invalid_request(error.errors(include_url=False)) from error


def require_known_parameters(given: Iterable[str], known: Sequence[str]) -> None:
    """Check that a query has only parameters that its route has.

    Raises:
      InvalidRequest: the query has other parameters. The error names the first 50 of them, each with the most similar
        known name.
    """
    takes = f"this route accepts {', '.join(known)}" if known else "this route does not accept query parameters"
    unknown = [name for name in given if name not in known][:_NAMED]
    if unknown:
        problems = [
            Problem(name[:_LETTERS], "unknown query parameter", what_was_meant(name, known, otherwise=takes))
            for name in unknown
        ]
        named = ", ".join(one.field for one in problems[:3])
        raise InvalidRequest(f"the request is invalid: {named}", problems=tuple(problems))


def require_few_rows(body: Any, ceiling: int) -> None:
    """Check that the body of a batch or a job has at most `ceiling` rows; other bodies pass.

    Raises:
      InvalidRequest: the body has more rows.
    """
    if not isinstance(body, dict):
        return
    if isinstance(rows := body.get("rows"), list):
        require_rows(len(rows), ceiling)
    dataset = body.get("dataset")
    if isinstance(dataset, dict) and (brought := _row_count(dataset)) > ceiling:
        message = f"{brought} rows are too many for the body of a job, which may have at most {ceiling}"
        hint = "upload them as a data set (POST /v1/datasets, client.datasets.upload) and give its name"
        raise InvalidRequest(
            "the body of the job has too many rows", problems=(Problem("dataset.rows", message, hint),)
        )


def _row_count(dataset: dict[str, Any]) -> int:
    """Return the number of rows, or test cases, in the body of a job."""
    rows = dataset.get("rows")
    document = row_document(dataset)
    return max(len(rows) if isinstance(rows, list) else 0, document.row_count(dataset) if document is not None else 0)


def require_rows(rows: int, ceiling: int) -> None:
    """Check that a batch does not have too many rows.

    Raises:
      InvalidRequest: the batch has more than `ceiling` rows.
    """
    if rows > ceiling:
        problem = Problem("rows", f"{rows} rows are more than this host's limit of {ceiling}", "send fewer per request")
        raise InvalidRequest("the batch has too many rows", problems=(problem,))


def weigh(body: bytes) -> int:
    """Estimate how many bytes of memory a body takes once it is decoded.

    Raises:
      InvalidRequest: the estimate is over `DECODED_MB`.
    """
    weight = memory_bytes(body)
    if weight > DECODED_MB << 20:
        raise too_many_values(weight)
    return weight


def too_many_values(weight: int) -> InvalidRequest:
    """Return the error for a body that takes too much memory once it is decoded: `weight` bytes."""
    return InvalidRequest(
        f"the body has so many values that they would take about {weight >> 20} MB of memory; send fewer"
    )


def json_response(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Encode a value as a JSON response; dataclasses become objects, integers of any size stay exact."""
    return Response(encode_json(value), status, headers, media_type="application/json")


async def json_list(
    parts: AsyncIterator[_Part], shown: Callable[[_Part], list[Any]], *, memory: Reservation
) -> Response:
    """Return a JSON array of the items that `shown` makes from each part, and send it while the parts are read.

    Each part is converted and encoded in a thread.

    Raises:
      Busy: `memory` has no room for the list. A client that stops reading keeps a part in memory.
    """
    memory.reserve(_SHORT_LIST_BYTES)

    async def texts() -> AsyncIterator[bytes]:
        mark = b"["
        async for part in parts:
            items = (await asyncio.to_thread(lambda part: encode_json(shown(part)), part))[1:-1]
            del part
            if items:
                yield mark + items
                mark = b","
        yield b"]" if mark == b"," else b"[]"

    arrived = texts()
    # read the first part now, because an error can become an error response only before anything is sent
    begun, ended = await anext(arrived), False
    while not ended and len(begun) <= LARGE_BYTES:
        following = await anext(arrived, b"")
        begun, ended = begun + following, not following
    if not ended:
        memory.reserve(_LONG_LIST_BYTES)

    held = [begun]
    del begun

    async def whole() -> AsyncIterator[bytes]:
        yield held.pop()  # `pop` frees the memory of this text while later texts are sent
        async for text in arrived:
            yield text

    return StreamingResponse(whole(), media_type="application/json")


async def large_json_response(value: object) -> Response:
    """Return a value as a JSON response; encode it in a thread, because it may be large."""
    return await asyncio.to_thread(json_response, value)
