"""Answers evaluators' requests to granted models: checks, budgets, recorded answers, and the provider itself.

Evaluators are untrusted code. So the gateway itself builds each request to a provider. The request has the URL and the
key of the registered model, and the JSON body of the evaluator's request, but with the provider's name for the model.
The size of answers is limited, and the key is masked in them. In recorded answers, the evaluator's secrets are masked,
too.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.sandbox.base import ConnectionWriter
from evaluator_host.engine.service.model_grants import Meter, ModelTerms, RequestUse
from evaluator_host.engine.system.lookups import TENANT_NAMES, Lookups
from evaluator_host.engine.system.turns import Turns
from evaluator_host.platform.models.endpoint import fault_of
from evaluator_host.platform.models.gateway.connection import (
    BODY_BYTES,
    Connection,
    KeptAnswer,
    Rejected,
    Request,
)
from evaluator_host.platform.models.gateway.days import DAY_SPENT, DayBudgets
from evaluator_host.platform.models.gateway.exchange import ANSWER_BYTES, JSON_TYPE, Exchange, Told
from evaluator_host.platform.models.gateway.grants import ANY, GrantedModel, ModelDirectory
from evaluator_host.platform.models.gateway.hosts import HostPort
from evaluator_host.platform.models.gateway.protocols import (
    Route,
    canonical,
    chat_request,
    chat_response,
    model_list,
    refusal,
    route_of,
)
from evaluator_host.platform.models.gateway.proxy import Proxy, RowTraffic, serve_proxied
from evaluator_host.platform.models.gateway.recordings import HttpAnswer, Numbered, Recordings, Repeats
from evaluator_host.platform.models.origin_clients import OriginClients
from evaluator_host.platform.models.table import ModelTable
from evaluator_host.types.errors import HostError, InvalidRequest
from evaluator_host.types.evaluator import Evaluator, Json, ModelBudget, ModelKind, Replay
from evaluator_host.types.json_values import (
    InvalidJson,
    decode_json,
    decode_large,
    encode_json,
    memory_bytes,
)
from evaluator_host.types.outcome import ErrorCode, EvaluationError, ModelUsage
from evaluator_host.types.redaction import Redactor

if TYPE_CHECKING:
    from evaluator_host.platform.store.store import Store

_DECODED_BYTES: Final = 128 << 20  # maximum number of bytes of memory that a decoded request may take
_CONNECTIONS: Final = 64  # maximum number of open connections per row
_ROW_BYTES: Final = 2 * BODY_BYTES  # maximum total number of bytes in the bodies of all unanswered requests of a row
_COPIES: Final = 5  # number of copies of a large answer in memory while it is read, masked, decoded and sent on
# minimum number of large answers that are allowed at once, so that one workspace leaves room for others
_FEWEST_LARGE: Final = 4
# maximum number of requests to providers at a time, over all processes; one workspace gets at most 256
MODELS_AT_ONCE: Final = 341
_NO_RETRY: Final = ("x-should-retry", "false")  # header that keeps the clients of OpenAI and Anthropic from retrying
_FORWARDED: Final = ("anthropic-version", "anthropic-beta")
_FORWARDED_CHARS: Final = 200

_log = logging.getLogger(__name__)


class Gateway:
    """Serves the model and network requests of evaluators with grants. Use it in one event loop only.

    `store` is None on the command line, where only the operator's models exist. `names` looks up the addresses of hosts
    that evaluators may reach.
    """

    def __init__(self, settings: Settings, store: "Store | None", *, names: Lookups = TENANT_NAMES) -> None:
        self.directory = ModelDirectory(settings, store)
        self.settings = settings
        self.days = DayBudgets(settings.model_day or ModelBudget(), store)
        self.recordings = (
            Recordings(ModelTable(store.database), most_bytes=settings.model_answers_mb << 20)
            if store is not None
            else None
        )
        self.clients = OriginClients(settings, at_once=MODELS_AT_ONCE)
        self.proxy = Proxy(settings.network_private, names=names)
        self.turns = Turns(-(-MODELS_AT_ONCE // settings.workers), per_free=3)
        self.large = Turns(large_answers(settings.memory_mb), per_free=3)

    async def grant(self, evaluator: Evaluator, workspace: str, terms: ModelTerms, *, redactor: Redactor) -> "Grant":
        """Return a grant of the models and hosts that an evaluator may use. `redactor` masks the evaluator's secrets.

        Raises:
          InvalidRequest: there is no such model, or the operator does not allow the model or a host.
          NotFound: a model's secret does not exist.
        """
        if terms.replay is not Replay.OFF and self.recordings is None:
            raise InvalidRequest("only a running host records answers of models; give its URL with --url")
        models = await self.directory.resolve(workspace, evaluator.models)
        hosts = await self.directory.operator.hosts(workspace, evaluator.network)
        return Grant(self, evaluator, workspace, models=models, hosts=hosts, terms=terms, redactor=redactor)

    async def aclose(self) -> None:
        """Write the usage counts that are not written yet, and close the connections."""
        await self.days.aclose()
        await self.clients.aclose()


def large_answers(memory_mb: int) -> int:
    """Return the maximum number of large answers in memory: they may fill half of the memory for requests."""
    return max(_FEWEST_LARGE, (memory_mb << 20) // 2 // (_COPIES * ANSWER_BYTES))


@dataclass(frozen=True, slots=True)
class Grant:
    """The models and hosts that an evaluator may use, in one call or in a part of a job. Implements `ModelGrant`."""

    gateway: Gateway
    evaluator: Evaluator
    workspace: str
    models: dict[str, GrantedModel]
    hosts: list[HostPort]
    terms: ModelTerms
    redactor: Redactor  # masks the evaluator's secrets in recorded answers

    def gate(self) -> "ModelGate":
        """Return a new gate, which serves the requests of one row."""
        return ModelGate(self)

    def model(self, name: str) -> GrantedModel | None:
        """Return the model that the code calls by this name; None if it was not granted."""
        return self.models.get(name) or self.models.get(ANY)

    def admits(self, to: HostPort) -> bool:
        """Return whether the evaluator was granted a host."""
        return any(one.includes(to) for one in self.hosts)


class ModelGate:
    """Serves the connections that an evaluator opens to models and hosts while it scores one row; implements `Gate`."""

    def __init__(self, grant: Grant) -> None:
        self._grant = grant
        ceiling = grant.gateway.settings.max_model_requests
        budget = grant.evaluator.budget
        budget = replace(budget, requests=ceiling if budget.requests is None else min(budget.requests, ceiling))
        self._row = Meter(budget, "the row")
        self._meters = [one for one in (self._row, grant.terms.meter) if one is not None]
        self.most_wait_s = grant.gateway.settings.model_wait_s
        self.problem: EvaluationError | None = None
        self._wire: ConnectionWriter | None = None
        self._connections: dict[int, Connection] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._bodies: Counter[int] = Counter()  # bytes of the request bodies that are in memory, keyed by connection
        self._asked = 0
        self._repeats = Repeats()
        self._network_connections = 0
        self._network_bytes = 0
        self._waiting: set[int] = set()
        self._on_wait: Callable[[bool], None] = lambda _waits: None
        self._resume: Callable[[], Awaitable[None]] = partial(asyncio.sleep, 0)
        self._waited_s = 0.0
        self._since: float | None = None

    @property
    def waited_s(self) -> float:
        """Return for how many seconds, so far, the evaluator has waited for answers to its requests."""
        running = asyncio.get_running_loop().time() - self._since if self._since is not None else 0.0
        return self._waited_s + running

    @property
    def usage(self) -> ModelUsage:
        """Return how much the evaluator has used models for this row so far."""
        used = self._row.usage(self.waited_s)
        return replace(used, connections=self._network_connections, network_bytes=self._network_bytes)

    def tell_waits(self, on_wait: Callable[[bool], None], resume: Callable[[], Awaitable[None]]) -> None:
        """From now on, call `on_wait` when the evaluator begins or stops waiting.

        Await `resume` before it continues.
        """
        self._on_wait, self._resume = on_wait, resume

    def open(self, wire: ConnectionWriter) -> None:
        """Begin to serve the evaluator, which is being called for this row. `wire` leads to the sandbox."""
        self._wire = wire
        # the numbers begin again, because an evaluator that is called again repeats its requests
        self._repeats = Repeats()

    def receive(self, connection: int, data: bytes, *, end: bool) -> None:
        """Handle bytes that the evaluator sent on a connection. With `end`, the evaluator has closed the connection."""
        if self._wire is None:
            return
        known = self._connections.get(connection)
        if end:
            self._drop(connection)
        elif known is not None:
            known.receive(data)
        elif len(self._connections) >= _CONNECTIONS:
            self._wire.reply(connection, b"", end=True)
        else:
            made = self._connections[connection] = Connection(
                connection,
                self._wire,
                serve=self._serve,
                refuse=self._cut_off,
                room=partial(self._room, connection),
                admits=self._grant.admits if self._grant.hosts else None,
            )
            made.receive(data)

    def close(self) -> None:
        """End every connection and request."""
        for number in list(self._connections):
            self._connections[number].close()
            self._drop(number)
        self._wire = None

    async def ask(self, model: str, request: dict[str, Json]) -> dict[str, Json]:
        """Send a chat request in OpenAI's form to a granted model.

        Return `{"response": …}`, or `{"error": text, "status": int, "code": the error's code or None}`.

        The row occupies no sandbox while it waits. Budgets and recorded answers apply as to requests from a sandbox.
        """
        granted = self._grant.model(model)
        speaks = granted.registered.kind if granted is not None else ModelKind.OPENAI
        path, body = chat_request(speaks, {**request, "model": model})
        self._asked += 1
        # no callback needs to know when this request waits, because the row occupies no sandbox
        self.tell_waits(lambda _waits: None, partial(asyncio.sleep, 0))
        kept = KeptAnswer(-self._asked)
        self._connections[kept.number] = kept
        self._wait(kept.number, waits=True)
        try:
            await self._answer(kept, Request("POST", path, {}, encode_json(body)))
        finally:
            self._drop(kept.number)
        try:
            answer = decode_json(kept.body)
        except InvalidJson:
            answer = {}
        if kept.status != HTTPStatus.OK:
            error = answer.get("error") if isinstance(answer, dict) else None
            code = error.get("code") if isinstance(error, dict) else None
            return {"error": fault_of(kept.body.decode("utf-8", "replace")), "status": kept.status, "code": code}
        return {"response": chat_response(speaks, answer)}

    def _drop(self, number: int) -> None:
        self._connections.pop(number, None)
        del self._bodies[number]
        self._wait(number, waits=False)
        if (task := self._tasks.pop(number, None)) is not None:
            task.cancel()

    def _room(self, number: int, more: int) -> bool:
        self._bodies[number] += more
        return self._bodies.total() <= _ROW_BYTES

    def _refuse(self, connection: Connection, error: Rejected, kind: ModelKind = ModelKind.OPENAI) -> None:
        if connection.began:
            connection.close()
            return
        headers = [("content-type", JSON_TYPE)] if error.again else [("content-type", JSON_TYPE), _NO_RETRY]
        connection.respond(error.status, headers, refusal(kind, error.status, str(error), error.code))

    def _cut_off(self, connection: Connection, error: Rejected) -> None:
        """Refuse the request on a connection, and stop the work on the request."""
        self._refuse(connection, error)
        del self._bodies[connection.number]
        if (task := self._tasks.pop(connection.number, None)) is not None:
            task.cancel()

    def _wait(self, number: int, *, waits: bool) -> None:
        """Record whether a connection is waiting. The evaluator waits while any of its connections waits."""
        now = asyncio.get_running_loop().time()
        if waits and number in self._connections:
            self._waiting.add(number)
        elif not waits:
            self._waiting.discard(number)
        if self._waiting and self._since is None:
            self._since = now
            self._on_wait(True)  # noqa: FBT003 - the callback takes one positional bool
        elif not self._waiting and self._since is not None:
            self._waited_s += now - self._since
            self._since = None
            self._on_wait(False)  # noqa: FBT003 - as above

    async def _ready(self, number: int, limit: asyncio.Timeout | None = None) -> None:
        """Record that connection `number` no longer waits, and cancel the timeout `limit`.

        If no other connection waits, first wait until the evaluator may run again.
        """
        if limit is not None and not limit.expired():
            limit.reschedule(None)
        if self._waiting == {number}:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._remaining_s()):
                    await self._resume()
        self._wait(number, waits=False)

    def _serve(self, connection: Connection, request: Request) -> None:
        self._wait(connection.number, waits=True)
        task = asyncio.get_running_loop().create_task(self._answer(connection, request))
        self._tasks[connection.number] = task
        task.add_done_callback(partial(self._served, connection.number))

    def _served(self, number: int, task: asyncio.Task[None]) -> None:
        del self._bodies[number]
        if self._tasks.get(number) is task:
            del self._tasks[number]
        self._wait(number, waits=False)

    async def _answer(self, connection: Connection, request: Request) -> None:
        is_anthropic = "anthropic-version" in request.headers or "/messages" in request.path
        kind = ModelKind.ANTHROPIC if is_anthropic else ModelKind.OPENAI
        try:
            if request.to is not None:
                await self._proxy(connection, request, request.to)
                return
            async with asyncio.timeout(self._remaining_s()) as limit:
                await self._answer_in_time(connection, request, kind, partial(self._ready, connection.number, limit))
        except Rejected as error:
            self._refuse(connection, error, kind)
        except TimeoutError:
            waited = (
                f"the row has waited {self.most_wait_s:g} s for models and hosts, and may not wait longer; "
                "send fewer requests, or ask the operator to raise the limit"
            )
            message = f"{waited} (EVALUATOR_HOST_MODEL_WAIT_S)"
            self._refuse(connection, Rejected(504, message, "model_wait_exceeded"), kind)
        except HostError as error:
            self._refuse(connection, Rejected(error.status, error.for_callers().detail, error.code, again=True), kind)
        except Exception:  # noqa: BLE001 - the row must get an answer, whatever happens
            _log.exception("the model gateway has an internal fault")
            self._refuse(
                connection,
                Rejected(500, "the host has an internal fault; its log has the details", "internal", again=True),
                kind,
            )

    def _remaining_s(self) -> float:
        return max(0.0, self.most_wait_s - self.waited_s)

    async def _proxy(self, connection: Connection, request: Request, to: HostPort) -> None:
        """Serve a request that names another host."""
        self._network_connections += 1
        number = connection.number
        row = RowTraffic(
            self._grant.workspace,
            self._count_bytes,
            partial(self._wait, number),
            partial(self._ready, number),
            self._remaining_s,
        )
        proxy = self._grant.gateway.proxy
        await serve_proxied(proxy, connection, request, to, row)
        connection.close()

    def _count_bytes(self, more: int) -> None:
        self._network_bytes += more
        most_mb = self._grant.gateway.settings.network_mb
        if self._network_bytes > most_mb << 20:
            why = f"the row's connections to other hosts may carry at most {most_mb} MB (EVALUATOR_HOST_NETWORK_MB)"
            self.problem = self.problem or EvaluationError(ErrorCode.BUDGET_EXCEEDED, why, hint="transfer less data")
            raise Rejected(413, why, "budget_exceeded")

    async def _answer_in_time(
        self, connection: Connection, request: Request, kind: ModelKind, ready: Callable[[], Awaitable[None]]
    ) -> None:
        grant = self._grant
        if request.method in ("GET", "HEAD") and request.path.removeprefix("/v1") == "/models":
            names = [name for name in grant.models if name != ANY]
            connection.respond(200, [("content-type", JSON_TYPE)], model_list(kind, names))
            return
        route = route_of(request.path) if request.method == "POST" else None
        if route is None:
            message = (
                f"{request.method} {request.path[:200]} is not a request that models answer here: they answer "
                "chat completions, completions, "
            )
            raise Rejected(404, f"{message}responses, embeddings and messages", "not_found")
        body = await _decoded(request.body)
        model = self._model(route, body)
        with self._numbered(canonical(route, model.registered, body)) as asked:
            if (recorded := await self._recorded(model, asked)) is not None:
                tokens = recorded.input_tokens, recorded.output_tokens
                self._count(model, RequestUse(*tokens, model.cost(*tokens), replayed=True))
                headers = [("content-type", recorded.content_type), ("x-evaluator-host-replayed", "true")]
                await ready()
                await connection.answer(recorded.status, headers, recorded.body.encode())
                return
            told = Told(
                partial(self._count, model),
                partial(self._record, model, asked),
                ready,
                partial(grant.gateway.large.turn, grant.workspace),
                self._records,
            )
            exchange = Exchange(
                grant.gateway.clients.lend, model, route, headers=_forwarded(request), body=body, told=told
            )
            await self._begin(model)
            try:
                async with grant.gateway.turns.turn(grant.workspace):
                    await exchange.run(connection)
            finally:
                exchange.end()

    def _numbered(self, request: dict[str, Json]) -> AbstractContextManager[Numbered]:
        return self._repeats.numbered(request) if self._records else nullcontext(Numbered(request))

    def _model(self, route: Route, body: dict[str, Json]) -> GrantedModel:
        named = route.deployment or body.get("model")
        model = self._grant.model(named) if isinstance(named, str) else None
        if model is None:
            known = ", ".join(self._grant.models)
            raise Rejected(
                404,
                f"this evaluator was not granted a model {str(named)[:200]!r}; it may call: {known}. Grant the model "
                f'as "models": ["{str(named)[:80]}=NAME"], where NAME is a registered model',
                "model_not_found",
            )
        if model.registered.kind is not route.kind:
            raise Rejected(
                400,
                (
                    f"{model.name} has an API of kind {model.registered.kind}, but the code sent a request of kind "
                    f"{route.kind}; use a client for {model.registered.kind}"
                ),
                "wrong_api",
            )
        return model

    async def _recorded(self, model: GrantedModel, asked: Numbered) -> HttpAnswer | None:
        grant = self._grant
        if grant.terms.replay is Replay.OFF:
            return None
        recordings = grant.gateway.recordings
        found = await recordings.find(grant.workspace, model.name, asked.request) if recordings is not None else None
        asked.answered = found is not None
        if found is None and grant.terms.replay is Replay.REQUIRE:
            message = "a request to a model has no recorded answer, and `replay` is require"
            self.problem = self.problem or EvaluationError(
                ErrorCode.TARGET_FAILED,
                message,
                hint="run the evaluator once with replay prefer, or import the recorded answers",
            )
            raise Rejected(404, message, "not_recorded")
        return found

    @property
    def _records(self) -> bool:
        return self._grant.terms.replay is not Replay.OFF and self._grant.gateway.recordings is not None

    async def _record(self, model: GrantedModel, asked: Numbered, answer: HttpAnswer) -> None:
        grant = self._grant
        recordings = grant.gateway.recordings
        if self._records and recordings is not None:
            await recordings.keep(grant.workspace, model.name, asked.request, answer, redactor=grant.redactor)
            asked.answered = True

    async def _begin(self, model: GrantedModel) -> None:
        """Count a request against the budgets of row, job and day.

        Raises:
          Rejected: the request exceeds a budget; it then does not count against any budget.
        """
        grant, priced = self._grant, model.cost(0, 0) is not None
        for meter in self._meters:
            self._require(meter.refusal(priced=priced), "raise the budget, or ask models less often")
        for meter in self._meters:
            meter.begin()
        try:
            self._require(await grant.gateway.days.take(grant.workspace, priced=priced), DAY_SPENT)
        except BaseException:
            for meter in self._meters:
                meter.undo()
            raise

    def _require(self, why: str | None, hint: str) -> None:
        """Refuse a request that exceeds a budget. `why` is the reason; if it is None, do nothing."""
        if why is not None:
            self.problem = self.problem or EvaluationError(ErrorCode.BUDGET_EXCEEDED, why, hint=hint)
            raise Rejected(429, why, "budget_exceeded")

    def _count(self, model: GrantedModel, used: RequestUse) -> None:
        for meter in self._meters:
            meter.add(used)
        self._grant.gateway.days.add(self._grant.workspace, model.name, used)


async def _decoded(data: bytes) -> dict[str, Json]:
    """Decode the body of a request.

    Raises:
      Rejected: the body is not a JSON object, or would take too much memory.
    """
    if memory_bytes(data) > _DECODED_BYTES:
        raise Rejected(413, "the request has too many values for this host; send a smaller one", "too_large")
    try:
        body: Any = await decode_large(data)
    except InvalidJson as error:
        raise Rejected(400, f"the body is {error}; send a JSON object", "invalid_json") from error
    if not isinstance(body, dict):
        raise Rejected(400, "the body is not a JSON object; send {…}", "invalid_json")
    return body


def _forwarded(request: Request) -> dict[str, str]:
    """Return those of the request's headers that a provider needs, if their values are plain text."""
    found = {name: request.headers[name] for name in _FORWARDED if name in request.headers}
    return {
        name: value
        for name, value in found.items()
        if value.isascii() and value.isprintable() and len(value) <= _FORWARDED_CHARS
    }
