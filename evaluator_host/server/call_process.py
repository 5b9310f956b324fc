"""The additional processes of a host, which answer calls (evaluations), and the connections between all processes.

A call goes to the process in which its evaluator is loaded; the evaluator's code decides which process that is. All
other requests go to the first process.
"""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from httptools import HttpResponseParser
from starlette.types import ASGIApp, Receive, Scope, Send

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.service.peers import Peers
from evaluator_host.engine.system.forker import Channel, ChannelClosed
from evaluator_host.engine.system.spans import recorder, span
from evaluator_host.engine.system.threads import work_for
from evaluator_host.platform.evaluators.registry import EvaluatorRegistry
from evaluator_host.platform.evaluators.table import Evaluators
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.http.error_log import CutOff
from evaluator_host.platform.http.error_responses import error_response
from evaluator_host.platform.store.store import Store
from evaluator_host.server.app import create_calls_app
from evaluator_host.server.server import Application, Part
from evaluator_host.types.errors import HostError, SandboxUnavailable
from evaluator_host.types.evaluator import EncodedRow, Evaluator, Row
from evaluator_host.types.outcome import EvaluationResult

# number of calls that are sent to an evaluator's process for each sandbox that the evaluator may have there
_CALLS_AHEAD: Final = 4
_CALLS: Final = frozenset({"/v1/evaluate", "/v1/evaluate/batch", "/v1/check", "/healthz"})
_PART_BYTES: Final = 1 << 16  # maximum number of bytes of a response to pass on at once
_OF_CONNECTIONS: Final = frozenset({b"connection", b"keep-alive", b"expect"})
_FORWARDED_FOR: Final = b"x-forwarded-for"


class CallProcess(Part):
    """The services of an additional process, which answers calls, and passes other requests on to the first process.

    `number` is the number of this process; the first process has 0. `folder` contains the Unix sockets of the
    processes. `inner` is the port on which the first process receives requests that are passed on.
    """

    def __init__(self, settings: Settings, backend: SandboxChoice, number: int, folder: str, inner: int) -> None:
        self.count = settings.workers
        self.backend = backend
        self.stopping = asyncio.Event()
        self.peers = self._owners = CallOwners(settings, folder, number)
        self._inner = inner
        self._service: Service | None = None
        self._parts = self.count
        self.process = f"calls {number}"

    async def connect(self, end: socket.socket) -> None:
        """Connect to the first process through the socket `end`, and begin to answer its messages."""
        self._channel = await Channel(self._answer).over(end)
        self._ending = asyncio.create_task(self._channel.ended.wait())
        self._ending.add_done_callback(lambda _: self.stopping.set())

    async def leave(self, refusal: str | None) -> None:
        """Tell the first process that this process ends as planned, or (`refusal`) why it cannot work."""
        with suppress(ChannelClosed):
            if refusal is not None:
                await self._channel.call("refuse", refusal)
            elif self._service is not None:
                await self._channel.call("leave", self._service.metrics.text())
        self._channel.close()

    @asynccontextmanager
    async def open_app(self, service: Service, store: Store, access: Access) -> AsyncIterator[Application]:
        """Yield the application, which answers calls here and passes other requests on to the first process."""
        self._service = service
        service.pool.divide(self._parts)
        registry = EvaluatorRegistry(service, Evaluators(store.database), store.usage)
        async with self._owners.answering(service):
            app = create_calls_app(service, service.settings, access, registry)
            yield app, lambda drain, traced: _PassedOn(traced(drain), self._inner)

    async def _answer(self, name: str, args: tuple[Any, ...]) -> bytes | None:
        match name:
            case "metrics":
                return b"" if self._service is None else self._service.metrics.text()
            case "divide":
                (self._parts,) = args
                if self._service is not None:
                    self._service.pool.divide(self._parts)
            case "release":
                if self._service is not None:
                    await self._service.environments.release(*args)
            case _:
                self.stopping.set()
        return None


class CallOwners(Peers):
    """Sends each call to the owner of its evaluator. The owner is the process that keeps this evaluator ready.

    Args:
      settings: Settings of the operator.
      folder: Folder of the processes' Unix sockets.
      number: Number of this process; the first has 0.
    """

    def __init__(self, settings: Settings, folder: str, number: int) -> None:
        self._folder, self._number, self._count = folder, number, settings.workers
        self._sockets = Path(folder)
        self._channels: dict[int, Channel] = {}  # channels to the other processes, keyed by number
        self._under_way: Counter[int] = Counter()
        self._most = _CALLS_AHEAD * settings.max_sandboxes_per_evaluator

    async def evaluate(self, evaluator: Evaluator, row: Row | EncodedRow, caller: Caller) -> EvaluationResult | None:
        """Evaluate a row in the process that owns its evaluator.

        Return None if this process is the owner, or if the owner is too busy.
        """
        code = crc32(evaluator.code.encode(), crc32(caller.workspace.encode()))
        owner = code % self._count
        if owner == self._number or self._under_way[code] >= self._most:
            return None
        self._under_way[code] += 1
        try:
            channel = await self._channel_to(owner)
            headers = spans.carrier() if (spans := recorder()) is not None else None
            result: EvaluationResult = await channel.call("evaluate", headers, evaluator, row, caller)
        except (OSError, ChannelClosed, RecursionError):  # the owner is not running, or the row is nested too deeply
            return None
        else:
            return result
        finally:
            self._under_way[code] -= 1
            if not self._under_way[code]:
                del self._under_way[code]

    async def _channel_to(self, owner: int) -> Channel:
        if (known := self._channels.get(owner)) is None or known.ended.is_set():
            path = str(self._sockets / str(owner))
            _, made = await asyncio.get_running_loop().create_unix_connection(lambda: Channel(_nothing), path)
            if self._channels.get(owner) is known:  # meanwhile, another call may have connected to the owner
                self._channels[owner] = made
            else:
                made.close()
        return self._channels[owner]

    @asynccontextmanager
    async def answering(self, service: Service) -> AsyncIterator[None]:
        """During the block, answer the calls that other processes send to this process."""
        opened = os.open(self._folder, os.O_PATH | os.O_DIRECTORY)
        # this path is short, because the path of a socket may have at most 107 bytes
        self._sockets = Path(f"/proc/self/fd/{opened}")
        served, path = _OwnCalls(service), self._sockets / str(self._number)
        path.unlink(missing_ok=True)  # a process that died may have left a socket here
        server = await asyncio.get_running_loop().create_unix_server(served.accept, str(path))
        try:
            yield
        finally:
            server.close()
            served.close()
            for channel in self._channels.values():
                channel.close()
            os.close(opened)


