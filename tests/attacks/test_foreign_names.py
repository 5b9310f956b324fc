"""Calls every operation of a host with one workspace's key and names of another workspace's objects: the host answers
as if no such objects existed.

The operations are read from the routes of the application, some of which exist under several prefixes, and from the
routes of all wires (other platforms' APIs). If a route is added, the first test fails until the tables in
`foreign_requests.py` contain the names in its path, query and body. Each request is also sent with the other workspace's
own key. If that answer depends on the names, the request is good enough for the host to look up the names.

The MCP server and the commands need no tests here, because they are clients that call these operations.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest

from evaluator_host.engine.config.settings import Settings, WireOptions
from evaluator_host.platform.wires.calls import WireCalls
from evaluator_host.platform.wires.table import wires
from evaluator_host.server.app import described_host
from evaluator_host.web.workbench import Workbench
from tests.attacks.foreign_requests import (
    ASKS,
    BUNDLE,
    BY_COLLECTION,
    BY_PARAMETER,
    CODE,
    FIXED,
    IN_A_PLACE,
    METRIC,
    OF_NOBODY,
    OF_THE_HOST,
    OLDER_SPEC,
    PLAIN,
    REFERENCES,
    SPEC,
    Ask,
    Names,
)
from tests.described import described_app
from tests.keyed import bearer, make_key
from tests.model_server import ModelServer
from tests.server import FORKED, Server, new_home

pytestmark = pytest.mark.timeout(300)

MARK = "only-beta-has-this-text"
PARTS = 3  # number of parts into which the requests are divided; `make test` sends the first

SPAN = {
    "traceId": "0af7651916cd43dd8448eb211c80319c",
    "spanId": "b7ad6b7169203331",
    "name": MARK,
    "startTimeUnixNano": "1",
    "endTimeUnixNano": "2",
}

SPANS = {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}


COUNTING = """
import contextvars, sys, threading
from evaluator_host.platform.http.middleware import AccessMiddleware
of_request = contextvars.ContextVar("of_request", default=None)
def count(frame, what, _):
    if what == "call" and (calls := of_request.get()) is not None:
        calls[0] += 1
sys.setprofile(count)
threading.setprofile(count)
serve = AccessMiddleware.__call__
async def counted(self, scope, receive, send):
    calls = [0]
    of_request.set(calls)
    async def told(message):
        if message["type"] == "http.response.start":
            message["headers"].append((b"x-calls", str(calls[0]).encode()))
        await send(message)
    await serve(self, scope, receive, told)
AccessMiddleware.__call__ = counted
"""
"""Program that makes a host report in each answer how many functions it called for the request."""


CALLS_BY_CHANCE = 45
"""Maximum difference in function calls between two requests for unknown names; for each, the minimum of three tries counts."""


@dataclass(frozen=True)
class Operation:
    """A method and a path as the application declares it."""

    method: str
    declared: str

    @property
    def path(self) -> str:
        return self.declared.replace(":path}", "}")

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def asks(self) -> list[Ask]:
        if str(self) in ASKS:
            return ASKS[str(self)]
        ends = [end for end in ASKS if end.startswith(f"{self.method} ") and self.path.endswith(end.split(" ")[1])]
        return ASKS[max(ends, key=len)] if ends else [Ask()]

    @property
    def is_told(self) -> bool:
        """Whether the tables in this file contain requests for this operation."""
        return self.asks != [Ask()]

    def at(self, names: Names) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: self._value(found[1], found.start(), names), self.path)

    def _value(self, parameter: str, start: int, names: Names) -> str:
        if parameter in FIXED:
            return FIXED[parameter]
        if self.path in OF_NOBODY:
            return OF_NOBODY[self.path]
        if parameter in BY_PARAMETER:
            return names[BY_PARAMETER[parameter]]
        before = self.path[:start].rstrip("/").split("/")
        table = IN_A_PLACE if "{workspace}" in before else BY_COLLECTION
        kind = table.get("/".join(before[-2:])) or table[before[-1]]
        return names["bundle" if kind == "metric" and "/evaluator/" in self.path else kind]


def operations() -> list[Operation]:
    """Return every operation of a host that serves all wires. The host's pages are left out, because they are the same
    for everybody.
    """
    pages = {getattr(one, "path", "") for one in Workbench().routes()}
    app = described_app()
    routes = [one for one in app.routes if getattr(one, "path", "") not in pages]
    host, access = described_host(Settings())
    for found in wires().values():
        wire = found.load()
        routes += wire.routes(WireCalls(wire, WireOptions(), host, access))
    return [
        Operation(method, one.path)
        for one in routes
        for method in sorted(one.methods or ())
        if method not in ("HEAD", "OPTIONS")
    ]


def bodies() -> dict[str, dict[str, Any]]:
    """Return the schema of each operation's JSON body in the OpenAPI document."""
    document = described_app().openapi()
    found = {}
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            content = described.get("requestBody", {}).get("content", {}).get("application/json", {})
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            if name:
                found[f"{method.upper()} {path}"] = {**document["components"]["schemas"][name], "name": name}
    return found


