"""Serves a service over HTTP with uvicorn, from the first sandbox to a clean shutdown.

When the host stops, new calls get 503. Running calls have some time to finish; then they get 503, too. Every call gets
exactly one response. A program can embed a host: `serve_http(settings, listener)` needs only a listening socket, and no
command line.
"""

import asyncio
import gc
import json
import resource
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from email.utils import formatdate
from functools import lru_cache, partial
from typing import Final, TypeAlias

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.server import ServerState

from evaluator_host import __version__
from evaluator_host.client import DEFAULT_URL
from evaluator_host.engine.config.settings import (
    FEWEST_SANDBOXES,
    SANDBOX_DESCRIPTORS,
    SandboxChoice,
    Settings,
    most_descriptors,
)
from evaluator_host.engine.environments.toolchain import remove_old_tools
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.metrics import Metrics
from evaluator_host.engine.service.peers import Peers
from evaluator_host.engine.system.extras import extra
from evaluator_host.engine.system.keep_alive import keep_alive
from evaluator_host.engine.system.memory import return_large_blocks, use_large_pages
from evaluator_host.engine.system.signals import stopping_signals
from evaluator_host.engine.system.supervisor import Supervisor
from evaluator_host.engine.system.threads import share_threads
from evaluator_host.platform.evaluators.bodies import EXACT_MATCH
from evaluator_host.platform.host import Host, open_host
from evaluator_host.platform.http.auth.access import Access, open_access
from evaluator_host.platform.http.connection_limits import ConnectionLimits
from evaluator_host.platform.http.error_log import log_loop_fault
from evaluator_host.platform.http.error_responses import error_response
from evaluator_host.platform.models.judges import open_judges
from evaluator_host.platform.store.opening import open_store
from evaluator_host.platform.store.store import Store
from evaluator_host.server.app import create_app
from evaluator_host.types.entry_point import EntryPoint
from evaluator_host.types.errors import Misconfigured, SandboxUnavailable

_OWN_DESCRIPTORS: Final = 224  # file descriptors for sixteen sandboxes (six each), logs, database, engine and builds
_FEWEST_CONNECTIONS: Final = 64
_THREAD_TURN_S: Final = 0.0005  # seconds after which a thread must release the interpreter: a tenth of Python's default
_CUT_S: Final = 2.0  # seconds to answer running calls with 503 and stop their rows
_SETTLED_S: Final = 10.0  # seconds after which most objects that live until the host ends have been created
# seconds that an idle connection stays open: longer than clients and proxies keep it (5 to 60 s by default), because
# closing it would lose a request that is on its way
_IDLE_S: Final = 75
_FLUSH_S: Final = 1  # seconds to send the last responses
_WIRES: Final[EntryPoint[Callable[..., ASGIApp]]] = EntryPoint("evaluator_host.platform.wires.routes:mount_wires")
Traced: TypeAlias = Callable[[ASGIApp], ASGIApp]
Application: TypeAlias = tuple[ASGIApp, Callable[[ASGIApp, Traced], ASGIApp]]
"""An application, and a function that wraps it with draining and tracing before it is served."""
_TELEMETRY: Final[EntryPoint[Callable[[str, Metrics | None], AbstractAsyncContextManager[Traced]]]] = EntryPoint(
    "evaluator_host.server.telemetry:open_telemetry"
)
FIRST_PROCESS: Final = "first"
_ALWAYS: Final = frozenset({"/healthz", "/metrics"})  # paths that a host answers while it shuts down


class Part:
    """The services that a process of a host runs.

    This class runs all services. In a host with several processes, each process runs only some services, which a
    subclass defines.

    Attributes:
      count: Number of processes that answer calls. Each of them gets an equal part of the sandbox and rate limits.
      backend: The sandbox backend, if another process has tested it already; None to choose one.
      listeners: More sockets to listen on.
      process: Name of the process in traces. The first process exports the metrics of all processes.
      peers: The other processes of the host.
    """

    count = 1
    process = FIRST_PROCESS
    backend: SandboxChoice | None = None
    listeners: tuple[socket.socket, ...] = ()
    peers = Peers()

    @asynccontextmanager
    async def open_app(self, service: Service, store: Store, access: Access) -> AsyncIterator[Application]:
        """Open the services of this process, and run their tasks during the block."""
        async with self.open_host(service, store) as host:
            app = create_app(host, access)

            def whole(drain: ASGIApp, traced: Traced) -> ASGIApp:
                return traced(_WIRES.load()(app, drain, host, access))

            yield app, whole

    def open_host(self, service: Service, store: Store) -> AbstractAsyncContextManager[Host]:
        """Open the resources, and run their tasks."""
        return open_host(service, store)

    def stop(self) -> None:
        """End what this part started, when the process begins to stop. Parts of this class have nothing to end."""


ALL: Final = Part()


