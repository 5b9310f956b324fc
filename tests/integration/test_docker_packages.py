"""Package sets as layers on the runtime image: built once, seen read-only, moved through a real registry, removed."""

import asyncio
import contextlib
import os
import platform
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest
import requests

from evaluator_host.config import Settings
from evaluator_host.environments import toolchain
from evaluator_host.environments.record import Record, now, set_key
from evaluator_host.environments.registry import pull, push
from evaluator_host.environments.targets import target_for
from evaluator_host.environments.unpack import unpack
from evaluator_host.errors import IndexUnavailable, InvalidRequest, PackagesFailed, SandboxUnavailable
from evaluator_host.model import (
    Contract,
    Environment,
    Failed,
    Language,
    Limits,
    Package,
    Policy,
    Returned,
    SandboxSpec,
)
from evaluator_host.packages.locked import Lock, LockedPackage
from evaluator_host.packages.pins import Pin
from evaluator_host.packages.tools import installed_tools
from evaluator_host.pool.blanks import start_sandbox
from evaluator_host.sandbox.docker import DockerBackend
from evaluator_host.sandbox.docker_engine import Engine
from evaluator_host.sandbox.docker_layers import LABEL_ENVIRONMENT, LABEL_RUNTIME_IMAGE, Layers, layer_tag
from evaluator_host.sandbox.instance import this_instance
from evaluator_host.sandbox.package_tree import tar_stream, tree_digest
from evaluator_host.sandbox.session import LoadOrder
from tests import engines

RUNTIME_IMAGE = Settings().docker_image
OTHER_IMAGE = "evaluator-host/packages-test:1"
Set = tuple[Environment, Record]
OURS: set[str] = set()  # digests of what is made here: other sessions may use the engine meanwhile


def install_python(folder: Path) -> None:
    """Install six and, with a native module, rapidfuzz for the image's Python."""
    command = [str(installed_tools().uv), "pip", "install", "--quiet", "--no-config", "--target", str(folder)]
    command += [
        "--python-version",
        "3.13",
        "--python-platform",
        f"{platform.machine()}-manylinux_2_28",
        "--only-binary",
        ":all:",
    ]
    subprocess.run([*command, "six==1.17.0", "rapidfuzz==3.14.3"], check=True)


def install_javascript(folder: Path) -> None:
    command = [*toolchain.npm_command(), "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run([*command, "--prefix", str(folder), "lodash@4.17.21"], check=True)


def described(folder: Path, language: Language, **packages: str) -> Set:
    """The environment and the record of what was installed there, as a host keeps them."""
    target = target_for("docker", language)
    pins = tuple(sorted(Pin(name, version, (), language) for name, version in packages.items()))
    locked = tuple(LockedPackage(pin.name, pin.version, requested=True) for pin in pins)
    lock = Lock(language, target, pins, locked, "\n".join(pin.text for pin in pins))
    listed = tuple(Package(pin.name, pin.version) for pin in pins)
    OURS.add(lock.digest)
    environment = Environment(lock.digest, language, target.runtime, listed, folder)
    key = set_key(pins, language, target)
    return environment, Record(key, lock.digest, language, target.runtime, listed, lock.to_json(), 1, now(), 1.0)


@pytest.fixture(scope="module")
def python_set(tmp_path_factory: pytest.TempPathFactory) -> Set:
    folder = tmp_path_factory.mktemp("python") / "files"
    install_python(folder)
    return described(folder, Language.PYTHON, six="1.17.0", rapidfuzz="3.14.3")


@pytest.fixture(scope="module")
def javascript_set(tmp_path_factory: pytest.TempPathFactory) -> Set:
    folder = tmp_path_factory.mktemp("javascript") / "files"
    folder.mkdir()
    install_javascript(folder)
    return described(folder, Language.JAVASCRIPT, lodash="4.17.21")


@pytest.fixture
def tiny_set(tmp_path: Path) -> Set:
    """A set of one module, for what needs no index."""
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "tiny.py").write_text("answer = 7\n")
    return described(tmp_path / "tiny", Language.PYTHON, tiny=f"1.{time.time_ns()}")


