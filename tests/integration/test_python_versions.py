"""Evaluators run on the Python version that they request, such as 3.13, with packages for that version. If no such
Python is installed, the error names the version.
"""

import py_compile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.sandbox.bubblewrap.mounts import compile_runner
from evaluator_host.engine.service import Service
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Evaluator, Language, Row
from tests import package_index
from tests.conftest import settings
from tests.dialects.nemo.metrics import returning
from tests.package_hosts import LABEL, Host
from tests.package_index import Index
from tests.python_versions import MINORS, OTHER, OWN, python_of
from tests.server import PREWARMED, Server

SETS = "/v1/environments"
VERSION = "import sys\n\ndef evaluate(inputs, outputs, trace):\n    return {'score': 1, 'reason': '%d.%d' % sys.version_info[:2]}\n"


@pytest.fixture(scope="module")
async def host() -> AsyncIterator[Service]:
    async with open_engine(settings("bubblewrap")) as opened:
        yield opened


async def reason(host: Service, code: str, **fields: Any) -> str | None:
    result = await host.evaluate(Evaluator(code, **fields), Row())
    assert result.error is None, result.error
    return result.reason


async def test_an_evaluator_runs_on_the_python_it_asks_for(host: Service) -> None:
    assert await reason(host, VERSION, python=OTHER) == OTHER
    assert await reason(host, VERSION, python=OWN) == OWN
    assert await reason(host, VERSION) == OWN
    assert {OWN, OTHER} <= set((await host.full_info()).pythons)


@pytest.mark.long
async def test_a_sandbox_need_not_compile_the_runner(host: Service) -> None:
    code = "import os\n\ndef evaluate(inputs, outputs, trace):\n    return {'score': 1, 'reason': ' '.join(os.listdir('/opt/runner/evaluator_runner/__pycache__'))}\n"
    for python in (OWN, OTHER):
        assert f"zygote.cpython-{python.replace('.', '')}.pyc" in str(await reason(host, code, python=python)).split()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("python", MINORS)
def test_compiled_runner_never_names_the_hosts_path(tmp_path: Path, python: str) -> None:
    folder = tmp_path / "python"
    (folder / "inner").mkdir(parents=True)
    for name in ("imported.py", "inner/fresh.py"):
        (folder / name).write_text("def f():\n    return 1\n")
    by_the_host = Path(py_compile.compile(str(folder / "imported.py"), doraise=True) or "")
    assert str(folder).encode() in by_the_host.read_bytes()

    compile_runner(folder, python_of(python))

    compiled = sorted(folder.glob("**/*.pyc"))
    assert [file.name for file in compiled] == [
        f"{name}.cpython-{python.replace('.', '')}.pyc" for name in ("imported", "fresh")
    ]
    assert all(str(tmp_path).encode() not in file.read_bytes() for file in compiled)
    assert all(b"/opt/runner/" in file.read_bytes() for file in compiled)


def test_runner_is_compiled_again_only_after_a_change(tmp_path: Path) -> None:
    source, started, program = tmp_path / "runner" / "one.py", tmp_path / "started", tmp_path / "program"
    source.parent.mkdir()
    source.write_text("ONE = 1\n")
    program.write_text(f"#!/bin/sh\ntouch {started}\n")
    program.chmod(0o755)
    compile_runner(source.parent, python_of(OWN))
    noticed = replace(python_of(OWN), executable=program)
    compile_runner(source.parent, noticed)
    assert not started.exists()
    source.write_text("ONE = 1.0\n")
    compile_runner(source.parent, noticed)
    assert started.exists()


async def test_packages_with_binaries_are_those_of_its_python(host: Service) -> None:
    code = "import markupsafe._speedups as it\n" + VERSION.replace("'%d.%d' % sys.version_info[:2]", "it.__file__")
    for python in (OWN, OTHER):
        file = await reason(host, code, python=python, packages=("markupsafe==3.0.3",))
        assert f"cpython-{python.replace('.', '')}" in str(file)


