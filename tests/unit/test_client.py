"""Both clients have the same methods with the same signatures; a function stands in for the host."""

import inspect
import json
import math
import pydoc
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import Match

from evaluator_host.client import AsyncClient, Client
from evaluator_host.client.transport import Verbs
from evaluator_host.platform.http.json_routes import LateRoute, require_known_parameters
from evaluator_host.types.alerts import AlertRule, Metric
from evaluator_host.types.errors import Busy, HostUnreachable, InvalidRequest, NotFound
from evaluator_host.types.evaluator import Evaluator, Row
from evaluator_host.types.models import RegisteredModel
from tests.both_clients import FLAVOURS, open_client
from tests.described import described_app

GROUPS = ("evaluators", "datasets", "jobs", "secrets", "data", "models", "schedules", "alerts", "labels")
Answer = Callable[[httpx.Request], httpx.Response]


def verbs_of(client: Client | AsyncClient) -> dict[str, Any]:
    owners = {"": client, **{f"{name}.": getattr(client, name) for name in GROUPS}}
    return {
        f"{prefix}{name}": method
        for prefix, owner in owners.items()
        for name, method in inspect.getmembers(type(owner), inspect.isfunction)
        if not name.startswith("_") and name != "close"
    }


def test_both_clients_have_the_same_verbs_with_the_same_signatures() -> None:
    sync, awaited = verbs_of(Client()), verbs_of(AsyncClient())
    assert len(sync) > 35
    assert {name: inspect.signature(verb) for name, verb in sync.items()} == {
        name: inspect.signature(verb) for name, verb in awaited.items()
    }
    assert [name for name, value in vars(Client()).items() if isinstance(value, Verbs)] == list(GROUPS)


def test_every_verb_serves_both_and_documents_its_arguments() -> None:
    client = Client()
    for name, verb in verbs_of(client).items():
        assert not inspect.iscoroutinefunction(verb), f"{name} must be decorated with `verb`"
        assert not inspect.isasyncgenfunction(verb), f"{name} must be decorated with `stream`"
        group: Any = getattr(client, name.partition(".")[0]) if "." in name else client
        described = "\n".join(inspect.getdoc(one) or "" for one in (verb, *type(group).__mro__))
        for parameter in list(inspect.signature(verb).parameters)[1:]:
            assert f"  {parameter}: " in described, f"{name} does not say what {parameter} is"


def test_the_environment_names_the_host_and_its_key_where_no_url_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def addressed(*url: str, **key: str) -> tuple[str, str | None]:
        http = Client(*url, **key)._transport.http
        return str(http.base_url), http.headers.get("Authorization")

    monkeypatch.delenv("EVALUATOR_HOST_URL", raising=False)
    monkeypatch.delenv("EVALUATOR_HOST_KEY", raising=False)
    monkeypatch.delenv("EVALUATOR_HOST_PORT", raising=False)
    assert addressed() == ("http://127.0.0.1:8710", None)
    monkeypatch.setenv("EVALUATOR_HOST_PORT", "8731")
    assert addressed() == ("http://127.0.0.1:8731", None)
    monkeypatch.setenv("EVALUATOR_HOST_URL", "https://host.example.com")
    monkeypatch.setenv("EVALUATOR_HOST_KEY", "eh_of_the_environment")
    assert addressed() == ("https://host.example.com", "Bearer eh_of_the_environment")
    assert addressed(key="eh_given") == ("https://host.example.com", "Bearer eh_given")
    assert addressed("http://other.example.com") == ("http://other.example.com", None)


