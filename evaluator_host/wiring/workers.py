"""The processes of a host besides its first: now the one that runs its jobs, which is there while there are any.

It has its own sandboxes, a part of the host's limits, and its own connections to the database, as another host on this
database has. A process that dies is started again, and its jobs continue where they were stored last.
"""

import asyncio
import faulthandler
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import uvloop

from evaluator_host.config.settings import SandboxChoice, Settings
from evaluator_host.jobs.open import scheduler_of
from evaluator_host.jobs.scheduler import LOOK_EVERY_S, Scheduler
from evaluator_host.model.errors import HostError, MachineExhausted, StoreUnavailable
from evaluator_host.models.judges import open_judges
from evaluator_host.service import Service
from evaluator_host.service.metrics import summed
from evaluator_host.store.jobs import DesiredState
from evaluator_host.store.store import Store
from evaluator_host.system.forker import Channel, ChannelClosed, Forker, ForkerEnded
from evaluator_host.system.memory import return_large_blocks
from evaluator_host.system.supervisor import Supervisor
from evaluator_host.web.auth.package_visibility import PackageVisibility
from evaluator_host.web.http.error_log import log_loop_fault, log_to_stderr
from evaluator_host.wiring.service import open_service
from evaluator_host.wiring.store import open_store

_NICE: Final = 5  # of the process of jobs: calls go first
_IDLE_S: Final = 60.0  # without a job; then the process of jobs ends
_CHORES_S: Final = 1.0
_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_STOP_S: Final = 3.0  # to store the results of running jobs
_DUMP_S: Final = 2.5
_METRICS_S: Final = 2.0

_log = logging.getLogger(__name__)


class _Worker:
    """A process and the channel to it. `metrics` is what it last said; `left` whether it ended as it should."""

    def __init__(self, pid: int, channel: Channel) -> None:
        self.pid = pid
        self.channel = channel
        self.metrics = b""
        self.left = False


class Workers:
    """The other processes of a host, for its first one. As a `JobRunner` it runs the jobs in a process of their own.

    Args:
      forker: Starts the processes.
      settings: The operator's settings.
      debug: Whether they log the messages of exceptions.
    """

    def __init__(self, forker: Forker, settings: Settings, *, debug: bool) -> None:
        self._forker = forker
        self._settings = settings
        self._debug = debug
        self._wake = asyncio.Event()
        self._jobs: _Worker | None = None
        self._here: Scheduler | None = None  # runs the jobs where no process can be forked any more
        self._ended = b""  # metrics of processes that have ended

    @asynccontextmanager
    async def attached(self, service: Service, store: Store) -> AsyncIterator["Workers"]:
        """Belong to a service during the block: divide its sandboxes, and sum its metrics with the others'."""
        self._service, self._store = service, store
        service.metrics.of_host = self._metrics
        yield self

    def wake(self) -> None:
        """Check for jobs to run now."""
        self._wake.set()
        if self._here is not None:
            self._here.wake()
        elif self._jobs is not None:
            self._jobs.channel.tell("wake")

    def set_desired_state(self, job_id: str, desired: DesiredState) -> None:
        """Stop a running job at once, not only after its next write."""
        if self._here is not None:
            self._here.set_desired_state(job_id, desired)
        elif self._jobs is not None:
            self._jobs.channel.tell("set_desired_state", job_id, desired)

    async def run(self) -> None:
        """Keep the process of jobs running while there are jobs, until cancelled."""
        pause_s = _PAUSE_S
        while True:
            began = time.monotonic()
            try:
                if await self._has_jobs() and not await self._run_jobs():
                    pause_s = _PAUSE_S if time.monotonic() - began > _LONGEST_PAUSE_S else 2 * pause_s
                    pause_s = min(pause_s, _LONGEST_PAUSE_S)
                    self._service.supervisor.restarts += 1
                    _log.error("the process of jobs was lost; the next one continues them in %g s", pause_s)
                    await asyncio.sleep(pause_s)
                    continue
            except ForkerEnded:
                _log.error("no process for jobs can be started any more: they run in the first process")
                self._here = scheduler_of(self._service, self._store)
                await self._here.run()
            except (StoreUnavailable, MachineExhausted) as error:
                _log.warning("no job is started: %s", error.detail)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), LOOK_EVERY_S)
            self._wake.clear()

    async def _has_jobs(self) -> bool:
        queue = self._store.job_queue
        return bool(await queue.waiting(each=1) or await queue.running())

    async def _run_jobs(self) -> bool:
        """Run jobs in another process until it ends; return whether that was because there is none left."""
        backend = SandboxChoice(_CHOICES.get(self._service.pool.backend.name, self._service.pool.backend.name))
        pid, own = await self._forker.fork(run_jobs, self._settings, backend, self._debug)
        reader, writer = await asyncio.open_connection(sock=own)
        self._jobs = worker = _Worker(pid, Channel(reader, writer, self._answer))
        self._service.pool.divide(_PARTS)
        reading = asyncio.create_task(worker.channel.run())
        try:
            await asyncio.wait({reading})
        finally:
            if not reading.done():
                worker.channel.tell("stop")
                await asyncio.wait({reading}, timeout=_STOP_S)
                reading.cancel()
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._jobs = None
            self._ended = summed((), ended=(self._ended, worker.metrics))
            self._service.pool.divide(1)
        return worker.left

    async def _answer(self, name: str, args: tuple[Any, ...]) -> None:
        """Take the last words of the process of jobs."""
        if self._jobs is not None and name == "leave":
            (self._jobs.metrics,) = args
            self._jobs.left = True

    async def _metrics(self) -> bytes:
        """Return the sum of the metrics of all processes, those that have ended among them."""
        texts = [self._service.metrics.text()]
        if (jobs := self._jobs) is not None:
            with suppress(ChannelClosed, TimeoutError):
                async with asyncio.timeout(_METRICS_S):
                    jobs.metrics = await jobs.channel.call("metrics")
            texts.append(jobs.metrics)
        return summed(texts, ended=(self._ended,))


