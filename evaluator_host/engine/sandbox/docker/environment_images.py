"""Puts package sets into images: each set is a layer on the runtime image, and the image's labels name the set."""

import asyncio
import contextlib
import hashlib
import json
import logging
import re
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import docker
import docker.errors

from evaluator_host.engine.sandbox.docker.engine import Engine, find_image, image_labels
from evaluator_host.engine.sandbox.docker.image.build import run_build
from evaluator_host.engine.sandbox.docker.image.package_tree import open_image, tar_facts, tar_stream, tree_facts
from evaluator_host.engine.sandbox.docker.image.recipe import LABEL_RECIPE
from evaluator_host.engine.sandbox.docker.policy import IMAGE_DATA, IMAGE_PACKAGES
from evaluator_host.engine.system.tree import size_bytes
from evaluator_host.engine.system.turns import Turns
from evaluator_host.types.errors import OverQuota, SandboxUnavailable
from evaluator_host.types.evaluator import DataFolder, Environment

LABEL_ENVIRONMENT: Final = "evaluator-host.environment"
LABEL_RUNTIME_IMAGE: Final = "evaluator-host.runtime-image"
LABEL_OWNER: Final = "evaluator-host.owner"
LABEL_DATA_BYTES: Final = "evaluator-host.data-bytes"
LABEL_WORKSPACE: Final = "evaluator-host.workspace"
LAYER_REPOSITORY: Final = "evaluator-host/env"
CONTEXT_PACKAGES: Final = "packages"
_CONTEXT_DATA: Final = "data"

_LOG: Final = logging.getLogger(__name__)
# number of hex digits of a digest in an image's name: 128 bits, so that names are unique, but short enough for a list
_DIGEST_CHARS: Final = 32
# matches how an engine describes the build step that copies files, such as `#(nop) COPY dir:… in /opt/data `
_COPIED: Final = re.compile(rf"\bCOPY .*({IMAGE_PACKAGES}|{IMAGE_DATA})\s*$")
_BUILD_TIMEOUT_S: Final = 600  # longest time that an engine may be silent, in seconds, while it copies a large set
_BUILD_TIMES: Final = 3  # how many times to try a build, because another process of this host may prune the new image
# an image without a name counts as abandoned after this many seconds; a new image gets its name within milliseconds
_NAMING_S: Final = 1.0
_UNFINISHED_S: Final = 3600.0  # time in seconds after which a build can no longer be running