class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that arrives in pieces; with `broken`, the connection breaks after the last piece."""

    def __init__(self, *pieces: bytes, broken: bool = False) -> None:
        self.pieces = pieces
        self.broken = broken
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield from self.pieces
        if self.broken:
            raise httpx.ReadError("cut")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in iter(self):
            yield piece

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True


@pytest.fixture(params=FLAVOURS)
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Client, list[Answer]]]:
    answers: list[Answer] = []

    def handle(asked: httpx.Request) -> httpx.Response:
        return answers.pop(0)(asked)

    async def handle_async(asked: httpx.Request) -> httpx.Response:
        await asked.aread()
        return handle(asked)

    with open_client(request.param, "http://host", retries=1) as opened:
        handler = handle if request.param == "sync" else handle_async
        monkeypatch.setattr(opened._transport.http, "_transport", httpx.MockTransport(handler))
        yield opened, answers


def report(status: str, done: int) -> bytes:
    progress = {"rows": 2, "done": done, "failed": 0, "rows_per_s": None, "eta_s": None}
    config = {"parallelism": None, "limit_samples": None, "isolation": "row", "max_failures": None}
    times = dict.fromkeys(("started_at", "finished_at")) | {"created_at": "2026-01-01T00:00:00Z"}
    job = {"id": "j", "status": status, "evaluators": ["a"], "dataset": "d", "mapping": {}, "target": None}
    job |= {"name": None, "scores": [], "dataset_name": "d", "schedule": None}
    return json.dumps({**job, "config": config, "progress": progress, "error": None, **times}).encode()


def test_a_watch_survives_a_broken_connection_and_an_event_cut_in_two(client: tuple[Client, list[Answer]]) -> None:
    opened, answers = client
    event = b"event: progress\ndata: " + report("running", 1) + b"\n\n"
    answers += [
        lambda _: httpx.Response(200, stream=Pieces(event[:40], event[40:], b"data: ", broken=True)),
        lambda _: httpx.Response(200, content=report("running", 1)),
        lambda _: httpx.Response(200, stream=Pieces(b"data: " + report("completed", 2) + b"\n")),
        lambda _: httpx.Response(200, content=report("completed", 2)),
    ]
    seen: list[int] = []
    assert opened.jobs.wait("j", on_progress=lambda job: seen.append(job.progress.done)).status.final
    assert (seen, answers) == ([1, 2], [])


def test_a_watch_that_is_left_closes_its_connection(client: tuple[Client, list[Answer]]) -> None:
    opened, answers = client
    body = Pieces(*[b"data: " + report("running", 1) + b"\n"] * 2)
    answers.append(lambda _: httpx.Response(200, stream=body))
    for job in opened.jobs.watch("j"):
        assert job.progress.done == 1
        break
    assert body.closed


def test_a_watch_of_no_job_says_so(client: tuple[Client, list[Answer]]) -> None:
    opened, answers = client
    answers += [lambda _: httpx.Response(404, content=b'{"code": "not_found", "detail": "none"}')] * 2
    with pytest.raises(NotFound):
        list(opened.jobs.watch("j"))


def test_a_file_is_sent_with_its_size_and_only_once(client: tuple[Client, list[Answer]], tmp_path: Path) -> None:
    opened, answers = client
    (tmp_path / "a.csv").write_bytes(b"a,b\n" * 50_000)
    asked: list[httpx.Request] = []

    def busy(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(429, content=b'{"code": "busy", "detail": "full"}')

    answers.append(busy)
    with pytest.raises(Busy):
        opened.datasets.upload("a", tmp_path / "a.csv")
    (request,) = asked
    assert (request.headers["Content-Length"], request.headers["Content-Type"]) == ("200000", "text/csv")
    assert "Transfer-Encoding" not in request.headers


def test_a_download_that_is_refused_writes_no_file(client: tuple[Client, list[Answer]], tmp_path: Path) -> None:
    opened, answers = client
    answers.append(lambda _: httpx.Response(404, stream=Pieces(b'{"code": "not_found", "detail": "none"}')))
    with pytest.raises(NotFound):
        opened.jobs.download("j", tmp_path / "rows.csv")
    assert not (tmp_path / "rows.csv").exists()
    answers.append(lambda _: httpx.Response(200, stream=Pieces()))
    assert opened.jobs.download("j", tmp_path / "rows.csv") == 0
    assert (tmp_path / "rows.csv").read_bytes() == b""
    answers.append(lambda _: httpx.Response(200, stream=Pieces(b"a,b\n", broken=True)))
    with pytest.raises(HostUnreachable, match="cut"):
        opened.jobs.download("j", tmp_path / "rows.csv")


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_does_not_have_is_refused_and_never_sent_as_null(flavour: str, number: float) -> None:
    evaluator = Evaluator("def evaluate(inputs, outputs, trace): return outputs")
    with open_client(flavour, "http://127.0.0.1:1") as client:  # no server answers at this address
        with pytest.raises(InvalidRequest, match=r"at \$\.inputs\.a\[1\] is NaN or infinite.*send null"):
            client.evaluate(evaluator, inputs={"a": [1.0, number]})
        with pytest.raises(InvalidRequest, match=r"at \$\.rows\[1\]\.outputs is NaN"):
            client.evaluate_batch(evaluator, [Row(outputs=1.0), Row(outputs=number)])


EMPTY = {"bool": False, "int": 0, "float": 0.0, "str": "", "Sequence": [], "Iterable": [], "Mapping": {}, "dict": {}, "list": []}  # fmt: skip
ROUTED = {"format", "resume"}  # arguments that are not sent, since they decide how the client reads or writes a file


def falsy_arguments() -> Iterator[tuple[str, str, Any]]:
    """Yield the methods' optional arguments that accept a falsy value, each with such a value."""
    for name, verb in verbs_of(Client()).items():
        for argument in inspect.signature(verb).parameters.values():
            kinds = re.split(r"\W+", str(argument.annotation))
            kind = next((one for one in kinds if one in EMPTY), None)
            if argument.default is not argument.empty and kind is not None and argument.name not in ROUTED:
                yield name, argument.name, EMPTY[kind]