_PARTS: Final = 2  # of the host's sandboxes and their memory: one for calls, one for jobs while there are any
_CHOICES: Final = {"unsandboxed": SandboxChoice.NONE}


def run_jobs(channel: socket.socket, settings: Settings, backend: SandboxChoice, debug: bool) -> None:  # noqa: FBT001
    """Be the process of jobs, until there have been none for a minute or the host stops."""
    os.nice(_NICE)
    run_worker(lambda: _run_jobs(channel, settings, backend), debug=debug)


def run_worker(work: Callable[[], Coroutine[Any, Any, None]], *, debug: bool) -> None:
    """Run a worker's coroutine on an event loop of its own."""
    log_to_stderr(debug=debug)
    return_large_blocks()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.get_loop().set_exception_handler(log_loop_fault)
        runner.run(work())


async def _run_jobs(end: socket.socket, settings: Settings, backend: SandboxChoice) -> None:
    supervisor, stop = Supervisor(), asyncio.Event()
    async with open_store(settings) as store, open_judges(settings, store) as models:
        visibility = PackageVisibility(store.package_sets)
        async with open_service(
            settings,
            prewarm=False,
            models=models,
            on_set_used=visibility.note,
            supervisor=supervisor,
            backend=backend,
            parts=_PARTS,
        ) as service:
            scheduler = scheduler_of(service, store)

            async def answer(name: str, args: Sequence[Any]) -> bytes | None:
                match name:
                    case "wake":
                        scheduler.wake()
                    case "set_desired_state":
                        scheduler.set_desired_state(*args)
                    case "metrics":
                        return service.metrics.text()
                    case _:
                        stop.set()
                        faulthandler.dump_traceback_later(_DUMP_S, exit=True)  # whatever does not end then
                return None

            channel = Channel(*await asyncio.open_connection(sock=end), answer)
            reading = asyncio.create_task(channel.run())
            reading.add_done_callback(lambda _: stop.set())
            async with supervisor.running("the scheduler of jobs", scheduler.run):
                while not stop.is_set() and scheduler.idle_s < _IDLE_S:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(stop.wait(), _CHORES_S)
                    with suppress(HostError):
                        await visibility.write()
            with suppress(ChannelClosed):
                await channel.call("leave", service.metrics.text())
            channel.close()
