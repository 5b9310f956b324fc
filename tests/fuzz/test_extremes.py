"""Sends extreme integers, numbers, times and strings to the API: no answer is a 500, and stored values can be read
again.
"""

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from evaluator_host.types.json_values import encode_json
from tests.described import described_app
from tests.server import Server

CODE = "def evaluate(inputs, outputs, trace):\n    return 1.0\n"
INTEGERS = (0, -1, 2**31, 2**53, 2**60, 2**63, 2**64, 10**30, -(10**30))
TEXTS = (
    "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "9999-12-31", "\0", "", "a" * 5000, "1e400", "NaN",
    *map(str, INTEGERS),
)  # fmt: skip
VALUES = (-1, 2**63, 10**30, 1e308, None, [], *TEXTS[:2], "\0")
BODIES: dict[str, Any] = {
    "/v1/jobs": {
        "evaluators": [{"code": CODE, "limits": {"timeout_s": 5.0, "memory_mb": 128, "processes": 8, "disk_mb": 8, "log_kb": 8, "result_kb": 8}}],
        "dataset": {"rows": [{"n": 1}]},
        "config": {"parallelism": 1, "limit_samples": 1, "max_failures": 1},
    },
    "/v1/evaluators": {"name": "extreme", "code": CODE, "threshold": 0.5},
    "/v1/environments": {"language": "python", "packages": ["nothing==1"], "python": "3.11"},
    "/apis/evaluator/v2/workspaces/default/evaluate/jobs": {
        "spec": {
            "metrics": ["default/none"], "dataset": [{"expected": "x"}],
            "params": {"parallelism": 1, "limit_samples": 1, "request_timeout": 1, "max_retries": 1},
        }
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    nowhere = "http://127.0.0.1:9"
    environment = {"EVALUATOR_HOST_PIP_INDEX_URL": nowhere, "EVALUATOR_HOST_NPM_REGISTRY": nowhere}
    with Server(log=tmp_path_factory.mktemp("host") / "log", environment=environment) as running:
        running.client.post(
            "/v1/datasets?name=d", content=b'{"n": 1}\n', headers={"Content-Type": "application/x-ndjson"}
        )
        running.client.post("/v1/evaluators", json={"name": "e", "code": CODE})
        yield running


def test_every_integer_of_a_request_is_bounded() -> None:
    """Every integer in a request has bounds.

    The bounds fit the database, the length of a file, and every JSON parser's integers.
    """
    described = described_app().openapi()
    free = [
        name
        for name, schema in described["components"]["schemas"].items()
        if name.endswith("In")
        for _ in _free(schema, name)
    ]
    free += [
        f"{method} {path} {one['name']}"
        for path, methods in described["paths"].items()
        for method, route in methods.items()
        for one in route.get("parameters", ())
        for _ in _free(one["schema"], one["name"])
    ]  # fmt: skip
    assert free == []


def _free(schema: Any, path: str) -> Iterator[str]:
    """Yield the paths of integers without a maximum in a schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "integer" and not schema.keys() & {"maximum", "exclusiveMaximum"}:
            yield path
        for name, inner in schema.items():
            if name not in ("default", "examples"):
                yield from _free(inner, f"{path}.{name}")
    elif isinstance(schema, list):
        for inner in schema:
            yield from _free(inner, path)


def test_a_time_beside_an_integer_beyond_64_bits_is_encoded_as_without_it() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert json.loads(encode_json([at, 10**30])) == [*json.loads(encode_json([at])), 10**30]


@pytest.mark.long
def test_queries_at_their_extremes_are_answered(server: Server) -> None:
    job = server.client.post("/v1/jobs", json=BODIES["/v1/jobs"]).json()["id"]
    known = {
        "job_id": job,
        "other_id": job,
        "workspace": "default",
        "digest": "sha256:0",
        "file_format": "jsonl",
        "index": "0",
    }
    faults = []
    for path, methods in described_app().openapi()["paths"].items():
        route = methods.get("get")
        if route is None or path.endswith("/events"):
            continue
        name = "d" if "datasets" in path else "e"
        filled = path
        for part in [one["name"] for one in route.get("parameters", ()) if one["in"] == "path"]:
            filled = filled.replace("{" + part + "}", known.get(part, name))
        queries = [one["name"] for one in route.get("parameters", ()) if one["in"] == "query"]
        tried = [(filled, {query: text}) for query in queries for text in TEXTS]
        tried += [
            (path.replace("{index}", text).replace("{job_id}", job), {}) for text in TEXTS[8:] if "{index}" in path
        ]
        for url, query in tried:
            answer = server.client.get(url, params=query)
            if answer.status_code >= 500 and answer.json()["code"] == "internal":
                faults.append((url, query, answer.text))
    assert faults == []


@pytest.mark.long
def test_bodies_at_their_extremes_are_answered_and_what_was_made_can_be_listed(server: Server) -> None:
    faults = []
    for path, body in BODIES.items():
        for place in _places(body):
            for value in VALUES:
                answer = _post(server, path, _changed(body, place, value))
                if answer.status_code == 500:
                    faults.append((path, place, value, answer.text))
    assert faults == []
    for path in BODIES:
        assert server.client.get(path).status_code == 200, path


def _post(server: Server, path: str, body: Any) -> httpx.Response:
    return server.client.post(path, content=json.dumps(body).encode(), headers={"Content-Type": "application/json"})


def _places(body: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(body, dict | list):
        for key, inner in body.items() if isinstance(body, dict) else enumerate(body):
            yield (*at, key)
            yield from _places(inner, (*at, key))


def _changed(body: Any, place: tuple[Any, ...], value: Any) -> Any:
    made = inner = copy.deepcopy(body)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return made
