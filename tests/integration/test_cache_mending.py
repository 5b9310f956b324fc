"""`packages verify` finds and repairs package sets and images that were changed or only partly written."""

import shutil
from collections.abc import AsyncIterator, Iterator
from io import BytesIO

import docker
import pytest

from evaluator_host.engine.environments.folder import engine_owner
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.sandbox.docker.environment_images import layer_tag
from evaluator_host.engine.sandbox.docker.image.package_tree import tar_stream
from evaluator_host.engine.service import Service
from evaluator_host.types.errors import NotFound
from evaluator_host.types.evaluator import Evaluator, Language, Row
from tests import package_index
from tests.engines import engine_address
from tests.package_hosts import LABEL, Host, label
from tests.package_sets import RUNTIME_IMAGE, client_at, layers_of

PIN = "mended==1.0.0"
CODE = LABEL.format("mended")


@pytest.fixture
def client() -> Iterator[docker.APIClient]:
    with client_at(engine_address()) as opened:
        yield opened


@pytest.fixture(scope="module", params=["bubblewrap", "docker"])
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A host with one package set; the fixture removes the host's images from the engine afterwards."""
    with package_index.serving() as index, client_at(engine_address()) as client:
        index.add("mended", "said = 'well'\n")
        made = Host(tmp_path_factory.mktemp("host") / "data", request.param, index=index)
        yield made
        for image in layers_of(client, engine_owner(made.home)):
            client.remove_image(image, force=True)


@pytest.fixture(scope="module")
async def service(host: Host) -> AsyncIterator[Service]:
    async with open_engine(host.settings()) as opened:
        yield opened


@pytest.fixture
async def digest(service: Service) -> str:
    report = await service.environments.request([PIN], Language.PYTHON)
    return (await service.environments.built(report.key)).digest or ""


@pytest.mark.long
async def test_a_tampered_file_is_found_and_mended_wherever_it_was_copied_to(
    host: Host, digest: str, client: docker.APIClient
) -> None:
    files = host.folder(digest) / "files"
    (files / "mended.py").write_text("raise OSError('ill')\n")
    shutil.rmtree(files / "__pycache__", ignore_errors=True)
    if host.backend == "docker":
        client.remove_image(layer_tag(digest), force=True)
    async with open_engine(host.settings()) as other:
        result = await other.evaluate(Evaluator(code=CODE, packages=(PIN,)), Row())
        assert "OSError: ill" in str(result.error), "sandboxes must now get the damaged file"
        (found,) = await other.environments.verify(digest)
        assert "mended.py" in found.broken
        assert found.mended
        assert await label(other, CODE, PIN) == "well"
        assert [one.broken for one in await other.environments.verify()] == [()]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("lost", ["env.json", "contents.json", "files"])
async def test_a_half_written_set_is_found_and_mended(lost: str, service: Service, host: Host, digest: str) -> None:
    broken = host.folder(digest) / lost
    if broken.is_dir():
        shutil.rmtree(broken)
    else:
        broken.write_text("{")
    (found,) = await service.environments.verify()
    assert (found.digest, found.mended) == (digest, True)
    assert await label(service, CODE, PIN) == "well"


async def test_verifying_an_unknown_package_set_is_an_error(service: Service) -> None:
    for name in ("sha256:" + "0" * 64, "mended"):
        with pytest.raises(NotFound, match="packages list"):
            await service.environments.verify(name)


@pytest.mark.long
@pytest.mark.parametrize("host", ["bubblewrap"], indirect=True)
def test_the_command_says_what_it_found_and_whether_it_is_mended(host: Host) -> None:
    digest = host.run("packages", "build", PIN)["digest"]
    (host.folder(digest) / "files" / "mended.py").write_text("said = 'ill'\n")
    (found,) = host.run("packages", "verify")
    assert (found["broken"], found["mended"]) == (["mended.py"], True)
    (host.folder(digest) / "files" / "mended.py").write_text("said = 'ill'\n")
    (host.shelf / "sets").rename(host.shelf / "lost")
    (host.shelf / "sets").mkdir()
    (found,) = host.run("packages", "verify", code=1)
    assert "lock file of the set is lost" in found["error"]


def swap(client: docker.APIClient, digest: str, recipe: str, files: dict[str, bytes]) -> None:
    """Replace a package set's image with a different image that has the same name and labels."""
    labels = client.inspect_image(layer_tag(digest))["Config"]["Labels"]
    whole = BytesIO(b"".join(tar_stream({"Dockerfile": recipe.encode(), **files}, trees={})))
    lines = list(
        client.build(fileobj=whole, custom_context=True, tag=layer_tag(digest), labels=labels, rm=True, decode=True)
    )
    assert not [line for line in lines if "error" in line]


SWAPS = {
    "another file": (f"FROM {RUNTIME_IMAGE}\nCOPY evil.py /opt/packages/mended.py\n", "image: mended.py"),
    "nothing in it": (f"FROM {RUNTIME_IMAGE}\nCOPY evil.py /opt/packages/evil.py\n", "image: evil.py"),
    "another image below": (
        f"FROM {RUNTIME_IMAGE}\nCOPY evil.py /etc/evil.py\nCOPY evil.py /opt/packages/mended.py\n",
        "image: (the runtime image on which it is built)",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("host", ["docker"], indirect=True)
@pytest.mark.parametrize(("recipe", "said"), SWAPS.values(), ids=SWAPS)
async def test_an_image_that_is_not_the_set_is_found_and_made_again(
    recipe: str, said: str, service: Service, client: docker.APIClient, digest: str
) -> None:
    swap(client, digest, recipe, {"evil.py": b"said = 'ill'\n"})
    (found,) = await service.environments.verify(digest)
    assert said in found.broken
    assert found.mended
    assert [one.broken for one in await service.environments.verify()] == [()]
    assert await label(service, f"{CODE}# {said}\n", PIN) == "well"
