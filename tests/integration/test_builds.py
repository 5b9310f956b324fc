"""A package set is built only once, even if many callers request it at once; a killed host leaves no build behind."""

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from evaluator_host.engine.opening import open_engine
from evaluator_host.types.evaluator import Evaluator, Row
from tests.conftest import BACKENDS, settings
from tests.counting import counted_builds
from tests.left_behind import until_nothing_is_left, until_nothing_runs
from tests.server import Server
from tests.tools import copy_tools

CALLERS = 20
SMALL = "toolz==0.12.1"
COUNT = "import toolz\ndef evaluate(inputs, outputs, trace):\n    return toolz.count(outputs)\n"
LARGE = "numpy==2.1.0"  # a set with a build that takes long enough for the test to kill it in the middle
SUM = "import numpy\ndef evaluate(inputs, outputs, trace):\n    return float(numpy.arange(len(outputs)).sum())\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data directory in which no package set is installed yet."""
    data = tmp_path / "data"
    data.mkdir()
    copy_tools(data)
    return data


@pytest.mark.parametrize("backend", BACKENDS)
async def test_many_callers_cause_one_build(backend: str, home: Path) -> None:
    chosen = settings(backend).model_copy(update={"data_dir": home})
    async with open_engine(chosen) as service:
        of_another_build = home / "environments" / "build" / "staging" / f"{'0' * 64}.failed"
        of_another_build.mkdir()
        with counted_builds(home) as builds:
            evaluator = Evaluator(code=COUNT, packages=(SMALL,))
            rows = (Row(outputs="a" * length) for length in range(CALLERS))
            results = await asyncio.gather(*(service.evaluate(evaluator, row) for row in rows))
        while of_another_build.exists():  # the host removes these files of a failed build after the next build
            await asyncio.sleep(0.01)
    assert [result.score for result in results] == list(range(CALLERS))
    assert len(builds - {of_another_build.name}) == 1


@pytest.mark.long
def test_a_host_killed_in_the_middle_of_a_build_leaves_nothing_and_builds_it_once(home: Path, tmp_path: Path) -> None:
    build_home = home / "environments" / "build"
    first = Server(log=tmp_path / "first", data_dir=home).wait_until_ready()
    key = first.client.post("/v1/environments", json={"packages": [LARGE]}).json()["key"]
    wait_for_an_installation(build_home)
    first.kill()
    until_nothing_runs(first.process.pid)
    assert mounts_below(home) == []
    with Server(log=tmp_path / "second", data_dir=home) as second:
        until_nothing_is_left(first.process.pid, docker=[])
        assert list((build_home / "staging").iterdir()) == []
        assert second.client.get(f"/v1/environments/{key}").status_code == 404
        with counted_builds(home) as builds:
            answers = asyncio.run(asked_at_once(second.url))
        assert [answer["score"] for answer in answers] == [sum(range(length)) for length in range(CALLERS)]
        assert len(builds) == 1
        assert second.client.get(f"/v1/environments/{key}").json()["status"] == "ready"
        assert list(home.rglob(f"*-{first.process.pid}-*")) == []


def wait_for_an_installation(build_home: Path) -> None:
    until = time.monotonic() + 60
    while not any((build_home / "staging").glob("*/files/*")):
        assert time.monotonic() < until
        time.sleep(0.01)


async def asked_at_once(url: str) -> list[dict[str, Any]]:
    """Let many callers request the same new package set at the same time; return their results."""
    async with httpx.AsyncClient(base_url=url, timeout=150) as client:
        bodies = ({"evaluator": {"code": SUM, "packages": [LARGE]}, "outputs": "a" * n} for n in range(CALLERS))
        answers = await asyncio.gather(*(client.post("/v1/evaluate", json=body) for body in bodies))
    return [answer.json() for answer in answers]


def mounts_below(folder: Path) -> list[str]:
    """Return the mounts below a folder, in all processes."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            lines = (process / "mountinfo").read_text().splitlines()
            found |= {f"{process.name}: {line}" for line in lines if str(folder) in line}
    return sorted(found)
