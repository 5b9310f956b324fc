"""Chooses the sandbox backend and opens it; checks every backend for the command `doctor`.

`auto` chooses bubblewrap if it works, otherwise Docker. If neither works, the host does not start, so that user code
never runs without a sandbox by accident.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from evaluator_host.engine.config.settings import SETS_FOLDER, SandboxChoice, Settings, python_homes, search_path
from evaluator_host.engine.environments import toolchain
from evaluator_host.engine.environments.build.builder import Builder
from evaluator_host.engine.environments.folder import EnvironmentFolder, engine_owner
from evaluator_host.engine.pool.prewarmed import start_sandbox
from evaluator_host.engine.sandbox.base import Backend, Finding
from evaluator_host.engine.sandbox.bubblewrap.backend import BubblewrapBackend
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.sandbox.local import LocalTools
from evaluator_host.engine.sandbox.pythons import Pythons, require_glibc
from evaluator_host.engine.sandbox.runtimes import runtimes_dir
from evaluator_host.engine.sandbox.unsandboxed import UnsandboxedBackend
from evaluator_host.engine.service.service import default_spec
from evaluator_host.engine.system.extras import extra
from evaluator_host.engine.system.supervisor import Supervisor
from evaluator_host.types.errors import (
    HostError,
    MachineExhausted,
    SandboxLost,
    SandboxSlow,
    SandboxUnavailable,
    refusal_of,
)
from evaluator_host.types.evaluator import Language

_log = logging.getLogger(__name__)

# temporary errors: a sandbox may start at a later attempt
PASSING: Final = (SandboxSlow, SandboxLost, MachineExhausted)
_TRIES: Final = 2  # how many times this module tries to start a sandbox; `open_engine` tries once more
# size limit of all data files on a Docker engine, as a multiple of the limit for one workspace
_DATA_WORKSPACES: Final = 4
_NO_BACKEND: Final = (
    "no sandbox backend works on this machine, and user code never runs without one. "
    "Install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap) "
    "or start a Docker engine and run `evaluator-host images build`. "
    "`evaluator-host doctor` shows what was tried"
)


async def make_backend(choice: SandboxChoice, settings: Settings, supervisor: Supervisor | None = None) -> Backend:
    """Create the chosen backend, without starting a sandbox.

    `supervisor` runs the backend's tasks; None creates a new supervisor.

    Raises:
      HostError: the tools of the backend cannot be prepared.
    """
    require_glibc()
    if choice is SandboxChoice.DOCKER:
        with extra("docker", "the backend docker", SandboxUnavailable):
            from evaluator_host.engine.sandbox.docker.backend import DockerBackend  # noqa: PLC0415 - docker-py: a third of a start

        return DockerBackend(
            docker_host=settings.engine_address,
            runtime=settings.docker_runtime,
            image=settings.docker_image,
            instance=this_instance(),
            owner=engine_owner(settings.data_dir),
            data_bytes=_DATA_WORKSPACES * (settings.data_mb << 20),
            python_with_node=settings.python_with_node,
            supervisor=supervisor,
        )
    tools, pythons = _tools(settings), machine_pythons(settings)
    if choice is SandboxChoice.NONE:
        return UnsandboxedBackend(tools, pythons)
    tools = replace(tools, shell=toolchain.shell_tools_dir(settings.data_dir))
    return BubblewrapBackend(
        tools, pythons, instance=this_instance(), supervisor=supervisor, start=settings.sandbox_start
    )


def _tools(settings: Settings) -> LocalTools:
    javascript = toolchain.JavascriptTools(settings.data_dir)
    return LocalTools(
        node=toolchain.node_path(),
        esbuild=javascript.esbuild,
        javascript=javascript.runner,
        ensure_javascript=javascript.ensure,
        restricted=toolchain.restricted_python_dir(settings.data_dir),
        runtimes=runtimes_dir(settings.data_dir),
        python_with_node=settings.python_with_node,
    )


def machine_pythons(settings: Settings) -> Pythons:
    """Return the Python interpreters of this machine; the search happens on first use."""
    return Pythons(settings.pythons, search_path=search_path(), homes=python_homes())


class Chosen(NamedTuple):
    """The backend that was chosen for a host."""

    backend: Backend
    has_started: bool  # whether the backend has started a sandbox; if not, the machine was too busy


async def choose_backend(settings: Settings, supervisor: Supervisor | None = None) -> Chosen:
    """Return the first backend that starts a sandbox, or that fails only because the machine is busy.

    The settings say which backends are tried.

    Raises:
      SandboxUnavailable: no backend works; the detail says what to install.
    """
    if settings.sandbox is SandboxChoice.NONE:
        _log.warning(
            "sandbox=none: user code runs as this user, and can use this user's files and network. "
            "Run only your own code!"
        )
    if settings.sandbox is not SandboxChoice.AUTO:
        return await _tried(settings.sandbox, settings, supervisor)
    tried = []
    for choice in (SandboxChoice.BUBBLEWRAP, SandboxChoice.DOCKER):
        try:
            return await _tried(choice, settings, supervisor)
        except HostError as error:
            tried.append(f"{choice}: {error.detail}")
    raise SandboxUnavailable(f"{_NO_BACKEND}. " + "; ".join(tried))


async def _tried(choice: SandboxChoice, settings: Settings, supervisor: Supervisor | None) -> Chosen:
    backend = await make_backend(choice, settings, supervisor)
    for number in range(1, _TRIES + 1):
        try:
            sandbox = await start_sandbox(backend, default_spec(Language.PYTHON, settings), grace_s=settings.grace_s)
            await sandbox.destroy()
        except PASSING as error:
            _log.warning("no sandbox could be started (attempt %d): %s", number, error.detail)
        except BaseException:
            await backend.close()
            raise
        else:
            return Chosen(backend, has_started=True)
    return Chosen(backend, has_started=False)


async def backend_findings(settings: Settings) -> dict[str, list[Finding]]:
    """Return the findings of `doctor` for each backend; never raises."""
    found: dict[str, list[Finding]] = {}
    for choice in (SandboxChoice.BUBBLEWRAP, SandboxChoice.DOCKER):
        try:
            backend = await make_backend(choice, settings)
        except HostError as error:
            found[str(choice)] = [Finding(name="tools", ok=False, detail=error.detail)]
            continue
        try:
            found[str(choice)] = await backend.findings()
        finally:
            await backend.close()
    return found


async def builder_findings(settings: Settings) -> list[Finding]:
    """Return the findings of `doctor` for the installation of packages; never raises."""
    try:
        folder = EnvironmentFolder(settings.data_dir.resolve() / SETS_FOLDER)
        return await Builder(folder.build_home, file_mb=settings.environments_mb).findings()
    except (HostError, OSError) as error:
        return [Finding("builder", ok=False, detail=refusal_of(error))]


async def build_images(settings: Settings, *, base: str | None, progress: Callable[[str], None]) -> str:
    """Build the Docker runtime image and return its tag.

    `base` is the image to build on, None for the pinned one. `progress` is called with a line for each step.

    Raises:
      SandboxUnavailable: Docker does not answer, or the base image can be neither pulled nor built.
    """
    require_glibc()
    with extra("docker", "the runtime image", SandboxUnavailable):
        from evaluator_host.engine.sandbox.docker.image.build import build_image  # noqa: PLC0415 - as in `make_backend`

    tools = _tools(settings)
    await toolchain.ensure_javascript_runner(settings.data_dir)
    return await build_image(
        docker_host=settings.engine_address, image=settings.docker_image, tools=tools, base=base, progress=progress
    )