@pytest.fixture(scope="module")
def address() -> str:
    return engines.engine_address()


@pytest.fixture
def client(address: str) -> Iterator[docker.APIClient]:
    """The engine; what a test leaves on it is removed."""
    with contextlib.closing(docker.APIClient(base_url=address)) as opened:
        yield opened
        for image in layers_of(opened):
            opened.remove_image(image, force=True)
        assert not [name for image in opened.images() for name in image["RepoTags"] or () if name.startswith("127.")]


@pytest.fixture
async def backend(address: str) -> AsyncIterator[DockerBackend]:
    made = backend_at(address)
    yield made
    await made.close()


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Debian's registry server on a loopback port, which engines trust without TLS."""
    if shutil.which("docker-registry") is None:
        pytest.fail("there is no registry server: install docker-registry")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path_factory.mktemp("registry")
    storage = f"storage: {{filesystem: {{rootdirectory: {home}/data}}}}"
    (home / "config.yml").write_text(f"version: 0.1\n{storage}\nhttp: {{addr: '127.0.0.1:{port}'}}\n")
    with (home / "log").open("w") as log:
        server = subprocess.Popen(["docker-registry", "serve", str(home / "config.yml")], stdout=log, stderr=log)
    try:
        for _ in range(200):
            with contextlib.suppress(requests.RequestException):
                requests.get(f"http://127.0.0.1:{port}/v2/", timeout=5).close()
                break
            assert server.poll() is None, (home / "log").read_text()
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def backend_at(address: str, image: str = RUNTIME_IMAGE) -> DockerBackend:
    return DockerBackend(docker_host=address, runtime=None, image=image, instance=this_instance())


def layers_of(client: docker.APIClient) -> set[str]:
    """Ids of the images of our environments, named or not."""
    found = client.images(filters={"label": [LABEL_ENVIRONMENT]})
    return {image["Id"] for image in found if label_of(image) in OURS}


def digests_of_others(client: docker.APIClient) -> set[str]:
    return {label_of(image) for image in client.images(filters={"label": [LABEL_ENVIRONMENT]})} - OURS


def labels_of(client: docker.APIClient, environment: Environment) -> dict[str, str]:
    labels: dict[str, str] = client.inspect_image(layer_tag(environment.digest))["Config"]["Labels"]
    return labels


def label_of(image: dict[str, Any]) -> str:
    return str(image["Labels"][LABEL_ENVIRONMENT])


async def answer(backend: DockerBackend, environment: Environment, code: str) -> Any:
    """What an evaluator returns on an environment, or why it failed."""
    sandbox = await start_sandbox(backend, SandboxSpec(environment.language, environment), grace_s=2.0)
    try:
        order = LoadOrder(code, environment.language, Contract.MAIN, None, Policy.NONE, Limits(), 20.0)
        loaded = await sandbox.load(order)
        assert not isinstance(loaded, Failed), loaded
        outcome = await sandbox.call(b'{"named": {}, "exact": false}', timeout_s=20.0)
        return outcome.value if isinstance(outcome, Returned) else outcome
    finally:
        await sandbox.destroy()


NATIVE = """
import six
from rapidfuzz import fuzz, fuzz_cpp as native
def main():
    return [six.__version__, fuzz.ratio("abcd", "abcx"), native.__file__.startswith("/opt/packages/")]
"""


async def test_an_evaluator_imports_pure_and_native_packages(
    backend: DockerBackend, client: docker.APIClient, python_set: Set
) -> None:
    assert await answer(backend, python_set[0], NATIVE) == ["1.17.0", 75, True]
    names = labels_of(client, python_set[0])
    assert names[LABEL_ENVIRONMENT] == python_set[0].digest
    assert names[LABEL_RUNTIME_IMAGE] == client.inspect_image(RUNTIME_IMAGE)["Id"]