async def _nothing(name: str, _: tuple[Any, ...]) -> None:
    """Raise an error for every call: the owner of an evaluator never calls back the process that called it."""
    raise HostError(f"this process of the host does not answer calls of {name!r}")


class _OwnCalls:
    """Answers the calls that the other processes of a host send to this process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._channels: set[Channel] = set()

    def accept(self) -> Channel:
        """Return a channel on which another process can call this process."""
        self._channels = {channel for channel in self._channels if not channel.ended.is_set()}
        self._channels.add(channel := Channel(self._evaluate))
        return channel

    async def _evaluate(self, _: str, args: tuple[Any, ...]) -> EvaluationResult:
        headers, evaluator, row, caller = args
        work_for(caller.workspace)
        with self._service.calls.call(), span("evaluate in another process", {}, headers):
            return await self._service.evaluate(evaluator, row, caller=caller)

    def close(self) -> None:
        for channel in self._channels:
            channel.close()


class _PassedOn:
    """ASGI application that answers calls here, and lets the first process of the host answer everything else.

    Requests are passed on unchanged, so that the first process can check them as if it had received them itself.
    """

    def __init__(self, app: ASGIApp, inner: int) -> None:
        self._app = app
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _CALLS:
            await self._app(scope, receive, send)
            return
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._inner)
            passing = asyncio.create_task(_pass_request(scope, receive, writer))
            try:
                if await _pass_answer(reader, send, has_body=scope["method"] != "HEAD"):
                    return
            finally:
                passing.cancel()
                writer.close()
        error = SandboxUnavailable("the first process of this host does not answer; try again")
        await error_response(scope, error)(scope, receive, send)


async def _pass_request(scope: Scope, receive: Receive, writer: asyncio.StreamWriter) -> None:
    """Pass a request on as it arrives. If the client hangs up, close the connection to the first process."""
    headers = [one for one in scope["headers"] if one[0] not in _OF_CONNECTIONS | {_FORWARDED_FOR}]
    # the first process trusts this header, because the request comes from this machine
    headers += [(b"connection", b"close"), (_FORWARDED_FOR, (scope["client"] or ("unknown",))[0].encode("latin-1"))]
    chunked = any(name == b"transfer-encoding" for name, _ in headers)
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    lines = [b"%b %b HTTP/1.1" % (scope["method"].encode(), target), *map(b"%b: %b".__mod__, headers), b"", b""]
    writer.write(b"\r\n".join(lines))
    with suppress(OSError):  # the first process may answer without reading the rest of the body
        while (message := await receive())["type"] == "http.request":
            body = message.get("body", b"")
            if chunked and body:
                body = b"%x\r\n%b\r\n" % (len(body), body)
            if chunked and not message.get("more_body", False):
                body += b"0\r\n\r\n"
            writer.write(body)
            await writer.drain()
    writer.close()


class _PassedAnswer:
    """The parts of a response that is passed on. A parser's callbacks collect them."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.parts: list[bytes] = []  # parts of the body that are not passed on yet
        self.has_head = self.ended = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.has_head = True

    def on_body(self, part: bytes) -> None:
        self.parts.append(part)

    def on_message_complete(self) -> None:
        self.ended = True


async def _pass_answer(reader: asyncio.StreamReader, send: Send, *, has_body: bool) -> bool:
    """Pass a response on as it arrives, and return whether there was one. Without `has_body`, it has only a head.

    Raises:
      CutOff: the response broke off.
    """
    answer = _PassedAnswer()
    parser = HttpResponseParser(answer)
    begun, data = False, b" "
    while data and not answer.ended:
        with suppress(OSError):
            data = b""
            data = await reader.read(_PART_BYTES)
        parser.feed_data(data)
        if answer.has_head and not begun:
            begun, status = True, parser.get_status_code()
            # headers that are not passed on, because this process sets them itself
            left_out = {*_OF_CONNECTIONS, b"transfer-encoding", b"date"}
            kept = [(name.lower(), value) for name, value in answer.headers if name.lower() not in left_out]
            await send({"type": "http.response.start", "status": status, "headers": kept})
        if answer.parts:
            await send({"type": "http.response.body", "body": b"".join(answer.parts), "more_body": True})
            answer.parts.clear()
    if begun and has_body and not answer.ended:
        raise CutOff
    if begun:
        await send({"type": "http.response.body", "body": b""})
    return begun
