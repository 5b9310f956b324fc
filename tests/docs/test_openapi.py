"""The OpenAPI document is true: the host accepts its examples, and sends the responses that it describes."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.described import described_app
from tests.docs.routes import VENDORS
from tests.server import Server

pytestmark = pytest.mark.engine

JSON = "application/json"
POSTS = (
    "/v1/evaluate",
    "/v1/evaluate/batch",
    "/v1/check",
    "/v1/migrate",
    "/v1/evaluators/migrate",
    "/v1/import",
    "/v1/environments",
    "/v1/run",
    "/v1/editor",
    "/v1/jobs/estimate",
    "/v1/jobs/mapping",
)
# operations that create something answer 201 or 202
MAKES = (
    "/v1/evaluators",
    "/v1/jobs",
    "/v1/models",
    "/v1/schedules",
    "/v1/alerts",
    "/v1/label-queues",
)
BODILESS = (
    "/v1/data",
    "/v1/datasets",
    "/v1/evaluators/{name}/traces",
    "/v1/jobs/{job_id}/pause",
    "/v1/jobs/{job_id}/resume",
    "/v1/jobs/{job_id}/cancel",
    "/v1/models/{name}/test",
    "/v1/schedules/{name}/run",
    "/v1/alerts/{name}/test",
    "/v1/label-queues/{name}/next",
    "/v1/model-answers/import",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(log=tmp_path_factory.mktemp("server") / "log") as running:
        yield running


@pytest.fixture(scope="module")
def description(server: Server) -> Any:
    return server.client.get("/openapi.json").json()


def test_every_post_has_an_example(server: Server, description: Any) -> None:
    posts = {path for path, methods in description["paths"].items() if "post" in methods}
    assert posts == {*POSTS, *MAKES, *BODILESS}
    for path in (*POSTS, *MAKES):
        assert examples(description, path)
    assert description["x-documents"]
    for name in description["x-documents"]:  # tests/dialects/nemo tests these documents with NVIDIA's client
        theirs = server.client.get("/openapi.json", params={"of": name}).json()
        bodiless = {path.rsplit("/", 1)[1] for path in theirs["paths"] if not has_example(theirs, path)}
        assert bodiless <= {"cancel", "pause", "resume"}, name


def has_example(description: Any, path: str) -> bool:
    post = description["paths"][path].get("post", {"requestBody": None})
    return "requestBody" in post and (post["requestBody"] is None or bool(examples(description, path)))


@pytest.mark.slow
def test_the_documents_of_the_host_and_of_its_vendors_have_each_route_once(server: Server, description: Any) -> None:
    assert next(iter(description["paths"])) == "/v1/evaluate"
    operations = [one for methods in description["paths"].values() for one in methods.values()]
    assert all(one["tags"] for one in operations)
    parts = [description]
    parts += [server.client.get("/openapi.json", params={"of": one}).json() for one in description["x-documents"]]
    paths = [path for part in parts for path in part["paths"]]
    assert sorted(paths) == sorted(described_app().openapi()["paths"])
    assert [path for path in description["paths"] if path.startswith(VENDORS)] == []
    for part in parts:
        named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(part)))
        assert named <= part["components"]["schemas"].keys()
    assert server.client.get("/openapi.json", params={"of": "nobody"}).status_code == 404


@pytest.mark.sampled(12)
@pytest.mark.parametrize("path", POSTS)
def test_examples_are_answered_as_described(server: Server, description: Any, path: str) -> None:
    for example in examples(description, path):
        response = server.client.post(path, json=example)
        if response.status_code == 202:  # the machine did not have this package set yet
            assert faults(response.json(), response_schema(description, "post", path, "202"), description) == []
            assert "event: ready" in server.client.get(f"{path}/{response.json()['key']}/events").text
            response = server.client.post(path, json=example)
        assert response.status_code == 200, response.text
        assert faults(response.json(), response_schema(description, "post", path, "200"), description) == []


@pytest.mark.parametrize(("path", "status"), [("/v1/evaluators", 201), ("/v1/jobs", 202)])
def test_examples_make_what_is_described(server: Server, description: Any, path: str, status: int) -> None:
    (example,) = examples(description, path)
    # remove the object, because hosts of one run share their records
    server.client.delete(f"{path}/{example.get('name', 'none')}")
    response = server.client.post(path, json=example)
    assert response.status_code == status, response.text
    assert faults(response.json(), response_schema(description, "post", path, str(status)), description) == []
    assert server.client.get(response.headers["Location"]).status_code == 200
    server.client.delete(response.headers["Location"])


def test_the_examples_score(server: Server, description: Any) -> None:
    (example,) = examples(description, "/v1/evaluate")
    assert server.client.post("/v1/evaluate", json=example).json()["score"] == 1.0
    (batch,) = examples(description, "/v1/evaluate/batch")
    assert server.client.post("/v1/evaluate/batch", json=batch).json()["summary"]["pass_rate"] == 0.5


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v1/evaluate", "def evaluate(inputs, outputs, trace):\n    return 1 / 0\n"),
        (
            "/v1/evaluate",
            "def evaluate(inputs, outputs, trace):\n    return {'score': 8, 'label': 'x', 'a': {'b': 1}}\n",
        ),
        ("/v1/check", "import cv2\ndef evaluate(inputs, outputs, trace):\n    return 1\n"),
        ("/v1/check", "def evaluate(:\n"),
    ],
)
def test_failures_and_findings_are_answered_as_described(
    server: Server, description: Any, path: str, code: str
) -> None:
    response = server.client.post(path, json={"evaluator": {"code": code}})
    assert response.status_code == 200
    assert faults(response.json(), response_schema(description, "post", path, "200"), description) == []


def test_a_refusal_is_answered_as_described(server: Server, description: Any) -> None:
    response = server.client.post("/v1/evaluate", json={"evaluator": {"code": "", "nonsense": 1}})
    assert response.status_code == 422
    described = description["paths"]["/v1/evaluate"]["post"]["responses"]["422"]["content"]
    assert response.headers["content-type"] in described
    assert faults(response.json(), response_schema(description, "post", "/v1/evaluate", "422"), description) == []


def test_every_refusal_is_described_as_a_problem(description: Any) -> None:
    routes = [route for methods in description["paths"].values() for route in methods.values()]
    refusals = [route["responses"]["422"] for route in routes if "422" in route["responses"]]
    assert refusals
    assert {media_type for refusal in refusals for media_type in refusal["content"]} == {"application/problem+json"}
    assert "HTTPValidationError" not in json.dumps(description)


def test_the_host_routes_answer_as_described(server: Server, description: Any) -> None:
    for path in ("/v1/info", "/healthz", "/readyz"):
        response: httpx.Response = server.client.get(path)
        assert faults(response.json(), response_schema(description, "get", path, "200"), description) == []


def test_fields_of_answers_are_described_one_by_one(description: Any) -> None:
    schemas = description["components"]["schemas"]
    for name in (
        "EvaluationResult",
        "JobReport",
        "JobStatistics",
        "Aggregate",
        "Comparison",
        "DatasetReport",
        "HostInfo",
    ):
        told = schemas[name].get("description", "")
        assert told, name
        assert "Attributes:" not in told
        assert [field for field, one in schemas[name]["properties"].items() if not one.get("description")] == [], name


def test_the_checker_below_finds_faults() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        "required": ["a"],
    }
    assert faults({"a": None}, schema, {}) == []
    assert faults({"a": "x"}, schema, {}) == ["$.a: 'x' fits nothing of anyOf"]
    assert faults({}, schema, {}) == ["$: a is missing"]
    assert faults({"a": 1, "b": 2}, schema, {}) == ["$: b is not described"]


def examples(description: Any, path: str) -> list[Any]:
    schema = description["paths"][path]["post"]["requestBody"]["content"][JSON]["schema"]
    found: list[Any] = resolved(schema, description).get("examples", [])
    return found


def response_schema(description: Any, method: str, path: str, status: str) -> Any:
    content = description["paths"][path][method]["responses"][status]["content"]
    return next(media["schema"] for media in content.values() if "schema" in media)


def resolved(schema: Any, description: Any) -> Any:
    while "$ref" in schema:
        schema = description["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


def faults(value: Any, schema: Any, description: Any, path: str = "$") -> list[str]:
    """Return the places where a value does not fit its schema; only the part of JSON Schema that FastAPI uses counts."""
    schema = resolved(schema, description)
    if "anyOf" in schema:
        fits = any(not faults(value, option, description, path) for option in schema["anyOf"])
        return [] if fits else [f"{path}: {value!r} fits nothing of anyOf"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{path}: {value!r} is none of {schema['enum']}"]
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind in ("integer", "number"))):
        return [f"{path}: {json.dumps(value)} is no {kind}"]
    if kind == "array":
        return [
            f
            for n, item in enumerate(value)
            for f in faults(item, schema.get("items", {}), description, f"{path}[{n}]")
        ]
    return object_faults(value, schema, description, path) if kind == "object" else []


def object_faults(value: Any, schema: Any, description: Any, path: str) -> list[str]:
    properties = schema.get("properties", {})
    found = [f"{path}: {key} is missing" for key in schema.get("required", []) if key not in value]
    others = schema.get("additionalProperties", not properties)
    for key, inner in value.items():
        if key in properties:
            found += faults(inner, properties[key], description, f"{path}.{key}")
        elif others is False:
            found.append(f"{path}: {key} is not described")
        elif isinstance(others, dict):
            found += faults(inner, others, description, f"{path}.{key}")
    return found