class Drain:
    """ASGI middleware that refuses or ends requests at shutdown. As the outermost middleware, it gets every request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._calls: set[asyncio.Task[None]] = set()
        self._refusing = False
        self._cutting = False
        self.idle = asyncio.Event()  # set once new calls are refused and no call is running

    def begin(self) -> None:
        """Begin to refuse new calls. Running calls continue."""
        self._refusing = True
        self._note_idle()

    def cut(self) -> None:
        """End every running call with a 503. If its response has begun, cut the response off."""
        self._refusing = self._cutting = True
        for call in self._calls:
            call.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, or refuse it during the shutdown."""
        if scope["type"] != "http" or scope["path"] in _ALWAYS:
            await self._app(scope, receive, send)
            return
        if self._refusing:
            await _refuse(scope, receive, send)
            return
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - an ASGI server calls from a task
        answering = False

        async def sending(message: Message) -> None:
            nonlocal answering
            answering = True
            await send(message)

        self._calls.add(task)
        try:
            await self._app(scope, receive, sending)
        except asyncio.CancelledError:
            if not self._cutting:
                raise
            task.uncancel()
            if not answering:  # a response that has begun is cut off when the server closes the connection
                await _refuse(scope, receive, send)
        finally:
            self._calls.discard(task)
            if self._refusing:
                self._note_idle()

    def _note_idle(self) -> None:
        if not self._calls:
            self.idle.set()


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    response = error_response(scope, SandboxUnavailable("this host is shutting down; try again, or call another one"))
    response.headers["Retry-After"] = "1"
    response.headers["Connection"] = "close"
    await response(scope, receive, send)


@lru_cache(maxsize=1)
def _date_header(second: int) -> list[tuple[bytes, bytes]]:
    return [(b"date", formatdate(second, usegmt=True).encode())]


class _State(ServerState):
    """The state of uvicorn's server. The date header is computed for each response, so no timer has to update it."""

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers of every response."""
        return _date_header(int(time.time()))

    @default_headers.setter
    def default_headers(self, _: list[tuple[bytes, bytes]]) -> None:
        """Ignore the headers of the configuration."""


class _Server(uvicorn.Server):
    """A uvicorn server that prints a greeting, stops in two steps, and uses no processor time while it is idle.

    The first signal makes it refuse new calls and give running calls some time; a second signal ends them immediately.
    Uvicorn's own handlers end the process before the sandboxes, so they are not used.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        drain: Drain,
        greet: Callable[[str], object],
        greeting: tuple[str, ...],
        grace_s: float,
        on_stop: tuple[Callable[[], object], ...],
    ) -> None:
        super().__init__(config)
        self._greet = greet
        self._greeting = greeting
        self._drain = drain
        self._grace_s = grace_s
        self._on_stop = on_stop
        self._hurry = asyncio.Event()
        self._ended = asyncio.Event()
        self.server_state = _State()
        self._stopping: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for line in self._greeting:
            self._greet(line)

    async def main_loop(self) -> None:
        await self._ended.wait()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        loop = asyncio.get_running_loop()
        handled = stopping_signals() if threading.current_thread() is threading.main_thread() else ()
        for number in handled:
            loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)

    async def stop_after(self, event: asyncio.Event) -> None:
        """When the event is set, start the shutdown, as the first signal does."""
        await event.wait()
        self._on_signal()

    def _on_signal(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop())
        else:
            self._hurry.set()

    async def _stop(self) -> None:
        for call in self._on_stop:
            call()
        self._drain.begin()
        waits = [asyncio.ensure_future(event.wait()) for event in (self._drain.idle, self._hurry)]
        await asyncio.wait(waits, timeout=self._grace_s, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        self._drain.cut()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CUT_S):
                await self._drain.idle.wait()
        self.should_exit = True
        self._ended.set()


