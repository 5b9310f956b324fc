"""The one place that names concrete classes: settings in, a running service out.

`auto` takes bubblewrap when it works, else Docker, else refuses to start: user code never runs unsandboxed by accident.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from evaluator_host.config.settings import SandboxChoice, Settings, python_homes, search_path
from evaluator_host.environments import toolchain
from evaluator_host.environments.build.build import BuildContext
from evaluator_host.environments.build.builder import Builder
from evaluator_host.environments.folder import EnvironmentFolder, engine_owner
from evaluator_host.environments.store import Environments
from evaluator_host.model.errors import HostError, SandboxUnavailable
from evaluator_host.model.evaluator import Language
from evaluator_host.packages.index import IndexSettings
from evaluator_host.pool import Pool, PoolLimits
from evaluator_host.pool.prewarmed import start_sandbox
from evaluator_host.sandbox.base import Backend, Finding
from evaluator_host.sandbox.bubblewrap.backend import BubblewrapBackend
from evaluator_host.sandbox.linux.instance import this_instance
from evaluator_host.sandbox.pythons import Pythons
from evaluator_host.sandbox.unsandboxed import UnsandboxedBackend
from evaluator_host.service import Service
from evaluator_host.service.metrics import Metrics
from evaluator_host.service.service import default_spec

if TYPE_CHECKING:
    from evaluator_host.jobs.stored_resources import Records
    from evaluator_host.service.model_calls import Models
    from evaluator_host.store.store import Store

_log = logging.getLogger(__name__)

_NO_BACKEND: Final = (
    "no sandbox backend works on this machine, and user code never runs without one. "
    "Install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap; "
    "Alpine: apk add bubblewrap) or start a Docker engine and run `evaluator-host images build`. "
    "`evaluator-host doctor` says what was tried"
)


async def make_backend(choice: SandboxChoice, settings: Settings) -> Backend:
    """Return the backend of that name, not yet tried.

    Raises:
      HostError: its tools cannot be prepared.
    """
    if choice is SandboxChoice.DOCKER:
        from evaluator_host.sandbox.docker.backend import DockerBackend  # noqa: PLC0415 - docker-py: a third of a start

        return DockerBackend(
            docker_host=settings.engine_address,
            runtime=settings.docker_runtime,
            image=settings.docker_image,
            instance=this_instance(),
            owner=engine_owner(settings.data_dir),
        )
    node, esbuild = toolchain.node_path(), await toolchain.ensure_esbuild(settings.data_dir)
    restricted = toolchain.restricted_python_dir(settings.data_dir)
    pythons = machine_pythons(settings)
    if choice is SandboxChoice.NONE:
        return UnsandboxedBackend(node=node, esbuild=esbuild, restricted=restricted, pythons=pythons)
    return BubblewrapBackend(
        node=node, esbuild=esbuild, restricted=restricted, instance=this_instance(), pythons=pythons
    )


def machine_pythons(settings: Settings) -> Pythons:
    """Return the interpreters of this machine; nothing is looked for yet."""
    return Pythons(settings.pythons, search_path=search_path(), homes=python_homes())


async def choose_backend(settings: Settings) -> Backend:
    """Return a backend in which a sandbox really starts.

    Raises:
      SandboxUnavailable: none does; the detail says what to install.
    """
    if settings.sandbox is SandboxChoice.NONE:
        _log.warning("sandbox=none: user code runs as this user, with this user's files and network. Own code only!")
    if settings.sandbox is not SandboxChoice.AUTO:
        backend = await make_backend(settings.sandbox, settings)
        await _try(backend, settings)
        return backend
    tried = []
    for choice in (SandboxChoice.BUBBLEWRAP, SandboxChoice.DOCKER):
        try:
            backend = await make_backend(choice, settings)
            await _try(backend, settings)
        except HostError as error:
            tried.append(f"{choice}: {error.detail}")
        else:
            return backend
    raise SandboxUnavailable(f"{_NO_BACKEND}. " + "; ".join(tried))


async def _try(backend: Backend, settings: Settings) -> None:
    """Start a sandbox and throw it away."""
    try:
        sandbox = await start_sandbox(backend, default_spec(Language.PYTHON), grace_s=settings.grace_s)
    except HostError:
        await backend.close()
        raise
    await sandbox.destroy()


@asynccontextmanager
async def open_service(
    settings: Settings, *, prewarm: bool = True, models: "Models | None" = None
) -> AsyncIterator[Service]:
    """Open a service; nothing of it is left when it closes.

    Args:
      settings: Of the operator.
      prewarm: Start a sandbox per language before the first call.
      models: Answers the model requests of evaluators; without it they fail.

    Raises:
      SandboxUnavailable: no backend works.
    """
    backend = await choose_backend(settings)
    pool = Pool(backend, _pool_limits(settings))
    metrics = Metrics()
    metrics.watch("sandboxes", "Sandboxes alive.", lambda: pool.capacity.sandboxes)
    metrics.watch("sandbox_memory_mb", "Sum of their memory limits.", lambda: pool.capacity.taken_mb)
    metrics.watch("queue", "Calls waiting for a sandbox.", lambda: pool.waiting)
    reaper = asyncio.create_task(pool.run_reaper())
    environments: Environments | None = None
    try:
        swept = await backend.sweep()
        if swept:
            _log.info("removed %d leftovers of hosts that died", swept)
        if prewarm:
            await asyncio.gather(
                *(pool.prewarm(default_spec(language)) for language in (Language.PYTHON, Language.JAVASCRIPT))
            )
        environments = await asyncio.to_thread(_environments, settings, backend, pool)
        yield Service(settings, pool, metrics, environments, models=models)
    finally:
        if environments is not None:
            await environments.close()
        reaper.cancel()
        with suppress(asyncio.CancelledError):
            await reaper
        await pool.close()
        await backend.close()


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator["Store"]:
    """Open what the host keeps: keys, records.

    Raises:
      Misconfigured: the database is not this version's, or its URL cannot be taken.
      StoreUnavailable: it does not answer.
    """
    from evaluator_host.store import store  # noqa: PLC0415 - SQLAlchemy and Alembic, which `run` never needs

    async with store.open_store(
        _revealed(settings.database_url), settings.data_dir, secrets_key=_revealed(settings.secrets_key)
    ) as opened:
        yield opened


@asynccontextmanager
async def open_records(service: Service, store: "Store") -> AsyncIterator["Records"]:
    """Open the verbs over what is stored, and work on jobs; those at work are left for the next host on the way out.

    Raises:
      StoreUnavailable: the database does not answer.
    """
    from evaluator_host.jobs import open as opening  # noqa: PLC0415 - as above

    async with opening.open_records(service, store) as records:
        yield records


async def records_finding(settings: Settings) -> Finding:
    """Return what `doctor` says of the database and of whose the rows and files are; never raises."""
    from evaluator_host.jobs import open as opening  # noqa: PLC0415 - as above
    from evaluator_host.store import address, store  # noqa: PLC0415 - as above

    url = _revealed(settings.database_url)
    try:
        async with store.look_into(url, settings.data_dir) as found:
            return await opening.leftovers(settings).finding(found, address.address(url, settings.data_dir))
    except (HostError, OSError) as error:
        return Finding("database", ok=False, detail=str(error))


async def backend_findings(settings: Settings) -> dict[str, list[Finding]]:
    """Return what `doctor` says of each backend; never raises."""
    found: dict[str, list[Finding]] = {}
    for choice in (SandboxChoice.BUBBLEWRAP, SandboxChoice.DOCKER):
        try:
            backend = await make_backend(choice, settings)
        except HostError as error:
            found[choice] = [Finding(name="tools", ok=False, detail=error.detail)]
            continue
        try:
            found[choice] = await backend.findings()
        finally:
            await backend.close()
    return found


async def builder_findings(settings: Settings) -> list[Finding]:
    """Return what `doctor` says of how packages are installed here; never raises."""
    try:
        folder = EnvironmentFolder(settings.data_dir.resolve() / "environments")
        return await Builder(folder.build_home, file_mb=settings.environments_mb).findings()
    except (HostError, OSError) as error:
        return [Finding("builder", ok=False, detail=str(error))]


async def build_images(settings: Settings, *, base: str | None, progress: Callable[[str], None]) -> str:
    """Build the Docker runtime image and return its tag.

    Raises:
      SandboxUnavailable: the engine does not answer, or the base can be neither pulled nor bootstrapped.
    """
    from evaluator_host.sandbox.docker.image.build import build_image  # noqa: PLC0415 - as in `make_backend`

    return await build_image(
        docker_host=settings.engine_address,
        image=settings.docker_image,
        base=base,
        node=toolchain.node_path(),
        esbuild=await toolchain.ensure_esbuild(settings.data_dir),
        restricted=toolchain.restricted_python_dir(settings.data_dir),
        progress=progress,
    )


def index_settings(settings: Settings, cache_dir: Path, *, work_dir: Path | None = None) -> IndexSettings:
    """Return where packages come from."""
    return IndexSettings(
        cache_dir=cache_dir,
        pip_index_url=_revealed(settings.pip_index_url),
        npm_registry=_revealed(settings.npm_registry),
        npm_token=_revealed(settings.npm_token),
        ca_file=settings.ca_file,
        proxy=_revealed(settings.proxy),
        no_proxy=settings.no_proxy,
        timeout_s=settings.index_timeout_s,
        work_dir=work_dir,
    )


def _revealed(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None


def _environments(settings: Settings, backend: Backend, pool: Pool) -> Environments:
    """Open the folder of installed package sets; what dead hosts left half-way is removed."""
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
    )
