"""The processes of a host besides the first: one of them runs jobs while there are jobs, the others answer calls.

Each process has its own sandboxes, a part of the host's limits, and its own connections to the database. A process that
dies is started again, and its jobs continue from the results that were stored last.
"""

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import uvloop

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.sandbox.linux.instance import instance_folder, remove_abandoned
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.service.metrics import summed
from evaluator_host.engine.service.peers import Peers
from evaluator_host.engine.system.forker import Channel, ChannelClosed, Forker
from evaluator_host.engine.system.memory import return_large_blocks
from evaluator_host.engine.system.priority import give_way
from evaluator_host.engine.system.supervisor import Supervisor
from evaluator_host.platform.host import Host, open_host
from evaluator_host.platform.http.auth.package_visibility import PackageVisibility
from evaluator_host.platform.http.error_log import log_loop_fault, log_to_stderr
from evaluator_host.platform.jobs.opening import scheduler_of
from evaluator_host.platform.jobs.queue import JobQueue
from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.platform.jobs.scheduler import LOOK_EVERY_S, Scheduler
from evaluator_host.platform.models.judges import open_judges
from evaluator_host.platform.store.opening import open_store
from evaluator_host.platform.store.store import Store
from evaluator_host.server.call_process import CallOwners, CallProcess
from evaluator_host.server.server import Part, serve_http, telemetry_of
from evaluator_host.types.errors import HostError, MachineExhausted, StoreUnavailable
from evaluator_host.types.evaluator import EncodedRow, Evaluator, Row
from evaluator_host.types.outcome import EvaluationResult

_NICE: Final = 5  # nice value of the process that runs jobs, so that calls get the processor first
_IDLE_S: Final = 60.0  # seconds without a job after which the process that runs jobs ends
# while jobs run, the host's sandboxes and memory are divided into two equal parts: for calls and for jobs
_JOB_PARTS: Final = 2
_CHORES_S: Final = 1.0
_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_STEADY_S: Final = 30.0  # seconds after which a new process counts as working
_STOP_S: Final = 4.0  # seconds to store the results of running jobs
_METRICS_S: Final = 2.0
_RELEASE_S: Final = 10.0
_FOLDERS: Final = "evaluator-"

_log = logging.getLogger(__name__)


class _Worker:
    """A process, and the channel to it."""

    def __init__(self) -> None:
        self.channel = Channel(self._take)
        self.metrics = b""  # the metrics that the process sent last
        self.left = False  # whether the process has ended as planned
        self.refusal = ""  # why the process could not work

    async def ask(self, within_s: float, name: str, *args: object) -> Any:
        """Call the process and return its answer, or None if it does not answer in time."""
        with suppress(ChannelClosed, TimeoutError):
            async with asyncio.timeout(within_s):
                return await self.channel.call(name, *args)
        return None

    async def update_metrics(self) -> bytes:
        """Return the process's metrics. If it does not answer in time, return the last metrics that it sent."""
        self.metrics = await self.ask(_METRICS_S, "metrics") or self.metrics
        return self.metrics

    async def _take(self, name: str, args: tuple[Any, ...]) -> None:
        """Store the last message of the process: its metrics, or the reason why it could not work."""
        if name == "leave":
            (self.metrics,) = args
            self.left = True
        elif name == "refuse":
            (self.refusal,) = args


class _Others(Peers):
    """The processes that the first process of a host has started. `owners` sends a row to its evaluator's process."""

    def __init__(self, owners: Peers) -> None:
        self._workers: dict[int, _Worker] = {}  # processes, keyed by number; 0 is the process that runs jobs
        self._ended = b""  # the metrics of processes that have ended
        self._owners = owners

    async def evaluate(self, evaluator: Evaluator, row: Row | EncodedRow, caller: Caller) -> EvaluationResult | None:
        """Evaluate a row in the process that has its evaluator. Return None if this process has to evaluate the row."""
        return await self._owners.evaluate(evaluator, row, caller)

    async def add_metrics(self, own: bytes) -> bytes:
        """Add up the metrics of all processes, including those that have ended."""
        others = await asyncio.gather(*(one.update_metrics() for one in self._all()))
        return summed([own, *others], ended=(self._ended,))

    async def release(self, digest: str) -> None:
        """Make the other processes end their idle sandboxes that use a package set."""
        await asyncio.gather(*(one.ask(_RELEASE_S, "release", digest) for one in self._all()))

    def tell_jobs(self, name: str, *args: Any) -> None:
        """Send a call to the process that runs jobs, if it exists. Do not wait for an answer."""
        if (jobs := self._workers.get(0)) is not None:
            jobs.channel.tell(name, *args)

    def tell_calls(self, name: str, *args: Any) -> None:
        """Send a call to every process that answers calls. Do not wait for an answer."""
        for number, worker in self._workers.items():
            if number:
                worker.channel.tell(name, *args)

    @contextmanager
    def with_worker(self, number: int, worker: _Worker) -> Iterator[None]:
        """During the block, count a process as part of the host. Its metrics are still counted after it has ended."""
        self._workers[number] = worker
        try:
            yield
        finally:
            del self._workers[number]
            self._ended = summed((), ended=(self._ended, worker.metrics))

    def _all(self) -> list[_Worker]:
        return list(self._workers.values())