async def serve_http(
    settings: Settings,
    listener: socket.socket,  # a bound TCP socket, which may be listening already; it is closed at the end
    *,
    greet: Callable[[str], object] | None = None,  # called with each line of the greeting, once requests are accepted
    # event that stops the host as a first signal does: running calls get `settings.stop_grace_s` to finish
    stop: asyncio.Event | None = None,
    on_stop: Callable[[], object] = lambda: None,
    part: Part = ALL,
) -> None:
    """Serve HTTP on a listening socket until SIGINT, SIGTERM or SIGHUP, or until `stop` is set.

    Signals are handled in the main thread only. Before listening on an address that other machines reach, call
    `require_key`.

    `on_stop` is called when the host begins to stop. `part` says which services this process runs; by default, all
    services of the host.

    Raises:
      SandboxUnavailable: no backend works.
      Misconfigured: a newer version has used the database.
      StoreUnavailable: the database does not answer.
    """
    keep_alive(listener)
    asyncio.get_running_loop().set_exception_handler(log_loop_fault)
    return_large_blocks()
    sys.setswitchinterval(_THREAD_TURN_S)
    share_threads()
    telemetry = telemetry_of(settings, part.process)
    limits = {"queue_limit": settings.queue_limit, "memory_mb": settings.memory_mb}
    settings = settings.model_copy(update={name: -(-limit // part.count) for name, limit in limits.items()})
    supervisor, connections = Supervisor(), room_for_connections(settings.max_sandboxes)
    async with (
        open_store(settings) as store,
        open_access(store, settings, supervisor, connections=connections, parts=part.count) as access,
        open_judges(settings, store) as models,
        open_engine(
            settings,
            models=models,
            on_set_used=access.package_visibility.note,
            supervisor=supervisor,
            backend=part.backend,
            parts=part.count,
            peers=part.peers,
            prewarm=True,
        ) as service,
        telemetry(service.metrics if part.process == FIRST_PROCESS else None) as traced,
        part.open_app(service, store, access) as (app, around),
    ):
        if part.process == FIRST_PROCESS and service.pool.backend.name != SandboxChoice.DOCKER:
            await asyncio.to_thread(remove_old_tools, settings.data_dir)
        service.metrics.watch("audit_dropped", "Audit entries lost because the database failed.", access.dropped)
        drain = Drain(app)
        application = around(drain, traced)
        lines = greeting(base_url(listener), service.info().backend, access) if greet else ()
        stopping_begins = partial(supervisor.stop_within, settings.stop_grace_s)
        server = _Server(
            _http_config(application, connections),
            drain=drain,
            greet=greet or str,
            greeting=lines,
            grace_s=settings.stop_grace_s,
            on_stop=(on_stop, stopping_begins, access.streams.close, part.stop),
        )
        gc.freeze()  # all present objects live until the host ends, so the garbage collector can skip them
        stopping = asyncio.create_task(server.stop_after(stop or asyncio.Event()))
        settling = asyncio.create_task(_settle())
        try:
            await server.serve(sockets=[listener, *part.listeners])
        finally:
            stopping.cancel()
            settling.cancel()


async def _settle() -> None:
    """Wait, then move this process's data to large pages. The wait is for hosts that soon end: they would not gain."""
    await asyncio.sleep(_SETTLED_S)
    await asyncio.to_thread(use_large_pages)


def _http_config(application: ASGIApp, connections: int) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        loop="none",
        http=type("Connection", (ConnectionLimits,), {"most_connections": connections}),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_FLUSH_S,
    )


def telemetry_of(settings: Settings, process: str) -> Callable[[Metrics | None], AbstractAsyncContextManager[Traced]]:
    """Return `open_telemetry` for this process if the settings turn it on, else a context manager that exports nothing.

    Raises:
      Misconfigured: the settings turn it on, but the extra is not installed, or an `OTEL_` variable is invalid.
    """
    if not settings.otel:
        return lambda _: nullcontext(lambda app: app)
    with extra("otel", "EVALUATOR_HOST_OTEL"):
        open_telemetry = _TELEMETRY.load()
    return partial(open_telemetry, process)


async def require_key(settings: Settings) -> None:
    """Check that a usable key exists. Without a key, anyone who reaches the host could run code on it.

    Raises:
      Misconfigured: there is no usable key.
      StoreUnavailable: the database does not answer.
    """
    async with open_store(settings) as store:
        if await store.keys.any_usable():
            return
    raise Misconfigured(
        f"refusing to listen on {settings.host}: there is no key, so anyone who reaches this host could run code. "
        "Create one first (evaluator-host keys create NAME, with the same data directory or database), or listen on "
        "127.0.0.1"
    )


def base_url(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def greeting(url: str, backend: str, access: Access) -> tuple[str, ...]:
    """Return the lines to print when a host begins to listen: its address, its backend, and a call to try.

    If commands would not find the host by themselves, a line says how they do.
    """
    here = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    body = {
        # in the shell, a single quote would end the argument
        "evaluator": {"code": EXACT_MATCH.replace("'", '"')},
        "inputs": {"correct_answer": "Paris"},
        "outputs": "Paris",
    }
    key = "-H 'Authorization: Bearer KEY' " if access.keyring.required else ""
    return (
        f"Evaluator Host {__version__} listens on {url} (sandbox: {backend}; API: {url}/docs).",
        *([] if here == DEFAULT_URL else [f"For commands in other terminals: export EVALUATOR_HOST_URL={here}"]),
        f"Open {here} in a browser to write an evaluator, or try a call:",
        f"curl -s {here}/v1/evaluate {key}-H 'Content-Type: application/json' -d '{json.dumps(body)}'",
    )


def room_for_connections(sandboxes: int) -> int:
    """Raise this process's limit of descriptors. Return how many its sandboxes leave for connections.

    The limit is usually 1,024, which is too low for a thousand callers and their sandboxes; the process may raise it.
    `sandboxes` is the maximum number of sandboxes that this process may have.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ceiling = most_descriptors()
    if soft != resource.RLIM_INFINITY and soft < ceiling:
        resource.setrlimit(resource.RLIMIT_NOFILE, (ceiling, hard))
        soft = ceiling
    own = _OWN_DESCRIPTORS + SANDBOX_DESCRIPTORS * max(0, sandboxes - FEWEST_SANDBOXES)
    return max(_FEWEST_CONNECTIONS, (ceiling if soft == resource.RLIM_INFINITY else soft) - own)
