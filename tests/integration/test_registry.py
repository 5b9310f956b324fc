"""Hosts exchange package sets through a real registry: sets arrive complete, and are refused if the registry sends
wrong data or does not answer.
"""

import asyncio
import socket
from pathlib import Path

import pytest

from evaluator_host.engine.environments.registry.http import pull, push
from evaluator_host.engine.sandbox.docker.image.package_tree import tree_digest
from evaluator_host.types.errors import IndexUnavailable, InvalidRequest, PackagesFailed
from tests import package_sets
from tests.package_sets import Set
from tests.registry_server import Registry

MOST = 1 << 20


@pytest.fixture
def tiny_set(tmp_path: Path) -> Set:
    return package_sets.tiny_set(tmp_path / "tiny")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Return the path at which to store a package set, in an empty folder."""
    (tmp_path / "here").mkdir()
    return tmp_path / "here" / "set"


async def test_a_set_travels_whole_with_its_links(tiny_set: Set, registry_server: Registry, target: Path) -> None:
    environment, record = tiny_set
    assert environment.path is not None
    (environment.path / "bin").mkdir()
    (environment.path / "bin" / "tool").symlink_to("../tiny.py")
    name = f"{registry_server.name}/team/scoring"
    told: list[str] = []
    pinned = await push(environment, f"{name}:1", record=record, progress=lambda phase, *_: told.append(phase))
    assert pinned.startswith(f"{name}@sha256:")
    for reference in (f"{name}:1", pinned):
        place = target.with_name(reference[-8:])
        pulled = await pull(
            reference, place, digest=environment.digest, max_bytes=MOST, progress=lambda phase, *_: told.append(phase)
        )
        assert (pulled.record, pulled.pinned) == (record, pinned)
        assert (place / "bin" / "tool").readlink() == Path("../tiny.py")
        assert tree_digest(place) == tree_digest(environment.path)
    assert list(dict.fromkeys(told)) == [
        *("hashing", "building", "pushing", "ready"),
        *("pulling", "extracting", "checking"),
    ]


async def test_another_set_than_expected_is_refused_and_leaves_nothing(
    tiny_set: Set, registry_server: Registry, target: Path
) -> None:
    reference = f"{registry_server.name}/tiny:1"
    await push(tiny_set[0], reference, record=tiny_set[1])
    with pytest.raises(PackagesFailed, match="this is the package set sha256:"):
        await pull(reference, target, digest="sha256:" + "0" * 64, max_bytes=MOST)
    with pytest.raises(PackagesFailed, match="larger than 5 bytes"):
        await pull(reference, target, max_bytes=5)
    assert list(target.parent.iterdir()) == []


async def test_files_that_were_changed_on_the_way_are_refused(
    tiny_set: Set, registry_server: Registry, target: Path
) -> None:
    await push(tiny_set[0], f"{registry_server.name}/changed:1", record=tiny_set[1])
    await asyncio.to_thread(registry_server.put_over, "changed", "opt/packages/tiny.py", b"answer = 8\n")
    with pytest.raises(PackagesFailed, match="differ from those that were pushed"):
        await pull(f"{registry_server.name}/changed:1", target, max_bytes=MOST)
    assert list(target.parent.iterdir()) == []


async def test_an_image_that_holds_no_set_is_refused(registry_server: Registry, target: Path) -> None:
    for config in ({"config": {}}, {"config": [1]}, {"config": {"Labels": [1]}}, {}):
        await asyncio.to_thread(registry_server.put_image, "plain", config, [])
        with pytest.raises(PackagesFailed, match="is not a package set"):
            await pull(f"{registry_server.name}/plain:1", target, max_bytes=MOST)
    with pytest.raises(PackagesFailed, match="there is no such image; check the name"):
        await pull(f"{registry_server.name}/absent:1", target, max_bytes=MOST)


async def test_a_registry_that_does_not_answer_is_named_as_such(tiny_set: Set, target: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening, so that connections are refused
        reference = f"127.0.0.1:{taken.getsockname()[1]}/tiny:1"
        with pytest.raises(IndexUnavailable, match="does not answer"):
            await push(tiny_set[0], reference, record=tiny_set[1])
        with pytest.raises(IndexUnavailable, match="does not answer"):
            await pull(reference, target, max_bytes=MOST)


@pytest.mark.parametrize("reference", ["", "two words", "evaluator-host/env:1", "docker.io/evaluator-host/env:1"])
async def test_names_that_cannot_be_used_are_refused(reference: str, target: Path) -> None:
    with pytest.raises(InvalidRequest):
        await pull(reference, target, max_bytes=MOST)


async def test_a_record_of_another_set_is_not_pushed(tiny_set: Set, tmp_path: Path) -> None:
    other = package_sets.tiny_set(tmp_path / "other")
    with pytest.raises(PackagesFailed, match="this is the package set"):
        await push(tiny_set[0], "127.0.0.1:1/x:1", record=other[1])
    with pytest.raises(InvalidRequest, match="to a tag"):
        await push(tiny_set[0], f"127.0.0.1:1/x@sha256:{'0' * 64}", record=tiny_set[1])
