"""Builds the runtime image of the Docker backend from a base image, tools and runners; labels it with their digest."""

import asyncio
import contextlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

import docker
import docker.errors
import docker.utils

from evaluator_host.engine.config.settings import SANDBOX_IMAGES_DIR
from evaluator_host.engine.sandbox.docker.engine import ENGINE_ERRORS, Engine, find_image, image_labels, unavailable
from evaluator_host.engine.sandbox.docker.image.recipe import (
    GLIBC,
    LABEL_BASE,
    LABEL_RECIPE,
    Pins,
    base_digest,
    read_pins,
    recipe_digest,
    write_base_context,
    write_context,
)
from evaluator_host.engine.sandbox.local import LocalTools
from evaluator_host.engine.system.processes import Command, run
from evaluator_host.types.errors import Misconfigured, SandboxUnavailable

# how long to wait for the engine, in seconds; a remote engine first has to receive 130 MB
_BUILD_TIMEOUT_S: Final = 600
# value of `e_machine` in an ELF file, by the engine's name for the architecture
_MACHINES: Final = {"amd64": 62, "arm64": 183}
_ANSWER_S: Final = 20  # how long to wait for a registry, in seconds; firewalls that drop packets never answer
# time limit for bootstrapping a base image, in seconds; with a good connection it takes 90 seconds
_BOOTSTRAP_S: Final = 1800.0
_ENV: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}

Progress = Callable[[str], None]


async def ensure_base(engine: Engine, *, base: str | None, progress: Progress) -> str:
    """Return the tag of a base image that matches the pins. If the engine has none, build it.

    Raises:
      SandboxUnavailable: no registry answers, and the base cannot be built here; the detail says why.
    """
    pins = read_pins()
    tag = f"evaluator-host/base:{pins.suite}"
    label = f"{base_digest()} {base or 'pinned'}"
    if (await engine.run(image_labels, tag) or {}).get(LABEL_BASE) == label:
        progress(f"base image {tag} is up to date")
        return tag
    reference = base or pins.base_reference
    try:
        await engine.run(_obtain, reference, progress=progress)
        progress(f"building {tag} from {reference}")
        await engine.run(_build_base, tag, reference=reference, pins=pins, label=label)
    except ENGINE_ERRORS as error:
        if base is not None:
            raise SandboxUnavailable(
                f"the base image {base} cannot be used: {error}; name another one with --base"
            ) from error
        progress(
            f"{reference} cannot be pulled ({str(error).strip()[:200]}); bootstrapping Debian {pins.suite} instead"
        )
        await _bootstrap(engine, tag, pins=pins, label=label, progress=progress)
    return tag


def run_build(client: docker.APIClient, context: IO[bytes] | Iterator[bytes], *, tag: str, **options: Any) -> None:
    """Build an image from a tar. Unlike docker-py's `build`, raise an error if a step fails.

    Raises:
      docker.errors.BuildError: a step failed; `msg` contains the last 2,000 characters of the output.
    """
    lines: list[str] = []
    failed = False
    for event in client.build(
        fileobj=cast("IO[bytes]", context), custom_context=True, tag=tag, rm=True, forcerm=True, decode=True, **options
    ):
        lines.append(str(event.get("stream") or event.get("error") or ""))
        failed = failed or bool(event.get("error"))
    if failed:  # the error is raised after the loop, because an unread response would keep its connection open
        raise docker.errors.BuildError("".join(lines)[-2000:].strip(), iter(()))


def _obtain(client: docker.APIClient, reference: str, *, progress: Progress) -> None:
    """Pull an image, unless the engine has it. Raises `ENGINE_ERRORS` if this fails."""
    if find_image(client, reference) is not None:
        return
    _ask_registry(client, reference)
    progress(f"pulling {reference}")
    for event in client.pull(reference, stream=True, decode=True):
        if event.get("error"):
            raise docker.errors.DockerException(str(event["error"]))


def _ask_registry(client: docker.APIClient, reference: str) -> None:
    timeout, client.timeout = client.timeout, _ANSWER_S
    try:
        client.inspect_distribution(reference)  # type: ignore[no-untyped-call]
    except docker.errors.NotFound as error:
        # Podman does not have this endpoint; if the registry has a fault, the pull reports it
        if "page not found" not in str(error):
            raise
    finally:
        client.timeout = timeout


def _build_base(client: docker.APIClient, tag: str, *, reference: str, pins: Pins, label: str) -> None:
    with tempfile.TemporaryFile() as context:
        write_base_context(context)
        context.seek(0)
        arguments = {"BASE": reference, "PACKAGES": " ".join(pins.packages)}
        run_build(client, context, tag=tag, labels={LABEL_BASE: label}, buildargs=arguments)


