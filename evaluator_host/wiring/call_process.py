"""A process that answers calls beside a host's first one, and the routes by which calls reach the right process.

A call goes to the process that has its evaluator warm, by the evaluator's code. The first process answers all that is
not a call.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from zlib import crc32

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from evaluator_host.config.settings import SandboxChoice, Settings
from evaluator_host.evaluators.registry import EvaluatorRegistry
from evaluator_host.jobs.open import StoredResources
from evaluator_host.model.errors import SandboxUnavailable
from evaluator_host.model.evaluator import EncodedRow, Evaluator, Row
from evaluator_host.model.outcome import EvaluationResult
from evaluator_host.service import Service
from evaluator_host.service.model_grants import ModelTerms
from evaluator_host.store.store import Store
from evaluator_host.system.forker import Channel, ChannelClosed
from evaluator_host.system.spans import recorder, span
from evaluator_host.web.http.error_responses import error_response
from evaluator_host.wiring.server import Part

_CALLS_AHEAD: Final = 4  # of one evaluator, for each sandbox that it may have in the process that has it warm
_CALLS: Final = frozenset({"/v1/evaluate", "/v1/evaluate/batch", "/v1/check", "/healthz"})
_HOP_BY_HOP: Final = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"expect"})


class CallProcess(Part):
    """The part of a process that answers calls beside the first one.

    `number` is that of this process, the first one has 0; `folder` is where the processes find each other, `inner` the
    port at which the first one answers what is passed on to it.
    """

    def __init__(self, settings: Settings, backend: SandboxChoice, number: int, folder: str, inner: int) -> None:
        self.count = settings.workers
        self.backend = backend
        self.stopping = asyncio.Event()
        self._number, self._folder, self._inner = number, folder, inner
        self._service: Service | None = None
        self._parts = self.count
        self.process = f"calls {number}"

    async def connect(self, end: socket.socket) -> None:
        """Answer the first process."""
        self._channel = await Channel(self._answer).over(end)
        self._ending = asyncio.create_task(self._channel.ended())
        self._ending.add_done_callback(lambda _: self.stopping.set())

    async def leave(self, refusal: str | None) -> None:
        """Tell the first process that this one ends as it should, or why it cannot work."""
        with suppress(ChannelClosed):
            if refusal is not None:
                await self._channel.call("refuse", refusal)
            elif self._service is not None:
                await self._channel.call("leave", self._service.metrics.text())
        self._channel.close()

    @asynccontextmanager
    async def open_resources(self, service: Service, store: Store) -> AsyncIterator[StoredResources]:
        """Open what calls need of the database: the stored evaluators."""
        self._service = service
        service.pool.divide(self._parts)
        nothing: dict[str, Any] = dict.fromkeys(one.name for one in fields(StoredResources))
        registry = EvaluatorRegistry(service, store.evaluators, store.usage)
        async with open_routes(service, self._folder, self._number, self.count):
            yield StoredResources(**{**nothing, "evaluators": registry, "traffic": SimpleNamespace()})

    def application(self, drain: ASGIApp, whole: Callable[[], ASGIApp]) -> ASGIApp:  # noqa: ARG002 - has no wires
        """Return the application: calls are answered here, everything else is passed on."""
        return _PassedOn(drain, self._inner)

    async def _answer(self, name: str, args: tuple[Any, ...]) -> bytes | None:
        match name:
            case "metrics":
                return b"" if self._service is None else self._service.metrics.text()
            case "divide":
                (self._parts,) = args
                if self._service is not None:
                    self._service.pool.divide(self._parts)
            case _:
                self.stopping.set()
        return None


class _Routes:
    """Sends each call to the process that has its evaluator warm, and serves those that others send here."""

    def __init__(self, service: Service, folder: str, number: int, count: int) -> None:
        self._service, self._folder, self._number, self._count = service, Path(folder), number, count
        self._channels: dict[int, Channel] = {}
        self._accepted: set[Channel] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way: Counter[int] = Counter()
        self._most = _CALLS_AHEAD * service.settings.max_sandboxes_per_evaluator

    async def elsewhere(
        self,
        evaluator: Evaluator,
        row: Row | EncodedRow,
        workspace: str,
        *rest: str | float | ModelTerms | None,
    ) -> EvaluationResult | None:
        """Evaluate a row in the process that has its evaluator; None where this one should, or that one is too busy."""
        code = crc32(evaluator.code.encode(), crc32(workspace.encode()))
        owner = code % self._count
        if owner == self._number or self._under_way[code] >= self._most:
            return None
        self._under_way[code] += 1
        try:
            channel = self._channels.get(owner) or await self._connect(owner)
            headers = spans.carrier() if (spans := recorder()) is not None else None
            result: EvaluationResult = await channel.call("evaluate", headers, evaluator, row, workspace, *rest)
        except (OSError, ChannelClosed):  # it has died, or has not begun
            return None
        else:
            return result
        finally:
            self._under_way[code] -= 1
            if not self._under_way[code]:
                del self._under_way[code]

    def accept(self) -> Channel:
        """Return a channel that answers the calls of another process."""
        channel = Channel(self._evaluate)
        self._accepted.add(channel)
        return channel

    async def _connect(self, owner: int) -> Channel:
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_unix_connection(lambda: Channel(self._evaluate), str(self._folder / str(owner)))
        if (known := self._channels.get(owner)) is not None:  # another call was faster
            channel.close()
            return known
        self._channels[owner] = channel
        task = asyncio.create_task(channel.ended())
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._channels.pop(owner))
        task.add_done_callback(self._tasks.discard)
        return channel

    async def _evaluate(self, _: str, args: tuple[Any, ...]) -> EvaluationResult:
        headers, evaluator, row, workspace, lock, terms, load_timeout_s = args
        with self._service.calls.call(), span("evaluate in another process", {}, headers):
            return await self._service.evaluate(
                evaluator, row, workspace=workspace, lock=lock, terms=terms, load_timeout_s=load_timeout_s
            )

    def close(self) -> None:
        for channel in [*self._channels.values(), *self._accepted]:
            channel.close()


@asynccontextmanager
async def open_routes(service: Service, folder: str, number: int, count: int) -> AsyncIterator[_Routes]:
    """Exchange calls with the host's other processes during the block."""
    routes, path = _Routes(service, folder, number, count), Path(folder) / str(number)
    path.unlink(missing_ok=True)  # of a process that died
    server = await asyncio.get_running_loop().create_unix_server(routes.accept, str(path))
    service.elsewhere = routes.elsewhere
    try:
        yield routes
    finally:
        server.close()
        routes.close()


