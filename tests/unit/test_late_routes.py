"""A route is built only when it is first called, but the OpenAPI document describes all routes completely."""

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from evaluator_host.engine.config.settings import Settings
from evaluator_host.platform.http.error_responses import install_error_handlers
from evaluator_host.platform.http.json_routes import BodyRoute, JsonRoute, LateRoute
from evaluator_host.platform.http.middleware import AccessMiddleware
from evaluator_host.platform.http.openapi import DescribedApi
from evaluator_host.server.app import describe_app


class Asked(BaseModel):
    text: str


class Answered(BaseModel):
    words: int


def small_api() -> DescribedApi:
    app, router = DescribedApi(title="Words", version="1"), APIRouter(route_class=LateRoute, tags=["words"])
    install_error_handlers(app)

    @router.get("/v1/words/{text}", response_model=Answered, responses={404: {"model": Asked}})
    async def count(text: str, least: int = 0) -> Response:
        return Response(f'{{"words": {max(least, len(text.split()))}}}', media_type="application/json")

    @router.get("/v1/state")
    async def state(_: Request) -> dict[str, str]:
        return {"status": "ok"}

    app.router.routes += router.routes
    return app


def client(app: DescribedApi) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")


def is_built(route: Any) -> bool:
    return hasattr(route, "dependant")


def test_a_start_builds_no_route() -> None:
    routes = [route for route in describe_app(Settings()).routes if isinstance(route, APIRoute)]
    assert len(routes) > 200
    assert [route for route in routes if not isinstance(route, LateRoute)] == []
    assert [route.path for route in routes if is_built(route)] == []


def test_readers_of_json_are_late() -> None:
    assert issubclass(JsonRoute, LateRoute)


async def test_a_call_builds_its_route_alone() -> None:
    app = small_api()
    async with client(app) as calls:
        for _ in range(2):
            answer = await calls.get("/v1/words/a%20b", params={"least": 1})
            assert (answer.status_code, answer.json()) == (200, {"words": 2})
    assert [route.path for route in app.routes if is_built(route)] == ["/v1/words/{text}"]


async def test_a_late_route_checks_what_it_is_given() -> None:
    async with client(small_api()) as calls:
        assert (await calls.get("/v1/words/a", params={"least": "x"})).status_code == 422
        assert (await calls.post("/v1/words/a")).status_code == 405
        assert (await calls.head("/v1/words/a")).status_code == 405
        assert (await calls.get("/v1/state")).text == '{"status":"ok"}'


async def test_a_parameter_that_a_route_does_not_have_is_refused_by_name() -> None:
    async with client(small_api()) as calls:
        asked = [
            await calls.get(f"/v1/{path}")
            for path in (
                "words/a?last=1&least=2",
                "words/a?group_by=topic",
                "state?now=",
                "words/a?" + "&".join(map("n{}".format, range(60))),
            )
        ]
        assert {one.status_code for one in asked} == {422}
        (near,), (far,), (none,), many = (one.json()["errors"] for one in asked)
        assert near == {"field": "last", "message": "unknown query parameter", "hint": "did you mean least?"}
        assert (far["field"], far["hint"]) == ("group_by", "this route accepts least")
        assert none["hint"] == "this route does not accept query parameters"
        assert len(many) == 50
        assert (await calls.post("/v1/words/a?group_by=topic")).status_code == 405
        assert asked[1].json()["detail"] == "the request is invalid: group_by"


async def test_a_route_outside_the_hosts_api_takes_any_parameter() -> None:
    app, router = DescribedApi(title="Words", version="1"), APIRouter(route_class=LateRoute)

    @router.get("/apis/words")
    async def state() -> dict[str, str]:
        return {"status": "ok"}

    app.router.routes += router.routes
    async with client(app) as calls:
        assert (await calls.get("/apis/words?page_size=3")).is_success


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"text": "a"}', "application/json"),
        (b'{"text": "a"}', " Application/JSON; charset=utf-8"),
        (b'{"text": "a"}', "application/problem+json"),
        (b'{"text": "a"}', "application/x/json"),
        (b'{"text": "a"}', "text/json"),
        (b'{"text": "a"}', "application/json, text/plain"),
        (b'{"text": "a"}', None),
        (b"", "application/json"),
        (b"null", "application/json"),
        (b"[1]", "application/json"),
        (b"{", "application/json"),
        (b'{"text": "a", "text": "b"}', "application/json"),
        (b'{"text": 1}', "application/json"),
        (b'{"evaluator": "e"}', "application/json"),
        (b"\xff", "application/json"),
    ],
)
async def test_a_body_is_refused_in_the_same_words_on_every_route(body: bytes, kind: str | None) -> None:
    app, answers = DescribedApi(title="Words", version="1"), list[tuple[int, bytes]]()
    app.state.max_rows = 1
    install_error_handlers(app)
    for path, route_class in (("/v1/json", JsonRoute), ("/v1/body", BodyRoute)):
        router = APIRouter(route_class=route_class)

        @router.post(path)
        async def count(body: Asked, request: Request) -> Response:
            return Response(f"{len(body.text)} {request.method}")

        app.router.routes += router.routes
    app.add_middleware(
        AccessMiddleware,
        access=None,
        hosts=["here"],
        body_bytes=1000,
        upload_bytes=1000,
        body_timeout_s=60.0,
        memory_bytes=1 << 20,
        open_paths=["/v1/json", "/v1/body"],
    )
    async with client(app) as calls:
        for path in ("/v1/json", "/v1/body"):
            answer = await calls.post(path, content=body, headers={} if kind is None else {"Content-Type": kind})
            answers.append((answer.status_code, answer.content))
    assert answers[0] == answers[1]


async def test_the_document_is_the_same_before_and_after_calls() -> None:
    fresh, called = small_api(), small_api()
    async with client(called) as calls, client(fresh) as others:
        await asyncio.gather(calls.get("/v1/words/a"), *(calls.get("/openapi.json") for _ in range(3)))
        after, before = await calls.get("/openapi.json"), await others.get("/openapi.json")
    assert after.content == before.content
    responses = after.json()["paths"]["/v1/words/{text}"]["get"]["responses"]
    for code, model in (("200", "Answered"), ("404", "Asked")):
        assert responses[code]["content"]["application/json"]["schema"]["$ref"] == f"#/components/schemas/{model}"


def test_a_hidden_route_stays_hidden_once_it_is_called() -> None:
    app = small_api()
    for route in app.routes:
        if isinstance(route, LateRoute) and route.path == "/v1/state":
            route.include_in_schema = False

    async def call() -> httpx.Response:
        async with client(app) as calls:
            return await calls.get("/v1/state")

    assert asyncio.run(call()).is_success
    assert [*app.openapi()["paths"]] == ["/v1/words/{text}"]