async def _bootstrap(engine: Engine, tag: str, *, pins: Pins, label: str, progress: Progress) -> None:
    tool = _bootstrap_tool(pins)
    with tempfile.TemporaryDirectory(prefix="evaluator-host-base-") as folder:
        root = Path(folder) / "root"
        command = [tool, "--variant=minbase", f"--include={','.join(pins.packages)}", pins.suite, str(root)]
        progress(f"running {' '.join(command)}")
        await _run(command)
        shutil.copyfile(SANDBOX_IMAGES_DIR / "strip.sh", root / "strip.sh")
        await _run(["chroot", str(root), "/bin/sh", "/strip.sh"])
        (root / "strip.sh").unlink()
        progress(f"importing {tag}")
        await engine.run(_import_tree, root, tag=tag, label=label)


def _bootstrap_tool(pins: Pins) -> str:
    tool = shutil.which("debootstrap", path=_ENV["PATH"]) or shutil.which("mmdebstrap", path=_ENV["PATH"])
    if tool is None:
        raise SandboxUnavailable(
            f"no registry provides {pins.base_image}, and neither debootstrap nor mmdebstrap is installed to build it; "
            "run `apt-get install debootstrap` and then this command as root, or name a Debian image with --base"
        )
    if os.geteuid() != 0:
        raise SandboxUnavailable(
            f"no registry provides {pins.base_image}, and building it needs root: run this command once with sudo, "
            "or name a Debian image with --base"
        )
    return tool


async def _run(command: list[str]) -> None:
    try:
        finished = await run(Command(tuple(command), Path("/"), _ENV), _BOOTSTRAP_S)
    except OSError as error:  # includes TimeoutError, which is an OSError
        raise SandboxUnavailable(f"{command[0]} failed: {str(error) or 'it took too long'}") from error
    if finished.code != 0:
        raise SandboxUnavailable(f"{command[0]} failed: {(finished.stdout + finished.stderr)[-1000:].strip()}")


def _import_tree(client: docker.APIClient, root: Path, *, tag: str, label: str) -> None:
    with tempfile.TemporaryFile() as whole:
        # `/dev` is left out, because the engine makes it for each container
        with tarfile.open(fileobj=whole, mode="w") as tar:
            tar.add(root, arcname=".", filter=lambda member: None if member.isdev() else member)
        whole.seek(0)
        repository, _, name = tag.rpartition(":")
        client.import_image_from_data(whole, repository, name, changes=[f'LABEL {LABEL_BASE}="{label}"'])


async def build_image(
    *,
    docker_host: str | None,
    image: str,
    tools: LocalTools,
    progress: Progress,
    base: str | None = None,
) -> str:
    """Build the runtime image on the engine and return its tag; this takes seconds if nothing has changed.

    `base` is a Debian image to use instead of the pinned one. Node and esbuild must be built for the engine's platform.

    Raises:
      SandboxUnavailable: the engine does not answer, or a step failed; the detail has the end of its output.
      Misconfigured: the tools are not built for the engine's platform.
    """
    engine = Engine(docker_host, timeout_s=_BUILD_TIMEOUT_S)
    try:
        facts = await engine.facts()
        await asyncio.to_thread(_check_platform, tools, arch=facts.arch)
        base_tag = await ensure_base(engine, base=base, progress=progress)
        progress(f"building {image}")
        await engine.run(_build_runtime, image, base_tag=base_tag, tools=tools)
        progress(f"{image} is ready")
        return image
    except docker.errors.BuildError as error:
        raise SandboxUnavailable(f"building {image} failed: {error.msg}") from error
    except ENGINE_ERRORS as error:
        raise unavailable(error, address=engine.address, image=image) from error
    finally:
        await engine.close()


def _build_runtime(client: docker.APIClient, image: str, *, base_tag: str, tools: LocalTools) -> None:
    before = find_image(client, image)
    labels = {LABEL_RECIPE: recipe_digest(tools.runtimes)}
    with tempfile.TemporaryFile() as context:
        write_context(context, tools)
        context.seek(0)
        arguments = {"BASE": base_tag, "PYTHON": read_pins().python, "GLIBC": ".".join(map(str, GLIBC))}
        run_build(client, context, tag=image, labels=labels, buildargs=arguments, network_mode="none")
    after = find_image(client, image)
    if before and after and before["Id"] != after["Id"]:
        with contextlib.suppress(docker.errors.APIError):  # fails if a sandbox uses the old image
            client.remove_image(before["Id"])


def _check_platform(tools: LocalTools, *, arch: str) -> None:
    """Raise Misconfigured if Node or esbuild is built for another platform than the image, such as macOS."""
    expected = _MACHINES.get(arch)
    for path in (tools.node, tools.esbuild):
        with path.open("rb") as program:
            head = program.read(20)
        machine = int.from_bytes(head[18:20], "little") if head[:4] == b"\x7fELF" else None
        if machine is None or (expected is not None and machine != expected):
            raise Misconfigured(
                f"{path} is not a Linux program for {arch or 'the engine'}; "
                "build the image on a machine of the engine's platform, push it, and pull it here"
            )