@cache
def parameters() -> dict[str, set[str]]:
    """Return the query parameters and headers of each operation in the OpenAPI document."""
    document = described_app().openapi()
    return {
        f"{method.upper()} {path}": {one["name"] for one in described.get("parameters", ()) if one["in"] != "path"}
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    }


KINDS = tuple(sorted({*BY_PARAMETER.values(), *BY_COLLECTION.values(), *IN_A_PLACE.values(), "bundle", "idempotency"}))


def keys_of(value: Any) -> set[str]:
    """Return the names of all fields at any depth of a JSON value, in lower case."""
    if isinstance(value, dict):
        return {name.lower() for name in value}.union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def test_every_operation_and_every_field_that_names_something_is_asked_here() -> None:
    names = {kind: kind for kind in (*KINDS, "url")}
    found, described, given = operations(), bodies(), parameters()
    for one in found:
        one.at(names)  # if this raises a KeyError, add the parameter of this path to the tables above
        assert one.is_told or str(one) not in described, f"{one} takes a body: add this body, with its names, to ASKS"
        schema = described.get(str(one), {"name": "", "properties": {}})
        wanted = {name for name in schema.get("properties", {}) if f"{schema['name']}.{name}" not in PLAIN}
        used = keys_of([[ask.body, ask.query, ask.headers] for ask in one.asks])
        of_the_path = {"evaluator", "metric"} if "{job_id}" in one.path else set()
        lacking = (wanted | given.get(str(one), set())) & REFERENCES - used - of_the_path
        assert not lacking, f"{one}: ASKS lacks the names that belong in {', '.join(sorted(lacking))}"
    assert [key for key in ASKS if not any(one.asks is ASKS[key] for one in found)] == []


@dataclass
class Scene:
    """A host, a key for each of two workspaces, and the names of the objects in workspace `beta`."""

    server: Server
    url: str
    keys: dict[str, str]
    names: Names = field(default_factory=dict)

    def unknown(self, beginning: str = "nope", digit: str = "3") -> Names:
        """Return names that have the same form as those of `beta`'s objects but do not exist."""
        made = {kind: beginning + name[4:] for kind, name in self.names.items()}
        ids = {
            kind: name[:8] + "".join(digit if one != digit else "4" for one in name[8:])
            for kind, name in self.names.items()
        }
        return {
            **made,
            **{kind: ids[kind] for kind in ("job", "other_job", "set", "sandbox", "data_file")},
            "url": self.url,
            "result": self.names["result"],
        }

    def ask(self, who: str, operation: Operation, ask: Ask, names: Names) -> httpx.Response:
        filled = ask.filled({**names, "url": self.url})
        filled["headers"].update(bearer(self.keys[who]))
        if operation.method == "DELETE" and "force" in parameters().get(str(operation), ()):
            filled["params"]["force"] = "true"
        answer = self.server.client.request(operation.method, operation.at(names), **filled)
        return self.ended(who, answer) if str(operation) == "POST /v1/jobs" and answer.is_success else answer

    def ended(self, who: str, made: httpx.Response) -> httpx.Response:
        """Wait until a job has ended, and return a response that contains its status, its error and its rows' failures.

        A job looks up some names only when it runs.
        """
        path, headers = f"/v1/jobs/{made.json()['id']}", bearer(self.keys[who])
        until(lambda: self.server.client.get(path, headers=headers).json()["status"], "completed", "failed")
        job, failures = (self.server.client.get(path + part, headers=headers).json() for part in ("", "/failures"))
        return httpx.Response(200, json=[job["status"], job["error"], [one["message"] for one in failures]])

    def of_beta(self) -> dict[str, tuple[int, str]]:
        """As `beta`, send all requests that only read, and return the answers."""
        reading = [one for one in operations() if one.method == "GET" and one.path not in OF_THE_HOST]
        return {str(one): plain(self.ask("beta", one, Ask(), self.names), self.names) for one in reading}

    def make(self, method: str, path: str, *, headers: dict[str, str] | None = None, **more: Any) -> Any:
        """Send a request as `beta`, check that it succeeds, and return the answer."""
        headers = {**(headers or {}), **bearer(self.keys["beta"])}
        answer = self.server.client.request(method, path, headers=headers, **more)
        assert answer.is_success, (path, answer.status_code, answer.text)
        return answer.json() if answer.headers.get("content-type", "").startswith("application/json") else None


