"""Several processes share the cache of package sets: each set is built once, and a full cache removes sets, but never
sets that are in use.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import pytest

from evaluator_host.engine.environments import folder, store
from evaluator_host.engine.environments.folder import engine_owner
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.sandbox.docker.environment_images import layer_tag
from evaluator_host.types.errors import InUse, PackagesFailed
from evaluator_host.types.evaluator import Evaluator, Language, Row
from tests import package_index
from tests.engines import engine_address
from tests.keyed import eventually
from tests.over_http import calling_processes
from tests.package_hosts import LABEL, Host, label
from tests.package_index import Index
from tests.package_sets import client_at, layers_of

LARGE = 400_000  # size of a set in bytes: two such sets fit into a cache of one megabyte
HOUR_S = 3600


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with package_index.serving() as served:
        yield served


@pytest.fixture
def client() -> Iterator[docker.APIClient]:
    with client_at(engine_address()) as opened:
        yield opened


@pytest.fixture
def host(request: pytest.FixtureRequest, tmp_path: Path, index: Index, client: docker.APIClient) -> Iterator[Host]:
    """A host that has no package sets yet and stores them as folders or images; the fixture removes the images
    afterwards.
    """
    made = Host(tmp_path / "host", getattr(request, "param", "docker"), index=index)
    yield made
    for image in layers_of(client, engine_owner(made.home)):
        client.remove_image(image, force=True)


async def build(host: Host, *pins: str) -> list[str]:
    """Build one package set after another, as a separate process would; return the sets' digests."""
    digests = []
    async with open_engine(host.settings(environments_mb=1)) as service:
        for pin in pins:
            report = await service.environments.request([pin], Language.PYTHON)
            digests.append((await service.environments.built(report.key)).digest or "")
    return digests


def age(host: Host, digest: str, hours: int) -> None:
    """Make a package set look unused for this many hours."""
    then = time.time() - hours * HOUR_S
    os.utime(host.folder(digest), (then, then))


def images(client: docker.APIClient, *digests: str) -> list[bool]:
    """Return for each package set whether the engine has an image of it."""
    present = {name for image in client.images() for name in image["RepoTags"] or ()}
    return [layer_tag(digest) in present for digest in digests]


@pytest.mark.long("test_cache_mending.py has a set that is copied")
async def test_at_the_ceiling_the_least_recently_used_set_goes(
    host: Host, index: Index, client: docker.APIClient
) -> None:
    pins = [index.add(f"least{n}", f"said = 'set {n}'\n", size=LARGE) for n in range(3)]
    first, second = await build(host, *pins[:2])
    age(host, first, 2)
    age(host, second, 1)
    async with open_engine(host.settings()) as service:
        assert await label(service, LABEL.format("least0"), pins[0]) == "set 0"
    (third,) = await build(host, pins[2])
    assert [host.folder(digest).exists() for digest in (first, second, third)] == [True, False, True]
    assert images(client, first, second, third) == [True, False, True]
    assert await build(host, pins[1]) == [second], "the host must still have the lock of the deleted set"


@pytest.mark.long
async def test_a_set_that_another_process_uses_is_not_evicted(
    host: Host, index: Index, client: docker.APIClient, tmp_path: Path
) -> None:
    pins = [index.add(f"kept{n}", f"said = 'set {n}'\n", size=LARGE) for n in range(3)]
    body = {"evaluator": {"code": LABEL.format("kept0"), "packages": [pins[0]]}}
    with host.server(tmp_path / "log") as server:
        used = server.client.post("/v1/evaluate", json=body).json()["environment"]["digest"]
        (other,) = await build(host, pins[1])
        age(host, used, 9)
        age(host, other, 1)
        (last,) = await build(host, pins[2])
        assert [host.folder(digest).exists() for digest in (used, other, last)] == [True, False, True]
        assert images(client, used, other, last) == [True, False, True]
        refused = await asyncio.to_thread(host.run, "packages", "remove", used, code=2, as_json=False)
        assert "another process" in refused
        body["evaluator"]["code"] += "# another sandbox\n"
        assert server.client.post("/v1/evaluate", json=body).json()["label"] == "set 0"