class _Processes:
    """Starts the further processes of a host, and restarts lost processes."""

    def __init__(self, forker: Forker, settings: Settings, service: Service, others: _Others, *, debug: bool) -> None:
        self._forker = forker
        self._settings = settings
        self._service = service
        self._others = others
        self._debug = debug

    async def keep(self, what: str, number: int, stop_s: float, work: Callable[..., None], *args: Any) -> None:
        """Keep a process running: restart it when it is lost, after growing pauses, until it ends as planned."""
        pause_s = _PAUSE_S
        while True:
            began = time.monotonic()
            try:
                if await self._live(what, number, stop_s, work, *args):
                    return
                _log.error("a process for %s was lost; a new one starts in %g s", what, pause_s)
            except HostError as error:
                _log.warning(
                    "a process for %s could not work, and a new one starts in %g s: %s", what, pause_s, error.detail
                )
            self._service.supervisor.count_restart()
            await asyncio.sleep(pause_s)
            steady = time.monotonic() - began > _STEADY_S
            pause_s = _PAUSE_S if steady else min(2 * pause_s, _LONGEST_PAUSE_S)

    async def rest(self) -> None:
        """End the process that forks the others, because it takes much memory. The next fork starts it again."""
        await self._forker.rest()

    async def _live(self, what: str, number: int, stop_s: float, work: Callable[..., None], *args: Any) -> bool:
        """Run a process until it ends. Return whether it ended as planned."""
        backend = SandboxChoice(self._service.pool.backend.name)
        pid, own = await self._forker.fork(work, self._settings, backend, self._debug, *args)
        worker = _Worker()
        channel = await worker.channel.over(own)
        name = f"process {number} of {what}" if number else f"the process of {what}"
        with self._others.with_worker(number, worker):
            try:
                async with self._service.supervisor.watching(name, lambda: pid, channel.ping):
                    await channel.ended.wait()
            except asyncio.CancelledError:
                channel.tell("stop")
                try:
                    await asyncio.wait_for(channel.ended.wait(), stop_s)
                except TimeoutError:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                raise
        if worker.refusal:
            raise HostError(worker.refusal)
        return worker.left


class _JobProcess:
    """A `JobRunner` that runs jobs in a separate process, while there are any."""

    def __init__(self, processes: _Processes, others: _Others, service: Service, store: Store, count: int) -> None:
        self._processes = processes
        self._others = others
        self._service = service
        self._store = store
        self._count = count
        self._wake = asyncio.Event()
        self._mark: tuple[Any, ...] | None = (
            None  # state of the SQLite file at the last check, if no job was waiting or running
        )

    def wake(self) -> None:
        """Check for queued jobs now, before the next regular check."""
        self._wake.set()
        self._others.tell_jobs("wake")

    def set_desired_state(self, job_id: str, desired: DesiredState) -> None:
        """Pass a new desired state to a running job at once, not only when the job writes its next results."""
        self._others.tell_jobs("set_desired_state", job_id, desired)

    async def run(self) -> None:
        """Until cancelled, keep a process for jobs running whenever there are jobs."""
        last = time.monotonic()
        while True:
            try:
                while await self._has_jobs():
                    self._divide(_JOB_PARTS)
                    try:
                        await self._processes.keep("jobs", 0, _STOP_S, run_jobs)
                    finally:
                        self._divide(1)
                    last = time.monotonic()
            except StoreUnavailable as error:
                _log.warning("no job is started: %s", error.detail)
            if self._count == 1 and time.monotonic() - last > self._service.settings.idle_ttl_s:
                await self._processes.rest()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), LOOK_EVERY_S)
            self._wake.clear()

    async def _has_jobs(self) -> bool:
        if (mark := self._store.database.mark()) is not None and mark == self._mark:
            return False  # there were no jobs at the last check, and nothing has been written to the database since
        queue = JobQueue(self._store.database)
        found = bool(await queue.waiting(each=1) or await queue.running())
        self._mark = None if found else mark
        return found

    def _divide(self, parts: int) -> None:
        self._service.pool.divide(parts * self._count)
        self._others.tell_calls("divide", parts * self._count)