def layer_tag(digest: str) -> str:
    """Return the name of an environment's image: `evaluator-host/env:<first 32 hex digits of its digest>`."""
    return f"{LAYER_REPOSITORY}:{digest.removeprefix('sha256:')[:_DIGEST_CHARS]}"


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer of an image.

    Attributes:
      digest: Digest of the package set. For a layer of data files, the digest covers the package set and the files.
      name: What the layer contains: `packages` or `data`.
      folder: The folder on this machine.
      place: Path in the image at which the content appears.
      below: Tag of the image on which the layer is built.
      workspace: Digest that stands for the workspace whose data files the layer contains; empty for packages.
    """

    digest: str
    name: str
    folder: Path
    place: str
    below: str
    workspace: str = ""


class EnvironmentImages:
    """Builds, finds and removes the images of environments on one engine.

    An image is current if its labels match the environment and the present runtime image. After `images build` has made
    another runtime image, each image of an environment is built again when a sandbox needs it.

    Args:
      engine: The engine. Each start of a sandbox queries it for the image, which takes milliseconds.
      image: Tag of the runtime image.
      owner: Label of this host's images; `prune` removes only images with this label.
      data_bytes: Bytes that data files may take in all images of this host together. Every image has a copy of its own,
        so a file that evaluators open at different paths is there several times. Before a build, images are removed
        in the order of `removal_order`, and each process builds one image with data files at a time. So only two
        things can exceed the limit: images that containers use, because they stay; and images that several processes
        of this host build at the same moment.
    """

    def __init__(self, engine: Engine, *, image: str, owner: str = "", data_bytes: int = 0) -> None:
        self._engine = engine
        self._builder = Engine(engine.address, timeout_s=_BUILD_TIMEOUT_S)
        self._image = image
        self._owner = owner
        self._data_bytes = data_bytes
        self._building: dict[str, asyncio.Task[str]] = {}
        # lets one image with data files be built at a time; a turn includes making room for the image
        self._room = Turns(1, each=1)
        self._stopping = threading.Event()

    async def image_for(self, environment: Environment, data: DataFolder | None = None) -> str:
        """Return the tag of an image that contains an environment, and `data` if given. Build it if it is not current.

        Concurrent calls share one build. The build continues if a caller is cancelled.

        Raises:
          SandboxUnavailable: there is no runtime image, or the build failed.
          OverQuota: the data files alone take more than the images of all evaluators may take.
        """
        image = self._image
        if environment.path is not None:
            layer = _Layer(environment.digest, CONTEXT_PACKAGES, environment.path, IMAGE_PACKAGES, image)
            image = await self._require(layer)
        if data is not None:
            digest = hashlib.sha256(f"{environment.digest} {data.digest}".encode()).hexdigest()
            layer = _Layer(f"sha256:{digest}", _CONTEXT_DATA, data.path, IMAGE_DATA, image, data.workspace)
            image = await self._require(layer)
        return image

    async def prune(self, live: Collection[str]) -> list[str]:
        """Remove the owner's outdated images and its images of environments not in `live`; return the removed names.

        An image that a container runs from, or that is being built, stays until the next call.
        """
        return await self._engine.run(_prune, owner=self._owner, live=frozenset(live), busy=frozenset(self._building))

    async def compare(self, environment: Environment) -> list[str]:
        """Return the paths at which an environment's image differs from its folder; none if there is no image.

        Raises:
          SandboxUnavailable: the folder has a socket, device or other entry that does not belong in a package set.
        """
        if environment.path is None:
            return []
        tag = layer_tag(environment.digest)
        if not await self._engine.run(_is_current, tag, digest=environment.digest, image=self._image):
            return []  # an outdated image does not matter, because no sandbox starts from it
        return await self._builder.run(_differences, tag, image=self._image, packages=environment.path)

    async def drop(self, digest: str) -> None:
        """Untag the image of an environment because the files have changed; running sandboxes keep the image."""
        await self._engine.run(_untag, layer_tag(digest))

    def stop(self) -> None:
        """Let running builds fail soon, so that `close` need not wait for them."""
        self._stopping.set()

    async def close(self) -> None:
        """End every build and close the connection."""
        self.stop()
        if self._building:
            await asyncio.wait(self._building.values())
        await self._builder.close()

    async def _require(self, layer: _Layer) -> str:
        tag = layer_tag(layer.digest)
        building = self._building.get(tag)
        if building is None:
            if await self._engine.run(_is_current, tag, digest=layer.digest, image=self._image):
                return tag
            building = self._building.get(tag) or self._begin(tag, layer)
        return await asyncio.shield(building)

    def _begin(self, tag: str, layer: _Layer) -> asyncio.Task[str]:
        task = asyncio.create_task(self._build(tag, layer))
        self._building[tag] = task
        task.add_done_callback(lambda done: self._ended(tag, done))
        return task

    def _ended(self, tag: str, task: asyncio.Task[str]) -> None:
        del self._building[tag]
        # log the error, because all callers may have been cancelled
        if not task.cancelled() and task.exception() is not None:
            _LOG.warning("building %s failed: %s", tag, task.exception())

    async def _build(self, tag: str, layer: _Layer) -> str:
        if layer.name != _CONTEXT_DATA:
            return await self._try_build(tag, layer, labels={})
        async with self._room.turn(layer.workspace):
            data_bytes = await asyncio.to_thread(size_bytes, layer.folder)
            if data_bytes > self._data_bytes:
                raise OverQuota(
                    f"copies of this evaluator's data files take {data_bytes >> 20} MB, but those of all evaluators "
                    f"may take only {self._data_bytes >> 20} MB on the Docker engine; use each file under fewer paths, "
                    "or ask the operator for a higher EVALUATOR_HOST_DATA_MB"
                )
            await self._engine.run(
                _make_room,
                owner=self._owner,
                most_bytes=self._data_bytes,
                new_bytes=data_bytes,
                workspace=layer.workspace,
            )
            labels = {LABEL_DATA_BYTES: str(data_bytes), LABEL_WORKSPACE: layer.workspace}
            return await self._try_build(tag, layer, labels=labels)

    async def _try_build(self, tag: str, layer: _Layer, *, labels: dict[str, str]) -> str:
        for left in reversed(range(_BUILD_TIMES)):
            try:
                await self._builder.run(self._build_now, tag, layer=layer, labels=labels)
                break
            except docker.errors.BuildError as error:
                if not left or self._stopping.is_set():
                    raise SandboxUnavailable(f"building {tag} failed: {error.msg}") from error
        return tag

    def _build_now(self, client: docker.APIClient, tag: str, *, layer: _Layer, labels: dict[str, str]) -> None:
        if not layer.folder.is_dir():
            raise SandboxUnavailable(
                f"the folder with the {layer.name} of {layer.digest} is no longer at {layer.folder}; try again"
            )
        below = _runtime_id(client, layer.below)
        runtime = _runtime_id(client, self._image)
        before = find_image(client, tag)
        labels = {LABEL_ENVIRONMENT: layer.digest, LABEL_RUNTIME_IMAGE: runtime, LABEL_OWNER: self._owner, **labels}
        # `FROM` names an id, because a tag may be moved before the engine reads it. A single last step sets all labels:
        # the builder's option `labels` would make a nameless image for each label, and `prune` removes nameless images
        # with our labels.
        words = " ".join(f"{name}={json.dumps(value)}" for name, value in labels.items())
        recipe = f"FROM {below}\nCOPY {layer.name} {layer.place}\nLABEL {words}\n"
        context = tar_stream({"Dockerfile": recipe.encode()}, trees={layer.name: layer.folder})
        run_build(client, self._until_stopped(context), tag=tag, network_mode="none")
        after = find_image(client, tag)
        if before and after and before["Id"] != after["Id"]:
            with contextlib.suppress(docker.errors.APIError):  # fails if a sandbox uses it; `prune` removes it later
                client.remove_image(before["Id"])

    def _until_stopped(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if self._stopping.is_set():
                raise SandboxUnavailable("this host is shutting down")
            yield piece


def _runtime_id(client: docker.APIClient, image: str) -> str:
    found = find_image(client, image)
    if found is None:
        raise SandboxUnavailable(f"the engine has no image {image}; run `evaluator-host images build`")
    return str(found["Id"])


def _is_current(client: docker.APIClient, tag: str, *, digest: str, image: str) -> bool:
    labels = image_labels(client, tag)
    if labels is None:
        return False
    return (labels.get(LABEL_ENVIRONMENT), labels.get(LABEL_RUNTIME_IMAGE)) == (digest, _runtime_id(client, image))


def _differences(client: docker.APIClient, tag: str, *, image: str, packages: Path) -> list[str]:
    expected = dict(tree_facts(packages))
    runtime, layer = (_layers(find_image(client, name)) for name in (image, tag))
    if layer[:-1] != runtime:
        return ["(the runtime image on which it is built)"]
    with open_image(client, tag) as container, container.archive(IMAGE_PACKAGES) as pieces:
        try:
            present = dict(tar_facts(pieces))
        except tarfile.TarError:
            return ["(the whole layer)"]
    return sorted(name for name in expected.keys() | present.keys() if expected.get(name) != present.get(name))


def _layers(found: dict[str, Any] | None) -> list[str]:
    return list(((found or {}).get("RootFS") or {}).get("Layers") or ())


def _prune(client: docker.APIClient, *, owner: str, live: frozenset[str], busy: frozenset[str]) -> list[str]:
    unwanted = _unwanted(client, owner=owner, live=live, busy=busy) | _unfinished(client)
    # an image without a name is listed by its id; a new one may get its name soon
    if any(name.startswith("sha256:") for name in unwanted):
        time.sleep(_NAMING_S)
        unwanted &= _unwanted(client, owner=owner, live=live, busy=busy) | _unfinished(client)
    removed = []
    for name in sorted(unwanted):
        with contextlib.suppress(docker.errors.APIError):  # fails if a container uses the image, or if it is gone
            client.remove_image(name)
            removed.append(name)
    return removed


def _make_room(client: docker.APIClient, *, owner: str, most_bytes: int, new_bytes: int, workspace: str) -> None:
    """Remove the owner's images with data files, until they and a new image take at most `most_bytes` together.

    A sandbox that is about to start from a removed image builds it again.
    """
    found = client.images(filters={"label": [LABEL_DATA_BYTES, f"{LABEL_OWNER}={owner}"]})
    sum_bytes = new_bytes + sum(map(_data_bytes, found))
    for image in removal_order(found, new_bytes=new_bytes, workspace=workspace):
        if sum_bytes <= most_bytes:
            break
        with contextlib.suppress(docker.errors.APIError):  # fails if a container uses the image
            for name in [*filter(_is_layer, image.get("RepoTags") or ())] or [image["Id"]]:
                client.remove_image(name)
            sum_bytes -= _data_bytes(image)


def removal_order(images: Iterable[dict[str, Any]], *, new_bytes: int, workspace: str) -> list[dict[str, Any]]:
    """Return all images with data files, in the order in which to remove them to make room for a new image.

    The next image is always the oldest one of the workspace whose remaining images take the most space. If several
    workspaces take equally much, `workspace` comes first; otherwise, the oldest of their images is next. So a workspace
    with many images makes room for its own new images, and a workspace with few images keeps them.

    Args:
      images: Images as the engine lists them (`Created`, `Labels`, …).
      new_bytes: Size of the data files in the new image.
      workspace: The workspace that needs the new image, which counts as one of its images.
    """
    taken = Counter({workspace: new_bytes})
    left: dict[str, list[dict[str, Any]]] = {}
    for image in sorted(images, key=lambda one: int(one["Created"]), reverse=True):
        name = image["Labels"].get(LABEL_WORKSPACE, "")
        left.setdefault(name, []).append(image)
        taken[name] += _data_bytes(image)
    order = []
    while left:
        largest = max(left, key=lambda name: (taken[name], name == workspace, -int(left[name][-1]["Created"])))
        image = left[largest].pop()
        taken[largest] -= _data_bytes(image)
        order.append(image)
        if not left[largest]:
            del left[largest]
    return order


def _data_bytes(image: dict[str, Any]) -> int:
    return int(image["Labels"][LABEL_DATA_BYTES])


def _unwanted(client: docker.APIClient, *, owner: str, live: frozenset[str], busy: frozenset[str]) -> set[str]:
    """Return the images of `owner` to remove: by name, or by id if they have no name."""
    found: set[str] = set()
    for image in client.images(filters={"label": [LABEL_ENVIRONMENT]}):
        labels = image.get("Labels") or {}
        names = {name.removeprefix("localhost/") for name in image.get("RepoTags") or () if _is_layer(name)}
        if labels.get(LABEL_OWNER) != owner or (labels.get(LABEL_ENVIRONMENT) in live and names) or busy & names:
            continue
        if names or not _is_named(image):  # an image stays if somebody else has given it a name
            found |= names or {image["Id"]}
    return found


def _unfinished(client: docker.APIClient) -> set[str]:
    """Return the ids of images that hosts left when they were killed between the steps of a build.

    The files are copied, but the labels that name the set and its owner are not set.
    """
    found = client.images(filters={"dangling": True, "label": [LABEL_RECIPE]})
    old = [image for image in found if time.time() - image["Created"] > _UNFINISHED_S]
    ids = {str(image["Id"]) for image in old if LABEL_ENVIRONMENT not in image["Labels"]}
    return {image for image in ids if _COPIED.search(_last_step(client, image))}


def _last_step(client: docker.APIClient, image: str) -> str:
    """Return the words of an image's last step; empty if another host has removed the image since it was listed."""
    try:
        steps: list[dict[str, Any]] = client.history(image)  # type: ignore[no-untyped-call]
    except docker.errors.NotFound:
        return ""
    return str(steps[0]["CreatedBy"])


def _untag(client: docker.APIClient, tag: str) -> None:
    """Remove the name of an image, even if a container uses the image; `prune` removes the nameless image later."""
    with contextlib.suppress(docker.errors.ImageNotFound):
        client.remove_image(tag, force=True)


def _is_layer(name: str) -> bool:
    return name.removeprefix("localhost/").startswith(f"{LAYER_REPOSITORY}:")


def _is_named(image: dict[str, list[str] | None]) -> bool:
    names = (*(image.get("RepoTags") or ()), *(image.get("RepoDigests") or ()))
    return any(not name.startswith("<none>") for name in names)
