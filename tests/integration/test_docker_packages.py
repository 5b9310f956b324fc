"""Package sets are layers on the runtime image: they are built once, cannot be changed by sandboxes, and can be
compared, rebuilt and removed.
"""

import asyncio
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import docker
import docker.errors
import pytest

from evaluator_host.engine.environments.record import empty_environment
from evaluator_host.engine.sandbox.docker import environment_images
from evaluator_host.engine.sandbox.docker.backend import DockerBackend
from evaluator_host.engine.sandbox.docker.engine import Engine
from evaluator_host.engine.sandbox.docker.environment_images import (
    LABEL_ENVIRONMENT,
    LABEL_RUNTIME_IMAGE,
    EnvironmentImages,
    layer_tag,
)
from evaluator_host.engine.sandbox.docker.image.package_tree import tar_stream
from evaluator_host.types.errors import SandboxUnavailable
from evaluator_host.types.evaluator import DataFolder, Environment, Language, SandboxSpec
from tests import engines, package_sets
from tests.package_sets import NATIVE, RUNTIME_IMAGE, Set, answer, backend_at, client_at, labels_of, layers_of

OTHER_IMAGE = "evaluator-host/packages-test:1"


@pytest.fixture(scope="module")
def python_set(tmp_path_factory: pytest.TempPathFactory) -> Set:
    return package_sets.python_set(tmp_path_factory.mktemp("python") / "files")


@pytest.fixture(scope="module")
def javascript_set(tmp_path_factory: pytest.TempPathFactory) -> Set:
    return package_sets.javascript_set(tmp_path_factory.mktemp("javascript") / "files")


@pytest.fixture
def tiny_set(tmp_path: Path) -> Set:
    return package_sets.tiny_set(tmp_path / "tiny")


@pytest.fixture(scope="module")
def address() -> str:
    return engines.engine_address()


@pytest.fixture
def client(address: str) -> Iterator[docker.APIClient]:
    with client_at(address) as opened:
        yield opened


@pytest.fixture
async def backend(address: str) -> AsyncIterator[DockerBackend]:
    made = backend_at(address)
    yield made
    await made.close()


@pytest.mark.long
async def test_an_evaluator_imports_pure_and_native_packages(
    backend: DockerBackend, client: docker.APIClient, python_set: Set
) -> None:
    assert await answer(backend, python_set[0], NATIVE) == ["1.17.0", 75, True]
    names = labels_of(client, python_set[0])
    assert names[LABEL_ENVIRONMENT] == python_set[0].digest
    assert names[LABEL_RUNTIME_IMAGE] == client.inspect_image(RUNTIME_IMAGE)["Id"]


async def test_an_evaluator_imports_npm_packages(
    backend: DockerBackend, client: docker.APIClient, javascript_set: Set
) -> None:
    code = "import _ from 'lodash'\nfunction main() { return _.chunk([1, 2, 3], 2).length }\n"
    assert await answer(backend, replace(javascript_set[0], language=Language.TYPESCRIPT), code) == 2


async def test_packages_are_readable_and_nothing_else(
    backend: DockerBackend, client: docker.APIClient, tiny_set: Set
) -> None:
    environment, _ = tiny_set
    assert environment.path is not None
    (environment.path / "secretive.py").write_text("")
    (environment.path / "secretive.py").chmod(0o600)
    os.utime(environment.path / "tiny.py", (1_600_000_000, 1_600_000_000))
    code = """
import os, secretive, tiny
def main():
    about = os.stat(tiny.__file__)
    try:
        open("/opt/packages/more.py", "w")
    except OSError as error:
        return [tiny.answer, about.st_uid, about.st_mtime, oct(about.st_mode), error.strerror]
"""
    expected = [7, 0, 1_600_000_000, "0o100644", "Read-only file system"]
    assert await answer(backend, environment, code) == expected


@pytest.mark.long
async def test_many_callers_cause_one_build(address: str, client: docker.APIClient, tiny_set: Set) -> None:
    since = int(time.time())
    backend = backend_at(address)
    links = await asyncio.gather(*(backend.start(SandboxSpec(Language.PYTHON, tiny_set[0])) for _ in range(5)))
    await asyncio.gather(*(link.destroy() for link in links))
    await backend.close()
    again = backend_at(address)
    await again.prepare(tiny_set[0])
    await again.close()
    events = client.events(
        since=since, until=int(time.time()) + 1, filters={"type": "image", "event": "tag"}, decode=True
    )
    tags = [event["Actor"]["Attributes"]["name"] for event in events]
    assert tags.count(layer_tag(tiny_set[0].digest)) == 1