VARIES = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00:00)?|\b(job|ds|wor|al)[_-][0-9a-zA-Z]{8,}|\b[0-9a-f]{16,}\b"
    r"|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b\d+\.\d+\b"
)


def plain(answer: httpx.Response, *known: Names) -> tuple[int, str]:
    """Return an answer's status, and its text without known names, new ids, times and measurements."""
    text = answer.text
    for kind, name in (pair for names in known for pair in names.items()):
        text = text.replace(name, f"<{kind}>")
    return answer.status_code, VARIES.sub("<varies>", text)


def furnish(scene: Scene) -> None:
    """Make one object of each kind for `beta`; the objects' strings contain `MARK`."""
    rows = [{"inputs": {"q": MARK}, "outputs": MARK, "label": True}] * 3
    lines = "".join(f"{json.dumps(one)}\n" for one in rows).encode()
    name = {kind: f"beta-{kind.replace('_', '-')}" for kind in KINDS}
    make, text = scene.make, {"Content-Type": "application/x-ndjson"}
    make("PUT", f"/v1/secrets/{name['secret']}", json={"value": f"{MARK}-secret"})
    make("POST", "/v1/models", json={"name": name["model"], "url": scene.url, "model": "m", "secret": name["secret"]})
    octets = {"Content-Type": "application/octet-stream"}
    name["data_file"] = make("POST", "/v1/data", content=MARK.encode(), headers=octets)["digest"]
    data = {"x.bin": name["data_file"]}
    evaluator = {"name": name["evaluator"], "code": f"{CODE}# {MARK}\n", "sampling": 1.0, "data": data}
    make("POST", "/v1/evaluators", json=evaluator)
    make("POST", f"/v1/evaluators/{name['evaluator']}/traces", json=SPANS)
    make("POST", f"/v1/datasets?name={name['dataset']}", content=lines, headers=text)
    job = {
        "evaluators": [name["evaluator"]],
        "dataset": name["dataset"],
        "mapping": {"inputs.q": "inputs.q", "outputs": "outputs"},
    }
    for kind in ("job", "other_job"):
        name[kind] = make("POST", "/v1/jobs", json=job, headers={"Idempotency-Key": name["idempotency"] + kind[5:]})[
            "id"
        ]
    make("POST", "/v1/label-queues", json={"name": name["queue"], "dataset": name["dataset"]})
    schedule = {"name": name["schedule"], "cron": "0 3 1 1 *", "job": job}
    make("POST", "/v1/schedules", json=schedule)
    make("POST", f"/v1/schedules/{name['schedule']}/run")
    make("POST", "/v1/alerts", json={"name": name["alert"], "metric": "mean", "below": 0.5, "job": name["job"]})
    name["set"] = make("POST", "/v1/environments", json={"packages": ["six==1.17.0"]})["key"]
    make("GET", f"/v1/environments/{name['set']}/events")  # the answer is complete once the package set is installed
    make("POST", "/apis/entities/v2/workspaces", json={"name": name["space"]})
    place = f"v2/workspaces/{name['space']}"
    make("POST", f"/apis/files/{place}/filesets", json={"name": name["fileset"]})
    make("PUT", f"/apis/files/{place}/filesets/{name['fileset']}/-/rows.jsonl", content=b'{"a": "x", "b": "x"}\n')
    make("POST", f"/apis/secrets/{place}/secrets", json={"name": name["place_secret"], "value": f"{MARK}-2"})
    provider = {
        "name": name["provider"],
        "host_url": scene.url,
        "api_key_secret_name": f"{name['space']}/{name['place_secret']}",
    }
    make("POST", f"/apis/models/{place}/providers", json=provider)
    model = {"name": name["place_model"], "model_providers": [f"{name['space']}/{name['provider']}"]}
    make("POST", f"/apis/models/{place}/models", json=model)
    make("POST", f"/apis/evaluator/{place}/metrics/{name['bundle']}", json=BUNDLE)
    make("POST", f"/apis/evaluation/{place}/metrics/{name['metric']}", json=METRIC)
    made = make("POST", f"/apis/evaluator/{place}/evaluate/jobs", json={"name": name["place_job"], "spec": SPEC})
    older = make("POST", f"/apis/evaluation/{place}/metric-jobs", json={"name": name["older_job"], "spec": OLDER_SPEC})
    for jobs, one in (("evaluator/{}/evaluate/jobs", made), ("evaluation/{}/metric-jobs", older)):
        path = f"/apis/{jobs.format(place)}/{one['name']}/status"
        until(lambda path=path: scene.make("GET", path)["status"], "completed")
    for kind in ("job", "other_job"):
        until(lambda kind=kind: scene.make("GET", f"/v1/jobs/{name[kind]}")["status"], "completed")
    alert = f"/v1/alerts/{name['alert']}"
    until(lambda: "completed" if scene.make("GET", alert)["checked_at"] else "pending", "completed")
    name["sandbox"] = make("POST", "/wires/daytona/api/sandbox", json={"labels": {"mark": MARK}})["id"]
    name |= {"result": "row-scores", "place_result": name["place_job"], "older_result": name["older_job"]}
    scene.names = {**name, "url": scene.url}