# this test runs on one backend only, because the rules for keeping package sets are the same on both
@pytest.mark.long
@pytest.mark.parametrize("host", ["bubblewrap"], indirect=True)
def test_a_set_is_deleted_that_other_processes_of_the_host_have_used(host: Host, index: Index, tmp_path: Path) -> None:
    """A set that other processes of the host have used can be deleted, because idle sandboxes that use it are ended.
    While a row runs, its set is kept.
    """
    pin = index.add("shared", "said = 'shared'\n")
    evaluators = [{"code": f"{LABEL.format('shared')}# {number}\n", "packages": [pin]} for number in range(6)]
    slow = LABEL.format("shared").replace("return", "__import__('time').sleep(8)\n    return")
    with host.server(tmp_path / "log", EVALUATOR_HOST_WORKERS="2") as server, ThreadPoolExecutor(4) as callers:
        client = server.client
        eventually(lambda: len(calling_processes(server)) == 1, within_s=60)

        def score(evaluator: dict[str, object]) -> Any:
            return client.post("/v1/evaluate", json={"evaluator": evaluator}).json()

        # many calls, so that each process serves some of them
        (digest,) = {score(one)["environment"]["digest"] for one in evaluators}
        job = client.post("/v1/jobs", json={"evaluators": evaluators[:1], "dataset": {"rows": [{}]}}).json()
        eventually(lambda: client.get(f"/v1/jobs/{job['id']}").json()["status"] == "completed", within_s=60)
        assert client.delete(f"/v1/environments/{digest}").status_code == 204
        assert not host.folder(digest).exists()

        assert [score(one)["label"] for one in evaluators] == ["shared"] * 6, "the set must be built again"
        rows = [callers.submit(score, {"code": f"{slow}# {number}\n", "packages": [pin]}) for number in range(4)]
        eventually(lambda: client.delete(f"/v1/environments/{digest}").status_code == 409, within_s=8)
        assert [row.result()["label"] for row in rows] == ["shared"] * 4
        eventually(lambda: client.delete(f"/v1/environments/{digest}").status_code == 204)


@pytest.mark.long
@pytest.mark.parametrize("host", ["bubblewrap"], indirect=True)
async def test_a_set_that_a_process_does_not_use_any_more_can_be_removed_by_another(
    host: Host, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_RECENT_S", 0.5)
    monkeypatch.setattr(store, "_RELEASE_EVERY_S", 0.1)
    pin = index.add("once", "said = 'once'\n")
    own = host.settings()
    async with open_engine(own) as one, open_engine(own) as other:
        result = await one.evaluate(Evaluator(LABEL.format("once"), packages=(pin,)), Row())
        digest = result.environment.digest
        await asyncio.sleep(1)
        with pytest.raises(InUse, match="another process"):
            await other.environments.delete(digest)  # an idle sandbox uses the set
        one.pool.forget(digest)  # this ends the idle sandbox
        await asyncio.sleep(2)
        await other.environments.delete(digest)
        assert await label(one, LABEL.format("once"), pin) == "once", "the set must be built again"


@pytest.mark.parametrize("host", ["bubblewrap"], indirect=True)  # requests to an index are the same on both backends
@pytest.mark.long
async def test_a_server_and_a_command_line_that_want_one_set_build_it_once(
    host: Host, index: Index, tmp_path: Path
) -> None:
    pin = index.add("wanted", "said = 'once'\n")
    file = "/files/wanted-1.0.0-py3-none-any.whl"
    asked = index.asked.count(file)
    with host.server(tmp_path / "log") as server, stages_of(host) as stages, index.held_back():
        key = server.client.post("/v1/environments", json={"language": "python", "packages": [pin]}).json()["key"]
        await until(lambda: index.asked.count(file) > asked)
        command = asyncio.create_task(asyncio.to_thread(host.run, "packages", "build", pin))
        await asyncio.sleep(6)  # within this time, a command that does not wait would begin a second build
        index.open.set()
        assert (await command)["key"] == key
        assert server.client.get(f"/v1/environments/{key}").json()["status"] == "ready"
    assert len(stages) == 1


@contextmanager
def stages_of(host: Host) -> Iterator[set[str]]:
    """Yield a set that collects, during the block, the names of the folders into which packages are installed."""
    seen: set[str] = set()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.005):
            seen.update(os.listdir(host.shelf / "build" / "staging"))  # noqa: PTH208 - only the names are needed

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


async def until(true: Callable[[], bool]) -> None:
    for _ in range(600):
        if true():
            return
        await asyncio.sleep(0.05)
    pytest.fail("the condition did not become true in time")


@pytest.mark.long
async def test_a_package_set_that_fails_its_check_leaves_no_image(
    host: Host, index: Index, client: docker.APIClient
) -> None:
    pin = index.add("hopeless", "raise OSError('no such device')\n")
    with pytest.raises(PackagesFailed, match="no such device"):
        await build(host, pin)
    assert not layers_of(client, engine_owner(host.home))


@pytest.mark.long
async def test_a_set_that_is_removed_takes_its_image_along_and_comes_back_as_installed(
    host: Host, index: Index, client: docker.APIClient
) -> None:
    pin = index.add("gone", "said = 'here'\n")
    (digest,) = await build(host, pin)
    assert images(client, digest) == [True]
    async with open_engine(host.settings()) as service:
        await service.environments.delete(digest)
        assert not layers_of(client, engine_owner(host.home))
    assert await build(host, pin) == [digest]
    assert images(client, digest) == [True]