@pytest.mark.long
async def test_another_runtime_image_makes_another_layer(address: str, client: docker.APIClient, tiny_set: Set) -> None:
    first, second = (derive(client, text) for text in ("one", "two"))
    tag = layer_tag(tiny_set[0].digest)
    backend = backend_at(address, OTHER_IMAGE)
    try:
        client.tag(first, *OTHER_IMAGE.split(":"), force=True)
        await backend.prepare(tiny_set[0])
        before = client.inspect_image(tag)
        client.tag(second, *OTHER_IMAGE.split(":"), force=True)
        await backend.prepare(tiny_set[0])
        after = client.inspect_image(tag)
        assert after["Config"]["Labels"][LABEL_RUNTIME_IMAGE] == second
        assert after["Id"] != before["Id"]
        left = {image["Id"] for image in client.images(all=True)}
        assert left.isdisjoint({before["Id"], first}), "the old layer and the image below it must be removed"
    finally:
        await backend.close()
        client.remove_image(tag)
        client.remove_image(OTHER_IMAGE)


def derive(client: docker.APIClient, text: str) -> str:
    """Make a runtime image that differs from the usual image only in a label; return the new image's id."""
    return built(client, f"FROM {RUNTIME_IMAGE}\nLABEL test={text}\n")


def built(client: docker.APIClient, recipe: str, **trees: Path) -> str:
    """Build an image without a name; return its id. `trees` are the folders that the recipe copies."""
    whole = BytesIO(b"".join(tar_stream({"Dockerfile": recipe.encode()}, trees=trees)))
    lines = list(client.build(fileobj=whole, custom_context=True, rm=True, decode=True))
    return next(str(line["aux"]["ID"]) for line in lines if "aux" in line)


@pytest.mark.long
async def test_images_of_environments_that_are_gone_are_removed_and_others_stay(
    backend: DockerBackend, client: docker.APIClient, tiny_set: Set, python_set: Set
) -> None:
    gone, kept = tiny_set[0], python_set[0]
    await backend.prepare(kept)
    link = await backend.start(SandboxSpec(Language.PYTHON, gone))
    live = [kept.digest]
    assert layer_tag(gone.digest) not in await backend.prune_environments(live), (
        "a set must stay while a container uses it"
    )
    assert labels_of(client, gone)
    await link.destroy()
    assert layer_tag(gone.digest) in await backend.prune_environments(live)
    assert labels_of(client, kept)
    with pytest.raises(docker.errors.ImageNotFound):
        labels_of(client, gone)


@pytest.mark.long
async def test_copies_of_data_files_take_limited_space_on_the_engine(
    client: docker.APIClient, address: str, tmp_path: Path
) -> None:
    (tmp_path / "large.bin").write_bytes(bytes(1_000_000))
    backend = backend_at(address, data_bytes=2_500_000)
    links, copies = [], []
    for number in range(4):  # one file of the workspace, which four evaluators open at different paths
        layout = tmp_path / str(number)
        layout.mkdir()
        (layout / f"{number}.bin").hardlink_to(tmp_path / "large.bin")
        data = DataFolder(f"sha256:{secrets.token_hex(32)}", layout, "workspace")
        before = package_sets.layers_of(client)
        links.append(
            await backend.start(SandboxSpec(Language.PYTHON, empty_environment(Language.PYTHON, "3.13"), data=data))
        )
        copies.append(package_sets.layers_of(client) - before)
        if number > 0:
            await links[number].destroy()
    assert package_sets.layers_of(client) == copies[0] | copies[3], (
        "only the first image, which is in use, and the newest image must be kept"
    )
    await links[0].destroy()
    await backend.close()


@pytest.mark.long
async def test_images_of_data_files_that_are_built_at_once_take_limited_space(
    client: docker.APIClient, address: str, tmp_path: Path
) -> None:
    backend = backend_at(address, data_bytes=2_500_000)
    environment = empty_environment(Language.PYTHON, "3.13")
    many = [data_folder(tmp_path / str(number), "many") for number in range(4)]
    await asyncio.gather(*(backend._images.image_for(environment, data) for data in many))
    assert len(package_sets.layers_of(client)) == 2
    await backend.close()


