"""The processes of a host besides its first: one that runs its jobs while there are any, and more that answer calls.

Each has its own sandboxes, a part of the host's limits, and its own connections to the database, as hosts that share
one have. A call goes to the process that has its evaluator warm, by the evaluator's code. All that is not a call is
answered by the first process. One that dies is started again; jobs continue where they were stored last.
"""

import asyncio
import logging
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from zlib import crc32

import httpx
import uvloop
from starlette.types import ASGIApp, Receive, Scope, Send

from evaluator_host.config.settings import SandboxChoice, Settings
from evaluator_host.evaluators.registry import EvaluatorRegistry
from evaluator_host.jobs.open import StoredResources, open_stored_resources, scheduler_of
from evaluator_host.jobs.scheduler import LOOK_EVERY_S, Scheduler
from evaluator_host.model.errors import HostError, MachineExhausted, SandboxUnavailable, StoreUnavailable
from evaluator_host.model.evaluator import EncodedRow, Evaluator, Row
from evaluator_host.model.outcome import EvaluationResult
from evaluator_host.models.judges import open_judges
from evaluator_host.service import Service
from evaluator_host.service.metrics import summed
from evaluator_host.service.model_grants import ModelTerms
from evaluator_host.store.jobs import DesiredState
from evaluator_host.store.store import Store
from evaluator_host.system.forker import Channel, ChannelClosed, Forker, ForkerEnded
from evaluator_host.system.memory import return_large_blocks
from evaluator_host.system.priority import give_way
from evaluator_host.system.spans import recorder, span
from evaluator_host.system.supervisor import Supervisor
from evaluator_host.system.tree import temporary_folder
from evaluator_host.web.auth.package_visibility import PackageVisibility
from evaluator_host.web.http.error_log import log_loop_fault, log_to_stderr
from evaluator_host.web.http.error_responses import error_response
from evaluator_host.wiring.server import Part, serve_http, telemetry_of
from evaluator_host.wiring.service import open_service
from evaluator_host.wiring.store import open_store

_NICE: Final = 5  # of the process of jobs: calls go first
_IDLE_S: Final = 60.0  # without a job; then the process of jobs ends
_JOB_PARTS: Final = 2  # of the host's sandboxes and their memory, while there are jobs: one for calls, one for jobs
_CHORES_S: Final = 1.0
_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_STEADY_S: Final = 30.0  # a process that ran for so long works
_STOP_S: Final = 4.0  # to store the results of running jobs
_METRICS_S: Final = 2.0
_CALLS_AHEAD: Final = 4  # of one evaluator, for each sandbox that it may have in the process that has it warm
_CALLS: Final = frozenset({"/v1/evaluate", "/v1/evaluate/batch", "/v1/check", "/healthz"})
_HOP_BY_HOP: Final = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"expect"})

_log = logging.getLogger(__name__)


class _Worker:
    """A process and the channel to it."""

    def __init__(self, pid: int, channel: Channel) -> None:
        self.pid = pid
        self.channel = channel
        self.metrics = b""  # the last that it sent
        self.left = False  # whether it ended as it should
        self.refusal = ""  # why it could not work


