"""Builds the runtime image of the Docker backend from base, tools and runners; labels it with a digest of them."""

import asyncio
import contextlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import docker
import docker.errors

from evaluator_host.config.settings import RUNTIMES_DIR, SANDBOX_IMAGES_DIR
from evaluator_host.model.errors import Misconfigured, SandboxUnavailable
from evaluator_host.sandbox.docker.engine import ENGINE_ERRORS, Engine, find_image, unavailable
from evaluator_host.sandbox.docker.image.base import Progress, ensure_base, run_build
from evaluator_host.sandbox.docker.image.recipe import LABEL_RECIPE, Tools, recipe_digest, write_context

_BUILD_TIMEOUT_S: Final = 600  # a remote engine receives 130 MB of context before it answers
_MACHINES: Final = {"amd64": 62, "arm64": 183}  # e_machine of ELF, by the engine's name of the architecture


async def build_image(
    *,
    docker_host: str | None,
    image: str,
    node: Path,
    esbuild: Path,
    restricted: Path,
    progress: Progress,
    base: str | None = None,
    proxies: Mapping[str, str] | None = None,
    runtimes_dir: Path = RUNTIMES_DIR,
    images_dir: Path = SANDBOX_IMAGES_DIR,
) -> str:
    """Make the runtime image on the engine and return its tag; with nothing changed that takes seconds.

    Args:
      docker_host: Address of the engine; None for the local one.
      image: Tag of the result.
      node: The Node binary; like esbuild's it must be of the engine's platform.
      esbuild: The esbuild binary.
      restricted: Directory that holds RestrictedPython, as for `--restricted`.
      progress: Called with a line about every step.
      base: Debian image to begin with instead of the pinned one.
      proxies: `http_proxy` and the like, for a bootstrap.
      runtimes_dir: Folder of the runners.
      images_dir: Folder of the recipe.

    Raises:
      SandboxUnavailable: the engine does not answer, or a step failed; the detail has the end of its output.
      Misconfigured: the tools are of another platform than the engine.
    """
    tools = Tools(node=node, esbuild=esbuild, restricted=restricted)
    engine = Engine(docker_host, timeout_s=_BUILD_TIMEOUT_S)
    try:
        facts = await engine.facts()
        await asyncio.to_thread(_check_platform, tools, arch=facts.arch)
        base_tag = await ensure_base(engine, base=base, images_dir=images_dir, progress=progress, proxies=proxies or {})
        progress(f"building {image}")
        dirs = {"runtimes_dir": runtimes_dir, "images_dir": images_dir}
        await engine.run(_build_runtime, image, base_tag=base_tag, tools=tools, dirs=dirs)
        progress(f"{image} is ready")
        return image
    except docker.errors.BuildError as error:
        raise SandboxUnavailable(f"building {image} failed: {error.msg}") from error
    except ENGINE_ERRORS as error:
        raise unavailable(error, address=engine.address, image=image) from error
    finally:
        await engine.close()


def _build_runtime(client: docker.APIClient, image: str, *, base_tag: str, tools: Tools, dirs: dict[str, Path]) -> None:
    before = find_image(client, image)
    labels = {LABEL_RECIPE: recipe_digest(**dirs)}
    with tempfile.TemporaryFile() as context:
        write_context(context, tools=tools, **dirs)
        context.seek(0)
        run_build(client, context, tag=image, labels=labels, buildargs={"BASE": base_tag}, network_mode="none")
    after = find_image(client, image)
    if before and after and before["Id"] != after["Id"]:
        with contextlib.suppress(docker.errors.APIError):  # a sandbox still runs on it
            client.remove_image(before["Id"])


def _check_platform(tools: Tools, *, arch: str) -> None:
    """Raise Misconfigured for programs that cannot run in the image: a Mac's Node, or that of another processor."""
    expected = _MACHINES.get(arch)
    for path in (tools.node, tools.esbuild):
        with path.open("rb") as program:
            head = program.read(20)
        machine = int.from_bytes(head[18:20], "little") if head[:4] == b"\x7fELF" else None
        if machine is None or (expected is not None and machine != expected):
            raise Misconfigured(
                f"{path} is no Linux program for {arch or 'the engine'}; "
                "build the image on a machine of the engine's platform, push it, and pull it here"
            )