@pytest.mark.parametrize("language", [Language.JAVASCRIPT, Language.TYPESCRIPT])
async def test_an_evaluator_imports_npm_packages(
    backend: DockerBackend, client: docker.APIClient, javascript_set: Set, language: Language
) -> None:
    code = "import _ from 'lodash'\nfunction main() { return _.chunk([1, 2, 3], 2).length }\n"
    assert await answer(backend, replace(javascript_set[0], language=language), code) == 2


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
        assert left.isdisjoint({before["Id"], first}), "neither the old layer is left nor the image below it"
    finally:
        await backend.close()
        client.remove_image(tag)
        client.remove_image(OTHER_IMAGE)


def derive(client: docker.APIClient, text: str) -> str:
    """Make a runtime image that differs from ours in a label; return its id."""
    recipe = f"FROM {RUNTIME_IMAGE}\nLABEL test={text}\n".encode()
    whole = BytesIO(b"".join(tar_stream({"Dockerfile": recipe}, trees={})))
    lines = list(client.build(fileobj=whole, custom_context=True, rm=True, decode=True))
    return next(str(line["aux"]["ID"]) for line in lines if "aux" in line)


async def test_images_of_environments_that_are_gone_are_removed_and_others_stay(
    backend: DockerBackend, client: docker.APIClient, tiny_set: Set, python_set: Set
) -> None:
    gone, kept = tiny_set[0], python_set[0]
    await backend.prepare(kept)
    link = await backend.start(SandboxSpec(Language.PYTHON, gone))
    live = [kept.digest, *digests_of_others(client)]
    assert layer_tag(gone.digest) not in await backend.prune_environments(live), "a container runs from it"
    assert labels_of(client, gone)
    await link.destroy()
    assert layer_tag(gone.digest) in await backend.prune_environments(live)
    assert labels_of(client, kept)
    with pytest.raises(docker.errors.ImageNotFound):
        labels_of(client, gone)


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
    await backend.prune_environments([environment.digest, *digests_of_others(client)])
    assert layers_of(client) == {client.inspect_image(layer_tag(environment.digest))["Id"]}


async def test_a_set_that_is_gone_from_the_disk_is_said_to_be(backend: DockerBackend, tiny_set: Set) -> None:
    assert tiny_set[0].path is not None
    shutil.rmtree(tiny_set[0].path)
    with pytest.raises(SandboxUnavailable, match=r"is not at .* any more"):
        await backend.start(SandboxSpec(Language.PYTHON, tiny_set[0]))


async def test_a_host_that_shuts_down_does_not_wait_for_a_build(
    address: str, client: docker.APIClient, tiny_set: Set
) -> None:
    engine = Engine(address)
    layers = Layers(engine, image=RUNTIME_IMAGE)
    layers.stop()
    with pytest.raises(SandboxUnavailable, match="shutting down"):
        await layers.image_for(tiny_set[0])
    await layers.close()
    await engine.close()
    with pytest.raises(docker.errors.ImageNotFound):
        labels_of(client, tiny_set[0])


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


async def test_without_the_runtime_image_the_command_that_builds_it_is_named(address: str, tiny_set: Set) -> None:
    backend = backend_at(address, "evaluator-host/no-such-image:1")
    with pytest.raises(SandboxUnavailable, match="images build"):
        await backend.start(SandboxSpec(Language.PYTHON, tiny_set[0]))
    await backend.close()