class Workers(Part):
    """The services of a host's first process, which also runs the others: one process for jobs, the rest for calls.

    `folder` is for the sockets of the processes. With `debug`, the processes log the messages of exceptions.
    """

    def __init__(
        self, forker: Forker, settings: Settings, listener: socket.socket, folder: Path, *, debug: bool
    ) -> None:
        self.count = settings.workers
        self._forker = forker
        self._settings = settings
        self._address = listener.getsockname()
        self._folder = str(folder)
        self._debug = debug
        self._stopping = False
        self._owners = CallOwners(settings, self._folder, 0)
        self.peers = self._others = _Others(self._owners if self.count > 1 else Peers())
        if self.count > 1:  # the port to which other processes pass requests on
            self.listeners = (socket.create_server(("127.0.0.1", 0)),)

    @asynccontextmanager
    async def open_host(self, service: Service, store: Store) -> AsyncIterator[Host]:
        """Open the resources, and keep the other processes running during the block."""
        processes = _Processes(self._forker, self._settings, service, self._others, debug=self._debug)
        async with AsyncExitStack() as stack:
            name = "the process that starts the host's other processes"
            await stack.enter_async_context(
                service.supervisor.watching(name, lambda: self._forker.pid, self._forker.ping)
            )
            if self.count > 1:
                await stack.enter_async_context(self._owners.answering(service))
            for number in range(1, self.count):
                work = partial(self._keep, processes, number)
                await stack.enter_async_context(service.supervisor.running(f"process {number} of calls", work))
            jobs = _JobProcess(processes, self._others, service, store, self.count)
            yield await stack.enter_async_context(open_host(service, store, jobs))

    def stop(self) -> None:
        """Tell the other processes to stop, because this process is stopping."""
        self._stopping = True
        self._others.tell_jobs("drain")
        self._others.tell_calls("drain")

    async def _keep(self, processes: _Processes, number: int) -> None:
        """Keep a process that answers calls running until cancelled."""
        place = (self._address, number, self._folder, self.listeners[0].getsockname()[1])
        while not self._stopping:
            await processes.keep("calls", number, self._settings.stop_grace_s + _STOP_S, run_calls, *place)


@contextmanager
def open_workers(settings: Settings, listener: socket.socket, *, forker: Forker, debug: bool) -> Iterator[Workers]:
    """Yield the `Workers` of a host.

    If there are several processes, they get a folder for their sockets, which is removed at the end.
    """
    remove_abandoned(_FOLDERS)
    with instance_folder(_FOLDERS) if settings.workers > 1 else nullcontext(Path()) as folder:
        yield Workers(forker, settings, listener, folder, debug=debug)


def run_jobs(channel: socket.socket, settings: Settings, backend: SandboxChoice, debug: bool) -> None:  # noqa: FBT001
    """Run jobs in this process until there has been no job for a minute, or until the host stops."""
    give_way(_NICE)
    _run(lambda: _run_jobs(channel, settings, backend), debug=debug)


def run_calls(
    channel: socket.socket,
    settings: Settings,
    backend: SandboxChoice,
    debug: bool,  # noqa: FBT001
    address: tuple[Any, ...],  # address of the host's first listening socket
    *place: Any,
) -> None:
    """Answer calls in this process until the host stops. `place`: number, folder and port of the `CallProcess`."""

    async def serve() -> None:
        part = CallProcess(settings, backend, *place)
        await part.connect(channel)
        # Each process opens its own socket at this address; if they shared one, a single process would take most
        # connections.
        with socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET) as listener:
            # connections inherit SO_REUSEADDR, so that old connections do not keep a later host from listening here
            for option in (socket.SO_REUSEPORT, socket.SO_REUSEADDR):
                listener.setsockopt(socket.SOL_SOCKET, option, 1)
            listener.bind(address)
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
        _log.error("a process of this host ends because of a fault in the host", exc_info=error)
    finally:
        logging.shutdown()


async def _run_jobs(end: socket.socket, settings: Settings, backend: SandboxChoice) -> None:
    jobs = _Jobs(settings, backend)
    channel = await Channel(jobs.answer).over(end)
    ending = asyncio.create_task(channel.ended.wait())
    # The host was killed. No other process may get its jobs now, because one of the jobs may be the cause.
    ending.add_done_callback(lambda task: None if task.cancelled() else os._exit(1))
    told = await _refusal_of(jobs.run())
    with suppress(ChannelClosed):
        await (channel.call("leave", jobs.metrics) if told is None else channel.call("refuse", told))
    ending.cancel()
    channel.close()


async def _refusal_of(work: Coroutine[Any, Any, None]) -> str | None:
    """Await the work of a process. Return why it failed, or None. The host logs the reason and restarts the process."""
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
    """The process that runs jobs. Until its database and sandboxes are open, it only receives the host's messages."""

    def __init__(self, settings: Settings, backend: SandboxChoice) -> None:
        self.metrics = b""
        self._settings, self._backend = settings, backend
        self._stop = asyncio.Event()
        self._open: tuple[Service, Scheduler] | None = None

    async def answer(self, name: str, args: tuple[Any, ...]) -> bytes | None:
        if name == "stop":
            self._stop.set()
        elif self._open is not None:
            service, scheduler = self._open
            if name == "wake":
                scheduler.wake()
            elif name == "set_desired_state":
                scheduler.set_desired_state(*args)
            elif name == "release":
                await service.environments.release(*args)
            elif name == "metrics":
                return service.metrics.text()
        return b"" if name == "metrics" else None

    async def run(self) -> None:
        """Run jobs until there has been no job for a minute, or until the host stops.

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
            async with open_engine(
                self._settings,
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