def until(status: Callable[[], str], *wanted: str) -> None:
    ends = time.monotonic() + 60
    while (found := status()) not in wanted:
        assert time.monotonic() < ends, found
        assert found in ("queued", "running", "created", "pending", "active")
        time.sleep(0.05)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with furnished(tmp_path_factory.mktemp("host")) as made:
        yield made


@contextmanager
def furnished(folder: Path, *, program: str = "") -> Iterator[Scene]:
    """Start a host on which `beta` has one object of each kind; `program` can change modules of the host before the
    host starts.
    """
    home = new_home(folder)
    database = f"sqlite:///{home / 'host.db'}"
    keys = {name: make_key("key", name, url=database) for name in ("alpha", "beta")}
    with ModelServer() as model:
        address = model.url.split("/")[2]
        environment = {
            **FORKED,
            "EVALUATOR_HOST_DATABASE_URL": database,
            "EVALUATOR_HOST_WIRES": ",".join(wires()),
            "EVALUATOR_HOST_JUDGE_HOSTS": json.dumps([address]),
            "EVALUATOR_HOST_TARGET_HOSTS": json.dumps([address]),
            "EVALUATOR_HOST_WEBHOOK_HOSTS": json.dumps([address]),
            "EVALUATOR_HOST_CODE_SECRETS": '["*"]',
        }
        with Server(log=folder / "log", data_dir=home, environment=environment, program=program) as server:
            made = Scene(server, model.url, keys)
            furnish(made)
            yield made


def in_order() -> list[tuple[Operation, Ask]]:
    """Return the requests: first those that read, then those that change, then those that create, then those that
    delete.
    """
    rank = ["GET", "PATCH", "PUT", "POST", "DELETE"]
    ordered = sorted(
        operations(), key=lambda one: (rank.index(one.method), one.method == "DELETE" and -len(one.path), one.path)
    )
    return [(operation, ask) for operation in ordered for ask in operation.asks]