class Sent(Exception):
    """Ends a call as soon as its request is known."""


def request_of(flavour: str, monkeypatch: pytest.MonkeyPatch, verb: str, *first: Any, **given: Any) -> httpx.Request:
    """Return the request that a method sends for these arguments; other required arguments get arbitrary values."""
    found: list[httpx.Request] = []

    def handle(asked: httpx.Request) -> httpx.Response:
        asked.read()
        found.append(asked)
        raise Sent

    async def handle_async(asked: httpx.Request) -> httpx.Response:
        await asked.aread()
        return handle(asked)

    values = {"evaluator": Evaluator("code"), "evaluators": ["a"], "rows": [Row()], "data": [{"a": 1}], "files": {}}
    values |= {"index": 3, "label": True, "limit": 5, "rule": AlertRule(Metric.MEAN, job="last"), "answers": []}
    values |= {"model": RegisteredModel("m", "https://api.example.com"), "file": "rows.csv", "path": __file__}
    if verb == "schedules.create":
        given = {"evaluators": ["a"], "dataset": "d", **given}
    with open_client(flavour, "http://host") as client:
        handler = handle if flavour == "sync" else handle_async
        monkeypatch.setattr(client._transport.http, "_transport", httpx.MockTransport(handler))
        group, _, name = verb.rpartition(".")
        method = getattr(getattr(client, group) if group else client, name)
        needed = [
            values.get(one.name, "text")
            for one in list(inspect.signature(verbs_of(Client())[verb]).parameters.values())[1:]
            if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        ]
        with suppress(Sent):
            next(iter(method(*first, *needed[len(first) :], **given)))
    return found[0]


def test_only_none_is_left_out_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    for verb, argument, value in falsy_arguments():
        request = request_of("sync", monkeypatch, verb, **{argument: value})
        sent = dict(request.url.params)
        if request.headers["Content-Type"] == "application/json" and request.content:
            body = json.loads(request.content)
            sent = {**sent, **body, **body.get("config", {})}
        sent |= {"idempotency_key": request.headers.get("Idempotency-Key")}
        written = str(value).lower() if argument in request.url.params else value
        in_path = request.url.path.endswith(f"/{written}")
        # a query cannot contain an empty list
        assert in_path or sent.get(argument, []) == written, (verb, argument)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("verb", sorted(verbs_of(Client()).keys() - {"verbs"}))
