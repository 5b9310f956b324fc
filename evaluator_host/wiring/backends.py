"""Chooses and opens the sandbox backend, and checks every backend for `doctor`.

`auto` takes bubblewrap when it works, else Docker, else refuses to start: user code never runs unsandboxed by accident.
"""

import logging
from collections.abc import Callable
from typing import Final

from evaluator_host.config.settings import SandboxChoice, Settings, python_homes, search_path
from evaluator_host.environments import toolchain
from evaluator_host.environments.build.builder import Builder
from evaluator_host.environments.folder import EnvironmentFolder, engine_owner
from evaluator_host.model.errors import HostError, SandboxUnavailable
from evaluator_host.model.evaluator import Language
from evaluator_host.pool.prewarmed import start_sandbox
from evaluator_host.sandbox.base import Backend, Finding
from evaluator_host.sandbox.bubblewrap.backend import BubblewrapBackend
from evaluator_host.sandbox.linux.instance import this_instance
from evaluator_host.sandbox.pythons import Pythons
from evaluator_host.sandbox.unsandboxed import UnsandboxedBackend
from evaluator_host.service.service import default_spec

_log = logging.getLogger(__name__)

_NO_BACKEND: Final = (
    "no sandbox backend works on this machine, and user code never runs without one. "
    "Install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap; "
    "Alpine: apk add bubblewrap) or start a Docker engine and run `evaluator-host images build`. "
    "`evaluator-host doctor` shows what was tried"
)


async def make_backend(choice: SandboxChoice, settings: Settings) -> Backend:
    """Return the backend of a name, without starting a sandbox.

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
    """Return the Python interpreters of this machine; the search happens on first use."""
    return Pythons(settings.pythons, search_path=search_path(), homes=python_homes())


async def choose_backend(settings: Settings) -> Backend:
    """Return a backend after testing that it can start a sandbox.

    Raises:
      SandboxUnavailable: no backend can; the detail says what to install.
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
    """Start a sandbox and destroy it."""
    try:
        sandbox = await start_sandbox(backend, default_spec(Language.PYTHON), grace_s=settings.grace_s)
    except HostError:
        await backend.close()
        raise
    await sandbox.destroy()


async def backend_findings(settings: Settings) -> dict[str, list[Finding]]:
    """Return the findings of `doctor` for each backend; never raises."""
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
    """Return the findings of `doctor` for the installation of packages; never raises."""
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
