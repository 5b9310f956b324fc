"""Opens a service: a sandbox pool over a backend, and the installed package sets."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator_host.config.settings import Settings, revealed
from evaluator_host.environments.build.build import BuildContext
from evaluator_host.environments.build.builder import Builder
from evaluator_host.environments.folder import EnvironmentFolder
from evaluator_host.environments.store import Environments
from evaluator_host.model.evaluator import Language
from evaluator_host.packages.index import IndexSettings
from evaluator_host.pool import Pool, PoolLimits
from evaluator_host.sandbox.base import Backend
from evaluator_host.service import Service
from evaluator_host.service.metrics import Metrics
from evaluator_host.service.preparer import SetUsed
from evaluator_host.service.service import default_spec
from evaluator_host.system.limited_process import LimitedProcesses
from evaluator_host.system.supervisor import Supervisor
from evaluator_host.wiring.backends import choose_backend

if TYPE_CHECKING:
    from evaluator_host.service.attempts import Models

_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_service(
    settings: Settings,
    *,
    prewarm: bool = True,
    models: "Models | None" = None,
    on_set_used: SetUsed | None = None,
    supervisor: Supervisor | None = None,
) -> AsyncIterator[Service]:
    """Open a service, and close everything that it opened at the end of the block.

    Args:
      settings: The operator's settings.
      prewarm: Start a sandbox per language before the first call.
      models: Answers the model requests of evaluators. None: such requests fail.
      on_set_used: See `Service`.
      supervisor: See `Service`.

    Raises:
      SandboxUnavailable: no backend works.
    """
    backend = await choose_backend(settings)
    pool = Pool(backend, _pool_limits(settings))
    metrics = Metrics()
    metrics.watch("sandboxes", "Sandboxes alive.", lambda: pool.capacity.sandboxes)
    metrics.watch("sandbox_memory_mb", "Sum of their memory limits.", lambda: pool.capacity.taken_mb)
    metrics.watch("queue", "Calls waiting for a sandbox.", lambda: pool.waiting)
    supervisor = supervisor or Supervisor()
    metrics.watch("task_restarts", "Tasks of the host that failed and were started again.", lambda: supervisor.restarts)
    environments: Environments | None = None
    processes = LimitedProcesses()
    try:
        swept = await backend.sweep()
        if swept:
            _log.info("removed %d leftovers of hosts that died", swept)
        if prewarm:
            await asyncio.gather(
                *(pool.prewarm(default_spec(language)) for language in (Language.PYTHON, Language.JAVASCRIPT))
            )
        environments = await asyncio.to_thread(_environments, settings, backend, pool)
        async with supervisor.running("the removal of idle sandboxes", pool.run_reaper):
            yield Service(
                settings,
                pool,
                metrics,
                environments,
                processes,
                models=models,
                on_set_used=on_set_used,
                supervisor=supervisor,
            )
    finally:
        await processes.close()
        if environments is not None:
            await environments.close()
        await pool.close()
        await backend.close()


def index_settings(settings: Settings, cache_dir: Path, *, work_dir: Path | None = None) -> IndexSettings:
    """Return the package index settings."""
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


def _environments(settings: Settings, backend: Backend, pool: Pool) -> Environments:
    """Open the folder of installed package sets, and remove unfinished builds of dead hosts."""
    folder = EnvironmentFolder(settings.data_dir.resolve() / "environments")
    if swept := folder.sweep():
        _log.info("removed %d unfinished package sets of hosts that died", swept)
    builder = Builder(folder.build_home, file_mb=settings.environments_mb, memory_mb=settings.build_memory_mb)
    context = BuildContext(
        folder=folder,
        builder=builder,
        backend=backend,
        index=index_settings(settings, folder.downloads, work_dir=builder.work),
        allow_source_builds=settings.allow_source_builds,
        ceiling_mb=settings.environments_mb,
    )
    return Environments(context, in_use=pool.capacity.environments.keys, on_changed=pool.forget)


def _pool_limits(settings: Settings) -> PoolLimits:
    return PoolLimits(
        max_sandboxes=settings.max_sandboxes,
        max_per_evaluator=settings.max_sandboxes_per_evaluator,
        memory_mb=settings.sandbox_memory_mb,
        idle_sandboxes=settings.idle_sandboxes,
        idle_ttl_s=settings.idle_ttl_s,
        max_rows=settings.sandbox_max_rows,
        max_age_s=settings.sandbox_max_age_s,
        queue_limit=settings.queue_limit,
        grace_s=settings.grace_s,
        answers_mb=settings.memory_mb // 2,
    )