def test_a_request_has_only_parameters_of_its_route(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {argument: value for name, argument, value in falsy_arguments() if name == verb}
    request = request_of("sync", monkeypatch, verb, **given)
    scope = {"type": "http", "method": request.method, "path": request.url.path, "root_path": "", "headers": []}
    routes = [one for one in described_app().routes if one.matches(scope)[0] is Match.FULL]
    route = next(one for one in routes if isinstance(one, LateRoute))
    route.build()
    require_known_parameters(request.url.params, route.query_names)


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("verb", ["jobs.rows", "jobs.first_rows", "jobs.records"])
def test_rows_that_did_not_pass_are_asked_for(flavour: str, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = request_of(flavour, monkeypatch, verb, passed=False, min_score=0, text="", error=None)
    assert {"passed": "false", "min_score": "0", "text": ""}.items() <= dict(request.url.params).items()
    assert "error" not in request.url.params


@pytest.mark.parametrize("given", [{"python": ""}, {"path": ""}, {"threshold": 0.0}, {"name": None, "packages": ()}])
def test_a_field_of_an_evaluator_that_is_empty_is_sent(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    sent = json.loads(request_of("sync", monkeypatch, "check", Evaluator("code", **given)).content)["evaluator"]
    assert (
        sent.items()
        >= {name: list(value) if value == () else value for name, value in given.items() if value is not None}.items()
    )


def test_a_model_without_a_key_is_not_registered_for_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = RegisteredModel("m", "https://api.example.com", secret="")
    sent = json.loads(request_of("sync", monkeypatch, "models.create", model, key="").content)
    assert (sent["key"], sent["secret"]) == ("", "")
    assert "model" not in sent
    monkeypatch.setenv("EVALUATOR_HOST_KEY", "eh_of_the_environment")
    with pytest.raises(InvalidRequest, match="not the key of a host"):
        Client(key="")


def test_the_text_of_an_error_has_its_problems_and_hints(client: tuple[Client, list[Answer]]) -> None:
    opened, answers = client
    faults = [{"field": f"rows.{n}", "message": f"wrong {n}", "hint": "write a list"} for n in range(5)]
    body = {"code": "invalid_request", "detail": "the request is invalid: rows.0", "errors": faults}
    answers += [lambda _: httpx.Response(422, json=body), lambda _: httpx.Response(422, json=body | {"errors": []})]
    with pytest.raises(InvalidRequest) as refused:
        opened.info()
    assert str(refused.value).splitlines() == [
        "the request is invalid: rows.0",
        *(f"  rows.{n}: wrong {n}; write a list" for n in range(3)),
        "  and 2 more, in `problems`",
    ]
    assert refused.value.detail == "the request is invalid: rows.0"
    with pytest.raises(InvalidRequest, match=r"^the request is invalid: rows\.0$"):
        opened.info()


def test_a_row_may_be_a_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"inputs": {"a": 1}, "outputs": None}, Row({"a": 2}, 0)]
    sent = json.loads(request_of("sync", monkeypatch, "evaluate_batch", "e", rows).content)["rows"]
    assert sent == [{"inputs": {"a": 1}, "outputs": None}, {"inputs": {"a": 2}, "outputs": 0}]
    with pytest.raises(InvalidRequest, match="a row is a Row or a dictionary, not a str; pass Row"):
        request_of("sync", monkeypatch, "evaluate_batch", "e", ["text"])


def test_help_on_a_stream_names_what_each_client_returns() -> None:
    shown = pydoc.plain(pydoc.render_doc(Client().jobs.rows)).partition(" -> ")[2].splitlines()[0]
    assert shown.index("Generator[evaluator_host.types.results.JobRow, None, None]") < shown.index("AsyncGenerator[")
    documented = [pydoc.plain(pydoc.render_doc(one)) for one in (Client, AsyncClient, *verbs_of(Client()).values())]
    assert not any("model.errors" in one for one in documented)


def test_a_download_in_another_format_is_refused_with_the_name_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"downloaded as xlsx: give \S+rows\.xlsx the suffix \.jsonl, \.csv or"):
        Client().jobs.download("j", tmp_path / "rows.xlsx")
    assert list(tmp_path.iterdir()) == []
