"""Opens the engine: the backend, the pool of sandboxes, the installed package sets, and the service that uses them."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaluator_host.engine.backends import PASSING, choose_backend, make_backend
from evaluator_host.engine.config.settings import SETS_FOLDER, SandboxChoice, Settings, revealed
from evaluator_host.engine.environments import toolchain
from evaluator_host.engine.environments.build.build import BuildContext
from evaluator_host.engine.environments.build.builder import Builder
from evaluator_host.engine.environments.folder import EnvironmentFolder
from evaluator_host.engine.environments.queries import PackageQueries
from evaluator_host.engine.environments.store import Environments
from evaluator_host.engine.packages.index import IndexSettings
from evaluator_host.engine.pool import Pool, PoolLimits
from evaluator_host.engine.sandbox.base import Backend
from evaluator_host.engine.sandbox.bubblewrap.doctor import require_program
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.metrics import Metrics
from evaluator_host.engine.service.peers import Peers
from evaluator_host.engine.service.preparer import SetUsed
from evaluator_host.engine.service.service import default_spec
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.engine.system.supervisor import Supervisor
from evaluator_host.types.errors import HostError, IndexUnavailable, SandboxUnavailable, refusal_of
from evaluator_host.types.evaluator import Language
from evaluator_host.types.names import counted

if TYPE_CHECKING:
    from evaluator_host.engine.service.attempts import Models

_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 30.0

_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_engine(
    settings: Settings | None = None,  # settings of the host; None to read the environment variables `EVALUATOR_HOST_…`
    *,
    prewarm: bool = False,  # whether to start a Python sandbox, and prepare for JavaScript, before the first call
    models: "Models | None" = None,  # answers the model requests of evaluators; with None, such requests fail
    on_set_used: SetUsed | None = None,  # called with a workspace and the digest of a package set that it uses
    supervisor: Supervisor | None = None,  # runs the tasks of the host; None for a new one
    # backend that another process of this host has tested; None to choose one as the settings say
    backend: SandboxChoice | None = None,
    parts: int = 1,  # number of the host's processes, which divide the limits of sandboxes among themselves
    peers: Peers | None = None,  # the other processes of the host; None if there are none
) -> AsyncIterator[Service]:
    """Open the engine, and yield its service; at the end of the `with` block, stop everything that it has started.

    Raises:
      SandboxUnavailable: no backend works on this machine; the message says what to install.
    """
    settings = settings or Settings()
    supervisor = supervisor or Supervisor()
    if backend is None:
        chosen, has_started = await choose_backend(settings, supervisor)
    else:
        chosen, has_started = await make_backend(backend, settings, supervisor), False
    pool = Pool(chosen, _pool_limits(settings), parts=parts)
    if has_started:
        pool.note_start(default_spec(Language.PYTHON, settings))
    peers = peers or Peers()
    metrics = _metrics(pool, supervisor, peers)
    environments: Environments | None = None
    processes = LimitedProcesses(supervisor=supervisor)
    tasks = [("the task that removes idle sandboxes", pool.run_reaper)]
    try:
        swept = await chosen.sweep()
        if swept:
            _log.info(
                "removed %s that other hosts on this machine left when they died", counted(swept, "sandbox", "es")
            )
        in_image = chosen.name == SandboxChoice.DOCKER
        first = _FirstSandbox(pool, settings, None if in_image else settings.data_dir)
        if prewarm and not await first.has_started():
            supervisor.checks.append(first.require_started)
            tasks.append(("the task that starts the first sandbox", first.run))
        if not in_image:
            supervisor.checks.append(toolchain.watch_tools(settings.data_dir))
        environments = await asyncio.to_thread(_environments, settings, chosen, pool, peers)
        tasks.append(("the task that releases unused package sets", environments.run_releases))
        async with AsyncExitStack() as running:
            for name, work in tasks:
                await running.enter_async_context(supervisor.running(name, work))
            yield Service(
                settings,
                pool,
                metrics,
                environments,
                processes,
                models=models,
                on_set_used=on_set_used,
                supervisor=supervisor,
                peers=peers,
            )
    finally:
        await processes.close()
        if environments is not None:
            await environments.close()
        await pool.close()
        await chosen.close()


def _metrics(pool: Pool, supervisor: Supervisor, peers: Peers) -> Metrics:
    metrics = Metrics(peers)
    metrics.watch("sandboxes", "Sandboxes alive.", lambda: pool.capacity.sandboxes)
    metrics.watch(
        "sandbox_memory_mb",
        "Memory of sandboxes: the limits of busy ones plus the memory that others use.",
        lambda: pool.capacity.taken_mb,
    )
    metrics.watch("queue", "Calls waiting for a sandbox.", lambda: pool.waiting)
    metrics.watch("task_restarts", "Tasks of the host that failed and were started again.", lambda: supervisor.restarts)
    metrics.watch("silent_processes", "Processes of the host that do not answer.", lambda: len(supervisor.silent))
    return metrics


class _FirstSandbox:
    """Starts a Python sandbox before the first call, and tries again while the machine is too busy.

    This class also installs the tools for JavaScript in `data_dir`, which is None if an image contains these tools
    already. No JavaScript sandbox is started in advance, because it would take six times as much memory as a Python
    sandbox.
    """

    def __init__(self, pool: Pool, settings: Settings, data_dir: Path | None) -> None:
        self._pool = pool
        self._spec = default_spec(Language.PYTHON, settings)
        self._data_dir = data_dir
        self._error: HostError | None = None

    async def has_started(self) -> bool:
        """Try once to start the sandbox; return whether it has started. The host starts in either case.

        Raises:
          SandboxUnavailable: the sandbox cannot be started for a lasting reason.
        """
        try:
            await asyncio.gather(self._pool.probe(self._spec), self._install_javascript())
        except PASSING as error:
            self._error = error
            return False
        self._error = None
        return True

    async def _install_javascript(self) -> None:
        if self._data_dir is None:
            return
        try:
            require_program(toolchain.node_path())
        except OSError as error:
            raise SandboxUnavailable(f"Node cannot be read: {refusal_of(error)}") from error
        try:
            await toolchain.ensure_javascript_runner(self._data_dir)
        except IndexUnavailable as error:
            _log.warning(
                "JavaScript and TypeScript cannot run until esbuild is installed; Python can: %s", error.detail
            )

    async def run(self) -> None:
        """Try to start the sandbox until it has started; the pauses between tries grow to half a minute."""
        pause_s = _PAUSE_S
        while self._error is not None:
            _log.warning("no sandbox has started yet, next try in %g s: %s", pause_s, self._error.detail)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            try:
                await self.has_started()
            except SandboxUnavailable as error:  # the Docker engine may have stopped, and may be started again
                self._error = error
        _log.info("the first sandbox has started")

    def require_started(self) -> None:
        """Check that the sandbox has started, for `/readyz`.

        Raises:
          HostError: the sandbox has not started; the message says why.
        """
        if self._error is not None:
            raise self._error


def index_settings(settings: Settings, cache_dir: Path, *, work_dir: Path | None = None) -> IndexSettings:
    """Return the settings for PyPI and npm; `cache_dir` is for downloads, `work_dir` for files of a single command."""
    return IndexSettings(
        cache_dir=cache_dir,
        pip_index_url=revealed(settings.pip_index_url),
        npm_registry=revealed(settings.npm_registry),
        npm_token=revealed(settings.npm_token),
        ca_file=settings.ca_file,
        proxy=revealed(settings.proxy),
        no_proxy=settings.no_proxy,
        timeout_s=settings.index_timeout_s,
        work_dir=work_dir,
    )


def _environments(settings: Settings, backend: Backend, pool: Pool, peers: Peers) -> Environments:
    folder = EnvironmentFolder(settings.data_dir.resolve() / SETS_FOLDER)
    if swept := folder.sweep():
        _log.info("removed %s of hosts that died", counted(swept, "unfinished package set"))
    builder = Builder(
        folder.build_home,
        file_mb=settings.environments_mb,
        memory_mb=settings.build_memory_mb,
        using_downloads=folder.using_downloads,
    )
    builder.sweep()
    index = index_settings(settings, folder.downloads, work_dir=builder.work)
    queries = PackageQueries(index, backend)
    context = BuildContext(
        folder=folder,
        builder=builder,
        backend=backend,
        index=index,
        pins_for=queries.pins_for,
        allow_source_builds=settings.allow_source_builds,
        ceiling_mb=settings.environments_mb,
        free_disk_mb=settings.free_disk_mb,
        packages_from=settings.packages_from,
    )
    return Environments(
        context,
        queries,
        in_use=pool.capacity.environments.keys,
        on_changed=pool.forget,
        release_elsewhere=peers.release,
    )


def _pool_limits(settings: Settings) -> PoolLimits:
    return PoolLimits(
        max_sandboxes=settings.max_sandboxes,
        max_running=settings.running_sandboxes,
        max_starting=settings.starting_sandboxes,
        max_per_evaluator=settings.max_sandboxes_per_evaluator,
        max_waiting=max(settings.waiting_rows, settings.max_sandboxes_per_evaluator),
        memory_mb=settings.sandbox_memory_mb,
        idle_sandboxes=settings.idle_sandboxes,
        idle_ttl_s=settings.idle_ttl_s,
        max_rows=settings.sandbox_max_rows,
        max_age_s=settings.sandbox_max_age_s,
        queue_limit=settings.queue_limit,
        grace_s=settings.grace_s,
        answers_mb=settings.memory_mb // 2,
    )