class Workers(Part):
    """The part of a host's first process, which starts the others. As a `JobRunner` it has jobs run in another one.

    With `debug` the processes log the messages of exceptions.
    """

    def __init__(self, forker: Forker, settings: Settings, listener: socket.socket, *, debug: bool) -> None:
        self.count = settings.workers
        self._forker = forker
        self._settings = settings
        self._listener = listener
        self._debug = debug
        self._stopping = False
        self._wake = asyncio.Event()
        self._workers: dict[int, _Worker] = {}  # by number; 0 is the process of jobs
        self._here: Scheduler | None = None  # runs the jobs where no process can be forked any more
        self._ended = b""  # metrics of processes that have ended
        if self.count > 1:  # for what the others pass on
            inner = socket.socket()
            inner.bind(("127.0.0.1", 0))
            inner.listen()
            self.listeners = (inner,)

    @asynccontextmanager
    async def open_resources(self, service: Service, store: Store) -> AsyncIterator[StoredResources]:
        """Open the services over the database, and keep the other processes running during the block."""
        self._service, self._store = service, store
        service.metrics.of_host = self._metrics
        async with AsyncExitStack() as stack:
            if self.count > 1:
                folder = str(stack.enter_context(temporary_folder(None, "evaluator-host-")))
                self._routes = await stack.enter_async_context(_open_routes(service, folder, 0, self.count))
                for number in range(1, self.count):
                    work = partial(self._keep, number, folder)
                    await stack.enter_async_context(service.supervisor.running(f"process {number} of calls", work))
            yield await stack.enter_async_context(open_stored_resources(service, store, self))

    def stop(self) -> None:
        """Have the processes that answer calls stop as this one does."""
        self._stopping = True
        for worker in self._workers.values():
            worker.channel.tell("drain")

    def wake(self) -> None:
        """Check for jobs to run now."""
        self._wake.set()
        if self._here is not None:
            self._here.wake()
        elif (jobs := self._workers.get(0)) is not None:
            jobs.channel.tell("wake")

    def set_desired_state(self, job_id: str, desired: DesiredState) -> None:
        """Stop a running job at once, not only after its next write."""
        if self._here is not None:
            self._here.set_desired_state(job_id, desired)
        elif (jobs := self._workers.get(0)) is not None:
            jobs.channel.tell("set_desired_state", job_id, desired)

    async def run(self) -> None:
        """Keep the process of jobs running while there are jobs, until cancelled."""
        while True:
            try:
                while await self._has_jobs():
                    self._divide(_JOB_PARTS)
                    try:
                        await self._again("jobs", partial(self._live, 0, _STOP_S, run_jobs))
                    finally:
                        self._divide(1)
            except ForkerEnded:
                _log.error("no process for jobs can be started any more: they run in the first one")
                self._here = scheduler_of(self._service, self._store)
                await self._here.run()
            except StoreUnavailable as error:
                _log.warning("no job is started: %s", error.detail)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), LOOK_EVERY_S)
            self._wake.clear()

    async def _has_jobs(self) -> bool:
        queue = self._store.job_queue
        return bool(await queue.waiting(each=1) or await queue.running())

    def _divide(self, parts: int) -> None:
        self._service.pool.divide(parts * self.count)
        for number, worker in self._workers.items():
            if number:
                worker.channel.tell("divide", parts * self.count)

    async def _keep(self, number: int, folder: str) -> None:
        """Keep a process that answers calls running until cancelled."""
        stop_s = self._settings.stop_grace_s + _STOP_S
        inner = self.listeners[0].getsockname()[1]
        while not self._stopping:
            live = partial(self._live, number, stop_s, run_calls, number, folder, inner, sockets=(self._listener,))
            await self._again("calls", live)

    async def _again(self, what: str, live: Callable[[], Awaitable[bool]]) -> None:
        """Run a process, again and again with pauses that grow, until it ends as it should."""
        pause_s = _PAUSE_S
        while True:
            began = time.monotonic()
            try:
                if await live():
                    return
                _log.error("a process of %s was lost; the next one is started in %g s", what, pause_s)
            except HostError as error:
                _log.warning("no process of %s works; the next one is started in %g s: %s", what, pause_s, error.detail)
            self._service.supervisor.restarts += 1
            await asyncio.sleep(pause_s)
            steady = time.monotonic() - began > _STEADY_S
            pause_s = _PAUSE_S if steady else min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _live(
        self, number: int, stop_s: float, work: Callable[..., None], *args: Any, sockets: tuple[socket.socket, ...] = ()
    ) -> bool:
        """Run a worker process until it ends; return whether it ended as it should."""
        name = self._service.pool.backend.name
        backend = SandboxChoice.NONE if name == "unsandboxed" else SandboxChoice(name)
        given = (self._settings, backend, self._debug, *args)
        pid, own = await self._forker.fork(work, *given, sockets=sockets)
        channel = await Channel(partial(self._answer, number)).over(own)
        self._workers[number] = worker = _Worker(pid, channel)
        try:
            await channel.ended()
        except asyncio.CancelledError:
            channel.tell("stop")
            try:
                await asyncio.wait_for(channel.ended(), stop_s)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
            raise
        finally:
            del self._workers[number]
            self._ended = summed((), ended=(self._ended, worker.metrics))
        if worker.refusal:
            raise HostError(worker.refusal)
        return worker.left

    async def _answer(self, number: int, name: str, args: tuple[Any, ...]) -> None:
        """Take the last message of a process."""
        worker = self._workers[number]
        if name == "leave":
            (worker.metrics,) = args
            worker.left = True
        elif name == "refuse":
            (worker.refusal,) = args

    async def _metrics(self) -> bytes:
        """Return the sum of the metrics of all processes, those that have ended among them."""
        texts = [self._service.metrics.text()]
        for worker in list(self._workers.values()):
            with suppress(ChannelClosed, TimeoutError):
                async with asyncio.timeout(_METRICS_S):
                    worker.metrics = await worker.channel.call("metrics")
            texts.append(worker.metrics)
        return summed(texts, ended=(self._ended,))


