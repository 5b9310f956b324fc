"""One host pushes a package set, and another host, which cannot reach an index, uses it. Package sets that do not work
on the other host are refused.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from evaluator_host.engine.environments.folder import engine_owner
from evaluator_host.engine.environments.record import target_for
from evaluator_host.engine.environments.registry.http import push
from evaluator_host.engine.environments.registry.set_image import RECORD_PATH
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.packages.lock import Lock
from evaluator_host.engine.sandbox.pythons import host_platform
from evaluator_host.engine.service import Service
from evaluator_host.types.errors import NotFound, PackagesFailed
from evaluator_host.types.evaluator import Language
from tests import package_index
from tests.engines import engine_address
from tests.package_hosts import LABEL, Host, label
from tests.package_sets import Set, client_at, described, layers_of
from tests.python_versions import OTHER
from tests.registry_server import Registry

OWN = target_for(host_platform(), Language.PYTHON)


@pytest.fixture
def client() -> Iterator[docker.APIClient]:
    with client_at(engine_address()) as opened:
        yield opened


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path / "host", "bubblewrap", index=None)


@pytest.fixture
async def service(host: Host) -> AsyncIterator[Service]:
    """A service that has no package sets and cannot reach an index."""
    async with open_engine(host.settings()) as opened:
        yield opened


@pytest.mark.parametrize("backend", ["bubblewrap", "docker"])
async def test_a_set_built_on_one_host_runs_on_another_without_an_index(
    backend: str, tmp_path: Path, client: docker.APIClient, registry_server: Registry
) -> None:
    with package_index.serving() as index:
        pin = index.add("travels", "said = 'far'\n")
        first = Host(tmp_path / "first", backend, index=index)
        built = await asyncio.to_thread(first.run, "packages", "build", pin)
        name = f"{registry_server.name}/hosts/{backend}:1"
        pushed = await asyncio.to_thread(first.run, "packages", "push", built["digest"], name)
    second = Host(tmp_path / "second", backend, index=None)
    pulled = await asyncio.to_thread(second.run, "packages", "pull", pushed["image"], "--digest", built["digest"])
    for same in ("digest", "key", "packages", "lock", "runtime", "size_bytes"):
        assert pulled[same] == built[same]
    assert pulled["import_ms"].keys() == {"travels"}
    async with open_engine(second.settings()) as service:
        assert await label(service, LABEL.format("travels"), pin) == "far"
        assert [found.broken for found in await service.environments.verify()] == [()]
    assert list((second.shelf / "build" / "staging").iterdir()) == []
    again = await asyncio.to_thread(second.run, "packages", "pull", name)
    assert again["built_at"] == pulled["built_at"], "an installed set must stay as it is"
    for made in (first, second):
        for image in layers_of(client, engine_owner(made.home)):
            client.remove_image(image, force=True)


@pytest.mark.long
async def test_a_set_for_another_python_is_built_ahead_and_travels(tmp_path: Path, registry_server: Registry) -> None:
    with package_index.serving() as index:
        pin = index.add("elsewhere", "import sys\nsaid = '%d.%d' % sys.version_info[:2]\n")
        first = Host(tmp_path / "first", "bubblewrap", index=index)
        for python, problem in (("3.99", "uv python install 3.99"), ("three", "--python")):
            said = await asyncio.to_thread(first.run, "packages", "build", pin, "--python", python, code=2)
            assert problem in json.dumps(said)
        built = await asyncio.to_thread(first.run, "packages", "build", pin, "--python", OTHER)
        own = await asyncio.to_thread(first.run, "packages", "build", pin)
        listed = {one["digest"]: one["runtime"] for one in await asyncio.to_thread(first.run, "packages", "list")}
        assert listed == {built["digest"]: f"python {OTHER}", own["digest"]: f"python {OWN.runtime}"}
        name = f"{registry_server.name}/elsewhere:1"
        pushed = await asyncio.to_thread(first.run, "packages", "push", built["digest"], name)
    second = Host(tmp_path / "second", "bubblewrap", index=None)
    pulled = await asyncio.to_thread(second.run, "packages", "pull", pushed["image"])
    assert (pulled["key"], pulled["runtime"]) == (built["key"], f"python {OTHER}")
    async with open_engine(second.settings()) as service:
        assert await label(service, LABEL.format("elsewhere"), pin, python=OTHER) == OTHER
        assert [found.broken for found in await service.environments.verify()] == [()]


async def pushed(made: Set, reference: str) -> str:
    return await push(made[0], reference, record=made[1])


def module_set(folder: Path, code: str, target: Any = OWN, *, resolved: str = "") -> Set:
    """Return a package set with one module; a host imports the module to try the set."""
    (folder / "one-1.0.0.dist-info").mkdir(parents=True)
    (folder / "one-1.0.0.dist-info" / "RECORD").write_text("one.py,,\n")
    (folder / "one.py").write_text(code)
    environment, record = described(folder, Language.PYTHON, target, one="1.0.0")
    lock = replace(Lock.from_json(record.lock), text=f"one==1.0.0 # {resolved}")
    return replace(environment, digest=lock.digest), replace(record, digest=lock.digest, lock=lock.to_json())


def nothing_of(host: Host) -> bool:
    """Whether a host has installed nothing, not even part of a package set."""
    staged = list((host.shelf / "build" / "staging").iterdir())
    return not staged and not list(host.shelf.glob("*/env.json")) and not list((host.shelf / "sets").iterdir())


@pytest.mark.long
@pytest.mark.parametrize(
    "target",
    [replace(OWN, runtime="3.1"), replace(OWN, machine="riscv64"), replace(OWN, glibc=(OWN.glibc[0], 999))],
    ids=["another Python", "another processor", "a newer C library"],
)
async def test_a_set_for_another_machine_is_refused(
    target: Any, service: Service, host: Host, registry_server: Registry, tmp_path: Path
) -> None:
    name = f"{registry_server.name}/strange:1"
    await pushed(module_set(tmp_path / "set", "said = 1\n", target), name)
    with pytest.raises(
        PackagesFailed, match=f"is for Python .*this host has Python {OWN.runtime} .*install the same pins here"
    ):
        await service.environments.transfer.pull(name)
    assert nothing_of(host)


@pytest.mark.long
async def test_a_set_for_an_older_c_library_is_taken_and_passed_on(
    service: Service, registry_server: Registry, tmp_path: Path
) -> None:
    older = module_set(tmp_path / "set", "said = 'old'\n", replace(OWN, glibc=(2, 17)))
    name = f"{registry_server.name}/older:1"
    report = await service.environments.transfer.pull(await pushed(older, name))
    assert await label(service, LABEL.format("one"), "one==1.0.0") == "old"
    await service.environments.transfer.push(report.key, name)
    assert (await service.environments.transfer.pull(name)).digest == older[0].digest


@pytest.mark.long
async def test_a_set_that_does_not_work_here_is_refused(
    service: Service, host: Host, registry_server: Registry, tmp_path: Path
) -> None:
    name = f"{registry_server.name}/broken:1"
    await pushed(module_set(tmp_path / "set", "raise OSError('no such device')\n"), name)
    with pytest.raises(PackagesFailed, match="no such device"):
        await service.environments.transfer.pull(name)
    assert nothing_of(host)


@pytest.mark.long
async def test_pins_that_a_host_has_with_another_lock_stay_as_they_are(
    service: Service, registry_server: Registry, tmp_path: Path
) -> None:
    mine, theirs = (module_set(tmp_path / text, f"said = {text!r}\n", resolved=text) for text in ("mine", "theirs"))
    names = [await pushed(made, f"{registry_server.name}/{made[0].path.name}:1") for made in (mine, theirs)]  # type: ignore[union-attr]
    await service.environments.transfer.pull(names[0])
    with pytest.raises(PackagesFailed, match=f"packages delete {mine[1].key}"):
        await service.environments.transfer.pull(names[1])
    assert await label(service, LABEL.format("one"), "one==1.0.0") == "mine"
    await service.environments.delete(mine[1].key)
    await service.environments.transfer.pull(names[1])
    assert await label(service, LABEL.format("one"), "one==1.0.0") == "theirs"


@pytest.mark.long
@pytest.mark.parametrize("layer", [-2, -1], ids=["the files", "the record"])
async def test_a_layer_that_the_registry_corrupted_is_refused(
    layer: int, service: Service, host: Host, registry_server: Registry, tmp_path: Path
) -> None:
    name = f"corrupt{-layer}"
    await pushed(module_set(tmp_path / "set", "said = 1\n"), f"{registry_server.name}/{name}:1")
    manifest = await asyncio.to_thread(registry_server.manifest, name)
    blob = registry_server.blobs()[manifest["layers"][layer]["digest"]]
    content = bytearray(blob.read_bytes())
    content[len(content) // 2] ^= 0xFF
    blob.write_bytes(content)
    with pytest.raises(PackagesFailed, match="push the set again"):
        await service.environments.transfer.pull(f"{registry_server.name}/{name}:1")
    assert nothing_of(host)


@pytest.mark.long
async def test_a_record_that_was_changed_is_refused(
    service: Service, host: Host, registry_server: Registry, tmp_path: Path
) -> None:
    made = module_set(tmp_path / "set", "said = 1\n")
    name = f"{registry_server.name}/forged:1"
    await pushed(made, name)
    forged = replace(made[1], lock=made[1].lock.replace("one==1.0.0", "one==2.0.0"))
    text = json.dumps({"format": 1, "tree": "sha256:0", "record": forged.to_json()}).encode()
    await asyncio.to_thread(registry_server.put_over, "forged", RECORD_PATH.lstrip("/"), text)
    with pytest.raises(PackagesFailed, match="no valid lock"):
        await service.environments.transfer.pull(name)
    assert nothing_of(host)


@pytest.mark.long
async def test_a_changed_set_is_not_pushed(
    service: Service, host: Host, registry_server: Registry, tmp_path: Path
) -> None:
    made = module_set(tmp_path / "set", "said = 1\n")
    name = f"{registry_server.name}/whole:1"
    await service.environments.transfer.pull(await pushed(made, name))
    (host.folder(made[0].digest) / "files" / "one.py").write_text("said = 2\n")
    with pytest.raises(
        PackagesFailed, match=r"one\.py in the package set has changed since it was installed.*packages verify"
    ):
        await service.environments.transfer.push(made[0].digest, name)
    with pytest.raises(NotFound, match="packages list"):
        await service.environments.transfer.push("sha256:" + "0" * 64, name)