@pytest.mark.sampled(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_names_of_another_workspace_are_answered_like_unknown_names(scene: Scene, part: int) -> None:
    before, unknown, differing = scene.of_beta(), scene.unknown(), list[str]()
    secret = {MARK, *(name for kind, name in scene.names.items() if kind not in ("set", "result", "url"))}
    for operation, ask in in_order()[part::PARTS]:
        answers = []
        for names in (scene.names, unknown):
            answer = scene.ask("alpha", operation, ask, names)
            if told := [word for word in secret - set(names.values()) if word in answer.text]:
                differing.append(f"{operation} {ask.body or ''} reveals {told} of beta")
            answers.append(plain(answer, names, scene.names))
            undo(scene, "alpha", operation, ask, names, answer)
        if answers[0] != answers[1]:
            differing.append(
                f"{operation} {ask.body or ''}: {answers[0]} for beta's names, {answers[1]} for unknown names"
            )
    assert not differing, "\n".join(differing)
    after = scene.of_beta()
    changed = [f"{name}: {before[name]} before, {after[name]} after" for name in before if before[name] != after[name]]
    assert not changed, "\n".join(changed)


@pytest.mark.long
def test_names_of_another_workspace_cost_the_same_as_unknown_names(tmp_path: Path) -> None:
    """Another workspace's names cost the host the same as unknown names. If the costs differed, the time until an
    answer would reveal whether another workspace has an object with that name.
    """
    differing = []
    with furnished(tmp_path, program=COUNTING) as scene:
        asked = (scene.names, scene.unknown()) * 3
        for operation, ask in in_order():
            if ask.free:
                continue
            calls = []
            for names in asked:
                answer = scene.ask("alpha", operation, ask, names)
                calls.append(int(answer.headers.get("x-calls", 0)))
                undo(scene, "alpha", operation, ask, names, answer)
            taken, nothing = min(calls[::2]), min(calls[1::2])
            if abs(taken - nothing) > CALLS_BY_CHANCE:
                differing.append(
                    f"{operation} {ask.body or ''}: {taken} calls for beta's names, {nothing} for unknown names"
                )
    assert not differing, "\n".join(differing)


@pytest.mark.long
def test_the_same_requests_have_other_answers_for_the_owner_of_the_names(scene: Scene) -> None:
    """The answer to each of these requests is different for the workspace that has the names. Without this test, the
    test above would also pass if requests were refused for other reasons.
    """
    blind, gone = list[str](), set[str]()
    for operation, ask in in_order():
        last = operation.at(scene.names).rpartition("/")[2]
        if operation.method == "DELETE" and last in gone:  # the object was already deleted under another prefix
            continue
        answers = []
        for names in (scene.names, scene.unknown()):
            answer = scene.ask("beta", operation, ask, names)
            answers.append(plain(answer, names))
            undo(scene, "beta", operation, ask, names, answer)
        gone |= {last} if operation.method == "DELETE" else set()
        if answers[0] == answers[1] and not ask.free and names_something(operation, ask):
            blind.append(f"{operation} {ask.body or ask.query}: {answers[0]}")
    assert not blind, "\n".join(blind)


def names_something(operation: Operation, ask: Ask) -> bool:
    sent = json.dumps([operation.at(dict.fromkeys(KINDS, "<x>")), ask.body, ask.query])
    return re.search(r"<(?!url)\w+>", sent) is not None and operation.path not in OF_NOBODY


def undo(scene: Scene, who: str, operation: Operation, ask: Ask, names: Names, answer: httpx.Response) -> None:
    """Remove the object that a request created, so that later requests find no object with its name."""
    if not answer.is_success or operation.method not in ("POST", "PUT"):
        return
    path, filled = operation.at(names), ask.filled(names)
    called = [filled.get("json", {}).get("name"), filled["params"].get("name")]
    if operation.path == "/v1/environments":
        called.append(answer.json()["key"])
    paths = [path, *(f"{base}/{name}" for name in called if name for base in (path, "/v1/evaluators"))]
    kept = {*scene.names.values(), *FIXED.values()}
    for one in paths:
        if who == "alpha" or one.rpartition("/")[2] not in kept:
            headers = bearer(scene.keys[who])
            if scene.server.client.delete(one, headers=headers, params={"force": "true"}).status_code == 422:
                scene.server.client.delete(one, headers=headers)  # this route does not take `force`