class _PassedOn:
    """ASGI application that answers calls here, and has the first process of the host answer everything else."""

    def __init__(self, app: ASGIApp, inner: int) -> None:
        self._app = app
        self._url = httpx.URL(f"http://127.0.0.1:{inner}")
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None),
            trust_env=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=32),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _CALLS:
            await self._app(scope, receive, send)
            return
        answering = asyncio.create_task(self._pass(scope, receive, send))
        try:
            await asyncio.shield(answering)
        except httpx.TransportError:
            error = SandboxUnavailable("the first process of this host does not answer; try again")
            await error_response(scope, error)(scope, receive, send)
        finally:
            answering.cancel()

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [one for one in scope["headers"] if one[0] not in _HOP_BY_HOP]
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
        request = httpx.Request(
            scope["method"],
            self._url.copy_with(raw_path=target),
            headers=headers,
            content=_body(receive) if has_body else None,
        )
        response = await self._client.send(request, stream=True)
        hung_up = asyncio.create_task(_hang_up(receive, response)) if not has_body else None
        try:
            kept = [(name.lower(), value) for name, value in response.headers.raw if name.lower() not in _HOP_BY_HOP]
            await send({"type": "http.response.start", "status": response.status_code, "headers": kept})
            async for chunk in response.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            if hung_up is not None:
                hung_up.cancel()
            await response.aclose()


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise httpx.ReadError("the client has hung up")
        more = message.get("more_body", False)
        yield message.get("body", b"")


async def _hang_up(receive: Receive, response: httpx.Response) -> None:
    """Close a response whose client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass
    await response.aclose()