@pytest.mark.long
async def test_light_modules_come_with_it(host: Service) -> None:
    code = returning("__import__('sys').version_info[1]", 'MetricOutputSpec.discrete_score("p")')
    result = await host.evaluate(Evaluator(code, python=OTHER), Row())
    assert result.score == int(OTHER.partition(".")[2])


async def test_a_python_that_is_not_here_is_named_with_how_to_get_it(host: Service) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await host.evaluate(Evaluator(VERSION, python="3.99"), Row())
    assert "there is no Python 3.99 here" in refused.value.detail
    assert "uv python install 3.99" in refused.value.detail
    assert [problem.field for problem in refused.value.problems] == ["evaluator.python"]
    with pytest.raises(InvalidRequest):
        await host.evaluate(Evaluator("x", language=Language.JAVASCRIPT, python=OWN), Row())


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with package_index.serving() as opened:
        yield opened


@pytest.fixture(scope="module")
def server(index: Index, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("host")
    with Host(home, "bubblewrap", index=index).server(home / "log") as running:
        yield running


def built(server: Server, pin: str, **asked: str) -> str:
    """Build a package set, and return its key."""
    key: str = server.client.post(SETS, json={"packages": [pin], **asked}).json()["key"]
    assert "event: ready" in server.client.get(f"{SETS}/{key}/events").text
    return key


@pytest.mark.long
def test_a_set_is_built_ahead_for_the_python_that_an_evaluator_will_ask_for(server: Server, index: Index) -> None:
    pin = index.add("ahead", "import sys\nsaid = '%d.%d' % sys.version_info[:2]\n")
    other, own = built(server, pin, python=OTHER), built(server, pin)
    assert built(server, pin, python=OWN) == own
    listed = {one["key"]: (one["digest"], one["runtime"]) for one in server.client.get(SETS).json()}
    assert {key: runtime for key, (_, runtime) in listed.items()} == {other: f"python {OTHER}", own: f"python {OWN}"}
    before = len(index.asked)
    for key, python in ((other, OTHER), (own, OWN)):
        evaluator = {"code": LABEL.format("ahead"), "packages": [pin], "python": python}
        answer = server.client.post("/v1/evaluate", json={"evaluator": evaluator}).json()
        assert (answer["label"], answer["environment"]["digest"]) == (python, listed[key][0])
    assert len(index.asked) == before, "no lock may be resolved again"


@pytest.mark.long
def test_a_set_that_was_asked_for_has_a_sandbox_waiting(tmp_path: Path, index: Index) -> None:
    pin = index.add("waits", "said = 1\n")
    with Host(tmp_path / "host", "bubblewrap", index=index).server(tmp_path / "log", **PREWARMED) as server:
        before = server.client.get("/v1/info").json()["sandboxes"]
        built(server, pin, python=OTHER)
        until = time.monotonic() + 60
        while server.client.get("/v1/info").json()["sandboxes"] <= before:
            assert time.monotonic() < until, "no sandbox for the set was started in advance"
            time.sleep(0.05)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"python": "3.99"}, "uv python install 3.99"),
        ({"python": OWN, "language": "javascript"}, "only Python evaluators have this field, not javascript"),
        ({"python": "three"}, "3"),
    ],
    ids=["missing", "another language", "no version"],
)
def test_a_set_for_a_python_that_cannot_be_had_is_refused(asked: dict[str, str], said: str, server: Server) -> None:
    refused = server.client.post(SETS, json={"packages": ["six@1.17.0"], **asked})
    assert refused.status_code == 422
    (problem,) = refused.json()["errors"]
    assert problem["field"] == "python"
    assert said in refused.text


@pytest.mark.parametrize("service", ["docker"], indirect=True)
async def test_containers_have_the_python_of_their_image_alone(service: Service) -> None:
    with pytest.raises(InvalidRequest, match="containers have only the Python of their image"):
        await service.evaluate(Evaluator(VERSION, python="3.11"), Row())
    assert (await service.evaluate(Evaluator(VERSION, python="3.13"), Row())).reason == "3.13"