@pytest.mark.long
async def test_a_workspace_with_many_images_of_data_files_leaves_those_of_others(
    client: docker.APIClient, address: str, tmp_path: Path
) -> None:
    backend = backend_at(address, data_bytes=2_500_000)
    environment = empty_environment(Language.PYTHON, "3.13")
    few = await backend._images.image_for(environment, data_folder(tmp_path / "few", "few"))
    for number in range(3):
        last = await backend._images.image_for(environment, data_folder(tmp_path / str(number), "many"))
    assert client.inspect_image(few), (
        "this image must stay although it is the oldest, because the other workspace has more images"
    )
    assert client.inspect_image(last)
    assert len(package_sets.layers_of(client)) == 2
    await backend.close()


def data_folder(folder: Path, workspace: str) -> DataFolder:
    """Write a file of 1 MB that no other image has, and return its folder."""
    folder.mkdir()
    (folder / "large.bin").write_bytes(secrets.token_bytes(1_000_000))
    return DataFolder(f"sha256:{secrets.token_hex(32)}", folder, workspace)


@pytest.mark.long
async def test_leftovers_of_a_host_killed_between_the_steps_of_a_build_are_removed(
    backend: DockerBackend, client: docker.APIClient, tiny_set: Set, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment, _ = tiny_set
    assert environment.path is not None
    left = built(client, f"FROM {RUNTIME_IMAGE}\nCOPY packages /opt/packages\n", packages=environment.path)
    foreign = built(client, f"FROM {RUNTIME_IMAGE}\nCOPY packages /opt/other\n", packages=environment.path)
    await backend.prune_environments([])
    assert client.inspect_image(left), (
        "a new image without a name must stay, because another host may still be building it"
    )
    monkeypatch.setattr(environment_images, "_UNFINISHED_S", -1.0)
    await backend.prune_environments([])
    with pytest.raises(docker.errors.ImageNotFound):
        client.inspect_image(left)
    client.remove_image(foreign)


@pytest.mark.long
async def test_an_image_that_another_host_removes_first_does_not_stop_the_removal(
    backend: DockerBackend,
    client: docker.APIClient,
    tiny_set: Set,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment, _ = tiny_set
    await backend.prepare(environment)
    folder = tmp_path / "left"
    folder.mkdir()
    (folder / "left.py").write_text(f"name = {secrets.token_hex(8)!r}\n")  # so that no other image has this step
    left = built(client, f"FROM {RUNTIME_IMAGE}\nCOPY packages /opt/packages\n", packages=folder)
    monkeypatch.setattr(environment_images, "_UNFINISHED_S", -1.0)
    read = environment_images._last_step

    def remove_and_read(own: docker.APIClient, image: str) -> str:
        if image == left:
            with suppress(docker.errors.ImageNotFound):
                client.remove_image(image)
        return read(own, image)

    monkeypatch.setattr(environment_images, "_last_step", remove_and_read)
    assert layer_tag(environment.digest) in await backend.prune_environments([])


@pytest.mark.long
async def test_another_hosts_images_stay(
    backend: DockerBackend, client: docker.APIClient, tiny_set: Set, address: str
) -> None:
    await backend.prepare(tiny_set[0])
    other = backend_at(address, owner=f"not-{package_sets.owner_name()}")
    assert await other.prune_environments([]) == []
    await other.close()
    assert labels_of(client, tiny_set[0])


@pytest.mark.long
async def test_an_image_that_goes_between_look_up_and_start_is_made_again(
    backend: DockerBackend, client: docker.APIClient, tiny_set: Set, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up, looked_up = EnvironmentImages.image_for, 0

    async def look_up_and_lose(layers: EnvironmentImages, environment: Environment, data: DataFolder | None) -> str:
        nonlocal looked_up
        tag = await look_up(layers, environment, data)
        looked_up += 1
        if looked_up == 1:
            await backend.prune_environments([])
        return tag

    monkeypatch.setattr(EnvironmentImages, "image_for", look_up_and_lose)
    assert await answer(backend, tiny_set[0], "import tiny\ndef main():\n    return tiny.answer\n") == 7
    assert looked_up == 2


@pytest.mark.long
async def test_a_set_that_was_mended_is_layered_again_while_a_sandbox_runs_on_the_old_one(
    backend: DockerBackend, client: docker.APIClient, tiny_set: Set
) -> None:
    environment, _ = tiny_set
    assert environment.path is not None
    link = await backend.start(SandboxSpec(Language.PYTHON, environment))
    (environment.path / "tiny.py").write_text("answer = 8\n")
    await backend.drop_environment(environment.digest)
    await backend.drop_environment(environment.digest)
    assert await answer(backend, environment, "import tiny\ndef main():\n    return tiny.answer\n") == 8
    assert not link.ended
    await link.destroy()
    assert len(layers_of(client)) == 2
    await backend.prune_environments([environment.digest])
    assert layers_of(client) == {client.inspect_image(layer_tag(environment.digest))["Id"]}


@pytest.mark.long
async def test_a_set_that_is_gone_from_the_disk_is_said_to_be(backend: DockerBackend, tiny_set: Set) -> None:
    assert tiny_set[0].path is not None
    shutil.rmtree(tiny_set[0].path)
    with pytest.raises(SandboxUnavailable, match=r"is no longer at"):
        await backend.start(SandboxSpec(Language.PYTHON, tiny_set[0]))


@pytest.mark.long
async def test_a_host_that_shuts_down_does_not_wait_for_a_build(
    address: str, client: docker.APIClient, tiny_set: Set
) -> None:
    engine = Engine(address)
    layers = EnvironmentImages(engine, image=RUNTIME_IMAGE)
    layers.stop()
    with pytest.raises(SandboxUnavailable, match="shutting down"):
        await layers.image_for(tiny_set[0])
    await layers.close()
    await engine.close()
    with pytest.raises(docker.errors.ImageNotFound):
        labels_of(client, tiny_set[0])


@pytest.mark.long
async def test_a_build_survives_the_caller_who_began_it(
    backend: DockerBackend, client: docker.APIClient, tiny_set: Set
) -> None:
    impatient = asyncio.create_task(backend.prepare(tiny_set[0]))
    patient = asyncio.create_task(backend.prepare(tiny_set[0]))
    await asyncio.sleep(0)
    impatient.cancel()
    await patient
    assert impatient.cancelled()
    assert labels_of(client, tiny_set[0])


@pytest.mark.long
async def test_images_are_built_while_another_process_of_this_host_prunes(
    backend: DockerBackend, client: docker.APIClient, address: str, tmp_path: Path
) -> None:
    sets = [package_sets.tiny_set(tmp_path / f"tiny-{number}")[0] for number in range(8)]
    other = backend_at(address)
    live = {one.digest for one in sets}
    building = asyncio.gather(*map(backend.prepare, sets))
    while not building.done():
        await other.prune_environments(live)
    await building
    await other.close()
    assert all(labels_of(client, one) for one in sets)


@pytest.mark.long
async def test_without_the_runtime_image_the_command_that_builds_it_is_named(address: str, tiny_set: Set) -> None:
    backend = backend_at(address, "evaluator-host/no-such-image:1")
    with pytest.raises(SandboxUnavailable, match="images build"):
        await backend.start(SandboxSpec(Language.PYTHON, tiny_set[0]))
    await backend.close()


@pytest.mark.long
async def test_a_large_set_does_not_pass_through_memory(client: docker.APIClient, address: str, tiny_set: Set) -> None:
    environment, _ = tiny_set
    assert environment.path is not None
    with (environment.path / "large.bin").open("wb") as file:
        file.truncate(300_000_000)
    program = (
        "import asyncio\n"
        "from pathlib import Path\n"
        "from evaluator_host.types.evaluator import Environment, Language\n"
        "from evaluator_host.engine.sandbox.docker.backend import DockerBackend\n"
        "async def main():\n"
        f"    backend = DockerBackend(docker_host={address!r}, runtime=None, image={RUNTIME_IMAGE!r}, instance='', "
        f"owner={package_sets.owner_name()!r})\n"
        f"    await backend.prepare(Environment({environment.digest!r}, Language.PYTHON, '', (), Path({str(environment.path)!r})))\n"
        "    await backend.close()\n"
        "asyncio.run(main())\n"
        # VmHWM is read, because ru_maxrss would include the parent's memory
        "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])\n"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) * 1024 < 200_000_000
    assert client.inspect_image(layer_tag(environment.digest))["Size"] > 300_000_000