async def test_a_large_set_does_not_pass_through_memory(client: docker.APIClient, address: str, tiny_set: Set) -> None:
    environment, _ = tiny_set
    assert environment.path is not None
    with (environment.path / "large.bin").open("wb") as file:
        file.truncate(300_000_000)
    program = (
        "import asyncio, resource, sys\n"
        "from pathlib import Path\n"
        "from evaluator_host.model import Environment, Language\n"
        "from evaluator_host.sandbox.docker import DockerBackend\n"
        "async def main():\n"
        f"    backend = DockerBackend(docker_host={address!r}, runtime=None, image={RUNTIME_IMAGE!r}, instance='')\n"
        f"    await backend.prepare(Environment({environment.digest!r}, Language.PYTHON, '', (), Path({str(environment.path)!r})))\n"
        "    await backend.close()\n"
        "asyncio.run(main())\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) * 1024 < 200_000_000
    assert client.inspect_image(layer_tag(environment.digest))["Size"] > 300_000_000


async def test_a_set_travels_through_a_registry_to_a_host_that_runs_it(
    backend: DockerBackend, address: str, client: docker.APIClient, registry: str, python_set: Set, tmp_path: Path
) -> None:
    environment, record = python_set
    assert environment.path is not None
    told: list[str] = []
    pinned = await push(
        environment, f"{registry}/team/scoring:1", record=record, docker_host=address, image=RUNTIME_IMAGE,
        progress=lambda phase, _done, _total: told.append(phase),
    )  # fmt: skip
    assert pinned.startswith(f"{registry}/team/scoring@sha256:")
    client.remove_image(layer_tag(environment.digest))
    for reference in (f"{registry}/team/scoring:1", pinned):
        target = tmp_path / reference[-8:]
        pulled = await pull(
            reference, target, docker_host=address, digest=environment.digest,
            progress=lambda phase, _done, _total: told.append(phase),
        )  # fmt: skip
        assert pulled.record == record
        assert pulled.pinned == pinned
        assert tree_digest(target) == tree_digest(environment.path)
    assert list(dict.fromkeys(told)) == [
        *("hashing", "building", "pushing", "ready"),
        *("pulling", "extracting", "checking"),
    ]
    moved = Environment(environment.digest, environment.language, environment.runtime, environment.packages, target)
    assert await answer(backend, moved, NATIVE) == ["1.17.0", 75, True]


async def test_npm_packages_travel_with_their_links(
    address: str, client: docker.APIClient, registry: str, javascript_set: Set, tmp_path: Path
) -> None:
    environment, record = javascript_set
    assert environment.path is not None
    link = environment.path / "node_modules" / ".bin" / "tool"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to("../lodash/lodash.js")
    await push(environment, f"{registry}/npm:1", record=record, docker_host=address, image=RUNTIME_IMAGE)
    await pull(f"{registry}/npm:1", tmp_path / "pulled", docker_host=address)
    assert (tmp_path / "pulled/node_modules/.bin/tool").readlink() == Path("../lodash/lodash.js")
    assert tree_digest(tmp_path / "pulled") == tree_digest(environment.path)


async def test_another_set_than_expected_is_refused_and_leaves_nothing(
    address: str, client: docker.APIClient, registry: str, tiny_set: Set, tmp_path: Path
) -> None:
    reference = f"{registry}/tiny:1"
    await push(tiny_set[0], reference, record=tiny_set[1], docker_host=address, image=RUNTIME_IMAGE)
    (tmp_path / "here").mkdir()
    with pytest.raises(PackagesFailed, match="this is the package set sha256:"):
        await pull(reference, tmp_path / "here" / "set", docker_host=address, digest="sha256:" + "0" * 64)
    with pytest.raises(PackagesFailed, match="larger than 5 bytes"):
        await pull(reference, tmp_path / "here" / "set", docker_host=address, max_bytes=5)
    assert list((tmp_path / "here").iterdir()) == []


async def test_files_that_were_changed_on_the_way_are_refused(
    address: str, client: docker.APIClient, registry: str, tiny_set: Set, tmp_path: Path
) -> None:
    reference = f"{registry}/changed:1"
    await push(tiny_set[0], reference, record=tiny_set[1], docker_host=address, image=RUNTIME_IMAGE)
    client.pull(reference)
    recipe = f"FROM {reference}\nCOPY tiny.py /opt/packages/tiny.py\n".encode()
    whole = BytesIO(b"".join(tar_stream({"Dockerfile": recipe, "tiny.py": b"answer = 8\n"}, trees={})))
    assert not [
        line
        for line in client.build(fileobj=whole, custom_context=True, tag=reference, rm=True, decode=True)
        if "error" in line
    ]
    assert '"error"' not in client.push(reference)
    client.remove_image(reference)
    (tmp_path / "here").mkdir()
    with pytest.raises(PackagesFailed, match="not those that were pushed"):
        await pull(reference, tmp_path / "here" / "set", docker_host=address)
    assert list((tmp_path / "here").iterdir()) == []


async def test_an_image_that_holds_no_set_is_refused_and_removed(
    address: str, client: docker.APIClient, registry: str, tmp_path: Path
) -> None:
    reference = f"{registry}/plain:1"
    client.tag(RUNTIME_IMAGE, f"{registry}/plain", "1")
    assert '"error"' not in client.push(reference)
    client.remove_image(reference)
    with pytest.raises(PackagesFailed, match="holds no package set"):
        await pull(reference, tmp_path / "set", docker_host=address)
    with pytest.raises(PackagesFailed, match="failed"):
        await pull(f"{registry}/absent:1", tmp_path / "set", docker_host=address)


async def test_a_registry_that_does_not_answer_is_named_as_such(
    address: str, client: docker.APIClient, tiny_set: Set, tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        reference = f"127.0.0.1:{taken.getsockname()[1]}/tiny:1"
        with pytest.raises(IndexUnavailable, match="does not answer"):
            await push(tiny_set[0], reference, record=tiny_set[1], docker_host=address, image=RUNTIME_IMAGE)
        with pytest.raises(IndexUnavailable, match="does not answer"):
            await pull(reference, tmp_path / "set", docker_host=address)


@pytest.mark.parametrize("reference", ["", "two words", "evaluator-host/env:1", "docker.io/evaluator-host/env:1"])
async def test_names_that_cannot_be_used_are_refused(address: str, reference: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest):
        await pull(reference, tmp_path / "set", docker_host=address)


async def test_a_record_of_another_set_is_not_pushed(address: str, tiny_set: Set, python_set: Set) -> None:
    with pytest.raises(PackagesFailed, match="this is the package set"):
        await push(tiny_set[0], "127.0.0.1:1/x:1", record=python_set[1], docker_host=address, image=RUNTIME_IMAGE)


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


HOSTILE = {
    "a path that climbs": [member("packages/../../escaped")],
    "an absolute path": [member("/escaped")],
    "a link that leads out": [member("packages/out", tarfile.SYMTYPE, "/etc/passwd")],
    "a link that climbs": [member("packages/out", tarfile.SYMTYPE, "../../escaped")],
    "a climb through a link": [
        member("packages/a/b", tarfile.SYMTYPE, "../c"),
        member("packages/c", tarfile.DIRTYPE),
        member("packages/out", tarfile.SYMTYPE, "a/b/../../escaped"),
    ],
    "a write through a link": [
        member("packages/out", tarfile.SYMTYPE, "../.."),
        member("packages/out/escaped"),
    ],
    "a hard link": [member("packages/hard", tarfile.LNKTYPE, "/etc/passwd")],
    "a device": [member("packages/null", tarfile.CHRTYPE)],
    "a file twice": [member("packages/a"), member("packages/a")],
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE)
def test_nothing_is_unpacked_outside_its_folder(members: list[tarfile.TarInfo], tmp_path: Path) -> None:
    whole = BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for one in members:
            tar.addfile(one)
    folder = tmp_path / "deep" / "set"
    folder.mkdir(parents=True)
    with pytest.raises((PackagesFailed, FileExistsError)):
        unpack(iter([whole.getvalue()]), folder, max_bytes=1000)
    assert {path.name for path in tmp_path.iterdir()} == {"deep"}
    assert {path.name for path in (tmp_path / "deep").iterdir()} == {"set"}