def run_jobs(channel: socket.socket, settings: Settings, backend: SandboxChoice, debug: bool) -> None:  # noqa: FBT001
    """Be the process of jobs, until there have been none for a minute or the host stops."""
    give_way(_NICE)
    _run(lambda: _run_jobs(channel, settings, backend), debug=debug)


def run_calls(
    channel: socket.socket,
    listener: socket.socket,
    settings: Settings,
    backend: SandboxChoice,
    debug: bool,  # noqa: FBT001
    *place: Any,
) -> None:
    """Be a process that answers calls, until the host stops. `place` as for `_Calls`."""

    async def serve() -> None:
        part = _Calls(settings, backend, *place)
        await part.connect(channel)
        await part.leave(await _refusal_of(serve_http(settings, listener, stop=part.stopping, part=part)))

    _run(serve, debug=debug)


def _run(work: Callable[[], Coroutine[Any, Any, None]], *, debug: bool) -> None:
    log_to_stderr(debug=debug)
    return_large_blocks()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.get_loop().set_exception_handler(log_loop_fault)
            runner.run(work())
    except Exception as error:  # noqa: BLE001 - told without a caller's data
        _log.error("a process of this host ends", exc_info=error)
    finally:
        logging.shutdown()


async def _run_jobs(end: socket.socket, settings: Settings, backend: SandboxChoice) -> None:
    jobs = _Jobs(settings, backend)
    channel = await Channel(jobs.answer).over(end)
    ending = asyncio.create_task(channel.ended())
    # The host was killed. Jobs that are given back now would not count as ones that may have killed it.
    ending.add_done_callback(lambda task: None if task.cancelled() else os._exit(1))
    told = await _refusal_of(jobs.run())
    with suppress(ChannelClosed):
        await (channel.call("leave", jobs.metrics) if told is None else channel.call("refuse", told))
    ending.cancel()
    channel.close()


async def _refusal_of(work: Coroutine[Any, Any, None]) -> str | None:
    """Return why a process could not do its work: the host says it, and starts the process again."""
    try:
        await work
    except HostError as error:
        return error.detail
    except OSError as error:
        if (lacks := MachineExhausted.cause_of(error)) is None:
            raise
        return lacks.detail
    return None


class _Jobs:
    """The process of jobs. Until its database and sandboxes are open, it only listens to the host."""

    def __init__(self, settings: Settings, backend: SandboxChoice) -> None:
        self.metrics = b""
        self._settings, self._backend = settings, backend
        self._stop = asyncio.Event()
        self._open: tuple[Service, Scheduler] | None = None

    async def answer(self, name: str, args: tuple[Any, ...]) -> bytes | None:
        """Answer the host."""
        if name == "stop":
            self._stop.set()
        elif self._open is not None:
            service, scheduler = self._open
            if name == "wake":
                scheduler.wake()
            elif name == "set_desired_state":
                scheduler.set_desired_state(*args)
            elif name == "metrics":
                return service.metrics.text()
        return b"" if name == "metrics" else None

    async def run(self) -> None:
        """Run jobs until there have been none for a minute or the host stops.

        Raises:
          HostError: the database or the sandboxes cannot be used.
        """
        supervisor = Supervisor()
        async with (
            telemetry_of(self._settings, "jobs")(None),
            open_store(self._settings) as store,
            open_judges(self._settings, store) as models,
        ):
            visibility = PackageVisibility(store.package_sets)
            async with open_service(
                self._settings,
                prewarm=False,
                models=models,
                on_set_used=visibility.note,
                supervisor=supervisor,
                backend=self._backend,
                parts=_JOB_PARTS,
            ) as service:
                scheduler = scheduler_of(service, store)
                self._open = service, scheduler
                async with supervisor.running("the scheduler of jobs", scheduler.run):
                    await self._wait(scheduler, visibility)
                self.metrics = service.metrics.text()

    async def _wait(self, scheduler: Scheduler, visibility: PackageVisibility) -> None:
        while not self._stop.is_set() and scheduler.idle_s < _IDLE_S:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), _CHORES_S)
            with suppress(HostError):
                await visibility.write()


class _Calls(Part):
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
        async with _open_routes(service, self._folder, self._number, self.count):
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
async def _open_routes(service: Service, folder: str, number: int, count: int) -> AsyncIterator[_Routes]:
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
