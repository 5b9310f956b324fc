"""No route blocks the event loop for 50 ms of processor time. The tests send every route the largest bodies that a
caller may send.

The list of routes comes from the application itself. The bodies for a new route with a JSON body are made from its
example in the OpenAPI document. For a route with another kind of body, or with a new name in its path, this file needs
a new line; without that line, the route's test fails.
"""

import asyncio
import gc
import itertools
import json
import re
import socket
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from starlette.routing import Route

from evaluator_host.engine.config.settings import Settings
from evaluator_host.platform.evaluators.bodies import EXACT_MATCH
from evaluator_host.platform.http.json_routes import DECODED_MB
from evaluator_host.server.server import base_url, serve_http
from tests.conftest import settings
from tests.described import described_app
from tests.loop_watch import held_s, watching

MB: Final = 1 << 20
JSON: Final = "application/json"
LISTS: Final = b"[" + b"[]," * ((DECODED_MB - 1) * MB // 115) + b"0]"
"""A list with as many values as a body may have."""

WIDE: Final = """
def evaluate(inputs, outputs, trace):
    return {"score": 1, "label": "x", "text": "x" * 8000, **{f"metric {n}": n for n in range(50)}}
"""
ESSAY: Final = "a\u0301" * (3 * MB)  # Unicode needs a second to compose this text
UNREADABLE: Final = {"code": "def evaluate(:\n"}
EVALUATOR: Final = {"code": EXACT_MATCH}
READS_OUTPUTS: Final = {"code": "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['gold']\n"}
COLUMNS: Final = {f"{name}{number}": name for number in range(490) for name in ("column", "gold")}
MISSPELT: Final = {f"inputs.a{number}": f"colmn{number * 7}" for number in range(900)}
EXPORTED: Final = '{"id": "1", "run_type": "chain", "inputs": {"question": "2+2"}, "outputs": {"answer": "4"}}\n'

Body = tuple[bytes, str]


def encoded(value: object) -> Body:
    return json.dumps(value).encode(), JSON


def with_lists(value: Any, *path: Any, few: bool = False) -> Body:
    """Fill the list at this path in a body to the longest allowed length; with `few`, to a quarter of that length."""
    holder = value
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = "LISTS"
    return json.dumps(value).encode().replace(
        b'"LISTS"', b"[" + LISTS[-(len(LISTS) // 12 * 3) :] if few else LISTS
    ), JSON


def read_twice(size: int) -> Body:
    """Return a body with many values, and with four details that each make the host decode the body again."""
    start = b'{"x": "\\\\ud800", "y": 12345678901234567890123, "\\u003a": 1, "outputs": ['
    return start + b"{}," * ((size - 200) // 3) + b"1e999]}", JSON


def spans(count: int) -> list[dict[str, str]]:
    return [{"span_id": str(number), "name": "s", "parent_id": str(number // 2)} for number in range(count)]


def rows(count: int) -> list[dict[str, Any]]:
    return [{"inputs": {"correct_answer": "x", "n": number}, "outputs": "x"} for number in range(count)]


BODIES: Final[dict[str, Callable[[], list[Body]]]] = {
    "POST /v1/evaluate": lambda: [
        *(read_twice(size) for size in (50_000, 256 << 10)),
        encoded({"evaluator": EVALUATOR, "outputs": "x" * (31 * MB)}),
        with_lists({"evaluator": EVALUATOR}, "outputs"),
        with_lists({"evaluator": {**EVALUATOR, "settings": {"config": {}}}}, "evaluator", "settings", "config", "x"),
        encoded({"evaluator": EVALUATOR, "trace": {"spans": spans(40_000)}}),
        encoded({"evaluator": EVALUATOR, "trace": {"spans": spans(200_000)}}),
        encoded({"evaluator": {"code": " x\n" * (MB // 3)}}),
    ],
    "POST /v1/evaluate/batch": lambda: [
        encoded({"evaluator": UNREADABLE, "rows": rows(10_000)}),
        with_lists({"evaluator": EVALUATOR, "rows": [{}]}, "isolation"),
    ],
    "POST /v1/check": lambda: [
        encoded({"evaluator": {"code": " x\n" * (MB // 3)}}),
        encoded({"evaluator": {"code": "import a\n" * (MB // 9)}}),
    ],
    "POST /v1/evaluators": lambda: [encoded({"name": "other", "code": "# x\n" * (MB // 5) + EXACT_MATCH})],
    "PUT /v1/evaluators/{name}": lambda: [encoded({"code": "# y\n" * (MB // 5) + EXACT_MATCH})],
    "POST /v1/jobs": lambda: [
        encoded({"evaluators": [UNREADABLE], "dataset": {"rows": rows(10_000)}}),
        encoded({"evaluators": [READS_OUTPUTS], "dataset": {"rows": [COLUMNS] * 100}}),
        encoded({"evaluators": [EVALUATOR], "dataset": {"rows": [COLUMNS] * 30}, "mapping": MISSPELT}),
    ],
    "POST /v1/jobs/mapping": lambda: [encoded({"evaluators": [READS_OUTPUTS], "dataset": {"rows": [COLUMNS] * 100}})],
    "POST /v1/migrate": lambda: [
        encoded({"code": "x = 1\n" * (MB // 6)}),
        encoded({**UNREADABLE, "rows": rows(1000)}),
    ],
    "POST /v1/import": lambda: [
        encoded({"path": "e.jsonl", "files": {"e.jsonl": EXPORTED * 40_000}, "dry_run": True}),
        encoded({"path": "e.jsonl", "files": {"e.jsonl": EXPORTED + '{"x": 1}\n' * 300_000}, "dry_run": True}),
    ],
    "POST /v1/datasets": lambda: [
        (b"question,answer\n" + b"a,b\n" * (MB // 4), "text/csv"),
        (b"," * MB + b"\n" + b"1," * MB, "text/csv"),
    ],
    "PATCH /v1/datasets/{name}": lambda: [with_lists({"add": [{"inputs": {"x": []}}]}, "add", 0, "inputs", "x")],
    "POST /v1/data": lambda: [(b"x" * (16 * MB), "application/octet-stream")],
    "POST /v1/evaluators/{name}/traces": lambda: [
        encoded(
            {
                "resourceSpans": [
                    {
                        "scopeSpans": [
                            {"spans": [{"traceId": f"{n:032x}", "parentSpanId": "a" * 16} for n in range(1, 10_001)]}
                        ]
                    }
                ]
            }
        ),
        (b'{"x":[' + b"[]," * (MB * 4 // 3 - 10) + b"0]}", JSON),
        (b"\x0a\x00" * (2 * MB - 10), "application/x-protobuf"),
    ],
    "POST /v1/model-answers/import": lambda: [
        (b'{"x":"' + b"x" * (4 * MB - 100) + b'"}\n', "application/x-ndjson"),
        (b'{"x":[' + b"[]," * (MB * 4 // 3 - 10) + b"0]}\n", "application/x-ndjson"),
        (b"\n" * (8 * MB), "application/x-ndjson"),
        (b"x" * (8 * MB), "application/x-ndjson"),
    ],
    "PUT /apis/files/v2/workspaces/{workspace}/filesets/{name}/-/{path:path}": lambda: [
        (b"x" * (16 * MB), "application/octet-stream")
    ],
}
"""The largest bodies for single routes, besides those that every route with a JSON body gets."""

NAMES: Final = {
    "digest": "sha256:0", "name": "wide", "version": "1", "language": "python", "name:path": "-", "index": "0",
    "other_id": "last", "file_format": "jsonl", "workspace": "default", "result": "x", "rest:path": "x", "path:path": "x",
    "host": "api.example.com",
}  # fmt: skip
QUERIES: Final[dict[str, list[dict[str, str]]]] = {
    "POST /v1/datasets": [{"name": "large"}],
    "GET /v1/jobs/{job_id}/rows": [{"limit": "1000"}, {"limit": "1000", "brief": "true"}],
    "GET /v1/jobs/{job_id}/agreement": [{"label": "n"}, {"label": "essay"}, {"queue": "wide"}],
    "GET /v1/datasets/{name}/rows": [{"limit": "1000"}],
    "GET /v1/label-queues": [{}, {"job": "JOB"}],
    "GET /v1/label-queues/{name}/rows": [{"limit": "1000"}],
}


APP = described_app()


def routes() -> list[Route]:
    """Return every route of the application, but only one of several paths with the same handler."""
    once = {(route.endpoint.__code__, *sorted(route.methods or ())): route for route in reversed(APP.routes)}
    return list(reversed(once.values()))


CALLS = [f"{method} {route.path}" for route in routes() for method in sorted(route.methods or ()) if method != "HEAD"]


def hostile(call: str) -> list[Body]:
    """Return the bodies for a route with a JSON body: its example with too many values, and bodies that are not JSON."""
    method, path = call.split()
    operation = APP.openapi()["paths"].get(re.sub(r":path(?=})", "", path), {}).get(method.lower(), {})
    content = operation.get("requestBody", {}).get("content", {})
    if not content:
        assert method in ("GET", "DELETE") or path.endswith(("/pause", "/resume", "/cancel", "/test", "/run")), (
            f"{call} needs a body"
        )
        return []
    if set(content) != {JSON}:
        assert call in BODIES, f"{call} takes {', '.join(content)}: give it its largest body in this file"
        return []
    name = content[JSON]["schema"].get("$ref", "").rpartition("/")[2]
    example = (APP.openapi()["components"]["schemas"].get(name, {}).get("examples") or [{}])[0]
    return [
        *(with_lists(json.loads(json.dumps(example)), *path, few=True) for path in places(example)),
        (b"[" * MB, JSON),
    ]


def places(value: object, *path: Any) -> list[tuple[Any, ...]]:
    """Return the path of every list in an example, and of every object to which a field can be added."""
    found = [(*path, "more")] if isinstance(value, dict) else [path] if isinstance(value, list) else []
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    return [*found, *(place for key, below in inner for place in places(below, *path, key))]


@dataclass(frozen=True)
class Host:
    """A client of a real server on the test's event loop, and the id of a job with large results."""

    client: httpx.Client
    job_id: str

    async def send(self, call: str, body: Body | None, query: dict[str, str]) -> httpx.Response:
        method, path = call.split()
        names = {**NAMES, "job_id": self.job_id if method == "GET" else "none"}
        if method == "DELETE":
            names["name"] = "none"
        filled = re.sub(r"{([\w:]+)}", lambda found: names[found[1]], path)
        content, media_type = body or (None, "")
        headers = {"Content-Type": media_type} if body else {}
        query = {name: value.replace("JOB", self.job_id) for name, value in query.items()}
        return await asyncio.to_thread(
            self.client.request, method, filled, params=query or None, content=content, headers=headers
        )


@pytest.fixture(scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    file = tmp_path_factory.mktemp("loop") / "host.db"
    own: Settings = settings("bubblewrap", database_url=f"sqlite:///{file}", stop_grace_s=0)
    listener, stop = socket.create_server(("127.0.0.1", 0)), asyncio.Event()
    serving = asyncio.create_task(serve_http(own, listener, stop=stop))
    with httpx.Client(base_url=base_url(listener), timeout=250) as client:
        host = await asyncio.to_thread(prepared, client, file)
        gc.collect()
        # a server also freezes its objects when it starts
        gc.freeze()
        yield host
        gc.unfreeze()
    stop.set()
    await serving
    asyncio.get_running_loop().set_exception_handler(None)


def prepared(client: httpx.Client, file: Path) -> Host:
    """Store an evaluator, a data set, a job with large results, and label queues; return the client with that job."""
    assert client.post("/v1/evaluators", json={"name": "wide", "code": WIDE}).is_success
    made = [{**row, **{f"column {n}": "x" * 20 for n in range(100)}} for row in rows(1000)]
    made[0]["essay"] = ESSAY
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in made).encode()
    kind = {"Content-Type": "application/x-ndjson"}
    assert client.post("/v1/datasets", params={"name": "wide"}, content=lines, headers=kind).is_success
    batch = {"isolation": "batch"}  # rows share a process, because a process for each row would take 3 s
    job = {"evaluators": ["wide"], "dataset": "wide", "config": batch}
    job_id = client.post("/v1/jobs", json=job).json()["id"]
    client.get(f"/v1/jobs/{job_id}/events")
    queue = {"name": "wide", "job": job_id, "limit": 1000, "instructions": "\x01" * 20_000}
    assert client.post("/v1/label-queues", json=queue).is_success
    fill(file)
    return Host(client, job_id)


def fill(file: Path) -> None:
    """Label all rows of the label queue with long notes, and copy the queue without its rows, as thousands of calls do."""
    with closing(sqlite3.connect(file, timeout=60)) as database, database:
        given = "state = 'labelled', label = 'true', at = '2026-01-01 00:00:00.000000'"
        database.execute(f"UPDATE labels SET {given}, note = ?", ["\x01" * 10_000])
        columns = "workspace_id, dataset_id, job_id, own_outputs, content, created_at"
        numbers = "WITH RECURSIVE k (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k WHERE n < 900)"
        copied = f"{numbers} SELECT 'lq_' || n, 'copy-' || n, {columns} FROM label_queues, k"
        database.execute(f"INSERT INTO label_queues (id, name, {columns}) {copied}")


@pytest.fixture(scope="module", name="held_s")
def _held_s() -> float:
    return held_s()


async def test_the_watch_sees_what_holds_the_loop(held_s: float) -> None:
    async def work() -> None:
        until = time.thread_time() + 2 * held_s
        while time.thread_time() < until:
            pass

    with watching() as watch:
        await asyncio.create_task(work())
    assert watch.longest_s > held_s


@pytest.mark.sampled(160)
@pytest.mark.parametrize("call", CALLS)
async def test_no_route_holds_the_event_loop(host: Host, held_s: float, call: str) -> None:
    bodies = [*hostile(call), *(BODIES[call]() if call in BODIES else [])]
    held = []
    for body, query in itertools.product(bodies or [None], QUERIES.get(call, [{}])):
        with watching() as watch:
            answer = await host.send(call, body, query)
        if watch.longest_s > held_s:
            held.append(f"{query} {body and body[0][:60]!r} ({answer.status_code}): {watch.longest}")
        print(
            call,
            query,
            body and body[0][:40],
            len(body[0]) if body else 0,
            answer.status_code,
            answer.text[:150],
            watch.longest,
        )
        assert answer.status_code != 500, answer.text
    assert not held, "\n".join(held)
