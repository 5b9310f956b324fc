"""Package sets, installed from the real indexes by a real builder and used by real sandboxes."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.config import SandboxChoice, Settings
from evaluator_host.environments.record import Step
from evaluator_host.errors import IndexUnavailable, InvalidPin, NotFound, PackagesFailed
from evaluator_host.model import EvaluationResult, Evaluator, Language, Package, Row
from evaluator_host.service import Service
from evaluator_host.wiring import open_service
from tests.server import Server, free_port, index_environment

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT
RAPIDFUZZ = "from rapidfuzz import fuzz\ndef evaluate(inputs, outputs, trace):\n    return fuzz.ratio('ab', 'ab')\n"
# As the editor of a hosted service shows it to its users.
VELLUM = """import * as _ from "lodash";

export async function main(variables: { completion: string; target: string; }) {
  return { score: variables.target.length + _.floor(7.55) };
}
"""
VERSION = (
    "import rapidfuzz\ndef evaluate(inputs, outputs, trace):\n    return {'score': 1, 'label': rapidfuzz.__version__}\n"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory of this module: what is installed there, one of its tests has installed."""
    return tmp_path_factory.mktemp("data")


def settings(home: Path, **changes: Any) -> Settings:
    found = {name.removeprefix("EVALUATOR_HOST_").lower(): value for name, value in index_environment().items()}
    return Settings(sandbox=SandboxChoice.BUBBLEWRAP, data_dir=home, **{**found, **changes})


def cut_off(home: Path) -> Settings:
    """Settings whose every way to an index leads to a closed port."""
    nowhere = f"http://127.0.0.1:{free_port()}/"
    return settings(home, pip_index_url=nowhere, npm_registry=nowhere, proxy=nowhere, index_timeout_s=20)


@pytest.fixture(scope="module")
async def service(home: Path) -> AsyncIterator[Service]:
    async with open_service(settings(home), prewarm=False) as opened:
        yield opened


@asynccontextmanager
async def opened(changed: Settings) -> AsyncIterator[Service]:
    async with open_service(changed, prewarm=False) as service:
        yield service


async def score(
    service: Service, code: str, *packages: str, language: Language = PYTHON, **row: Any
) -> EvaluationResult:
    result = await service.evaluate(Evaluator(code=code, language=language, packages=packages), Row(**row))
    assert result.error is None, result.error
    return result


async def test_a_python_set_is_installed_and_every_package_is_listed(service: Service) -> None:
    code = "import pandas as pd\ndef evaluate(inputs, outputs, trace):\n    return float(pd.Series([0, 1]).mean())\n"
    result = await score(service, code, "pandas==2.2.3", "numpy==2.1.0")
    assert result.score == 0.5
    assert result.timing_ms.environment > 0
    assert Package("numpy", "2.1.0", requested=True) in result.environment.packages
    assert "python-dateutil" in {package.name for package in result.environment.packages if not package.requested}
    report = await service.environments.get(result.environment.digest)
    assert set(report.import_ms) == {"numpy", "pandas"}
    assert "--hash=sha256:" in (report.lock or "")
    again = await score(service, code, "numpy==2.1", "Pandas==2.2.3")
    assert again.environment == result.environment
    assert again.timing_ms.environment < 1000


async def test_the_vellum_example_scores_ten(service: Service) -> None:
    result = await score(
        service, VELLUM, "lodash@4.17.21", language=TYPESCRIPT, variables={"completion": "", "target": "abc"}
    )
    assert result.score == 10


@pytest.mark.parametrize(
    ("code", "packages"),
    [
        ('import { nanoid } from "nanoid"; export const evaluate = (i, o, t) => nanoid().length', ("nanoid@5.1.5",)),
        (
            'import { decode } from "@msgpack/msgpack"; export const evaluate = (i, o, t) => decode([21])',
            ("@msgpack/msgpack@3.1.2",),
        ),
    ],
    ids=["an ESM-only package", "a scoped package"],
)
async def test_npm_packages_of_every_kind(service: Service, code: str, packages: tuple[str, ...]) -> None:
    result = await score(service, code, *packages, language=JAVASCRIPT)
    assert result.score == 21


async def test_twenty_callers_cause_one_build(service: Service, home: Path) -> None:
    results = await asyncio.gather(*(score(service, RAPIDFUZZ, "rapidfuzz==3.13.0") for _ in range(20)))
    assert {result.score for result in results} == {100}
    events = [event async for event in service.environments.events(results[0].environment.digest)]
    assert [event.step for event in events] == [Step.READY]
    installed = [r for r in await service.environments.reports() if "rapidfuzz" in {p.name for p in r.packages}]
    assert len(installed) == 1
    assert list((home / "environments" / "build" / "staging").iterdir()) == []


async def test_a_second_evaluator_needs_no_network(service: Service, home: Path) -> None:
    await score(service, RAPIDFUZZ, "rapidfuzz==3.13.0")
    await score(service, VELLUM, "lodash@4.17.21", language=TYPESCRIPT, variables={"completion": "", "target": ""})
    async with opened(cut_off(home)) as offline:
        result = await score(offline, VERSION, "rapidfuzz==3.13.0")
        assert result.label == "3.13.0"
        code = 'import { floor } from "lodash"; export const evaluate = (i, o, t) => floor(1.5)'
        assert (await score(offline, code, "lodash@4.17.21", language=JAVASCRIPT)).score == 1
        with pytest.raises(IndexUnavailable):
            await score(offline, VERSION, "rapidfuzz==3.12.0")


async def test_two_versions_run_side_by_side(service: Service) -> None:
    versions = ("3.13.0", "3.14.3")
    results = await asyncio.gather(*(score(service, VERSION, f"rapidfuzz=={version}") for version in versions))
    assert tuple(result.label for result in results) == versions


async def test_steps_are_told_in_order(service: Service) -> None:
    report = await service.environments.request(["six==1.16.0"], PYTHON)
    steps = [event.step for event in [e async for e in service.environments.events(report.key)]]
    wanted = [Step.RESOLVING, Step.DOWNLOADING, Step.INSTALLING, Step.CHECKING, Step.READY]
    assert list(dict.fromkeys(steps)) == wanted
    assert (await service.environments.built(report.key)).import_ms.keys() == {"six"}


async def test_a_guest_sees_its_set_read_only_and_no_way_to_it(service: Service) -> None:
    code = """import os, six
def evaluate(inputs, outputs, trace):
    site = os.path.dirname(six.__file__)
    try:
        open(site + '/mine', 'w')
    except OSError:
        return {'score': 1, 'label': site + ' ' + ' '.join(sorted(os.environ))}
"""
    result = await score(service, code, "six==1.16.0")
    assert (result.label or "").startswith("/opt/packages ")
    assert not {"UV", "PIP", "NPM", "PROXY"} & {name.partition("_")[0] for name in (result.label or "").split()}


async def test_a_tampered_file_is_found_and_mended(service: Service, home: Path) -> None:
    result = await score(service, VERSION, "rapidfuzz==3.13.0")
    digest = result.environment.digest
    assert (await service.environments.verify(digest))[0].broken == ()
    files = home / "environments" / digest.removeprefix("sha256:") / "files"
    (files / "rapidfuzz" / "__init__.py").write_text("__version__ = 'evil'\n")
    (files / "extra.py").write_text("")
    (found,) = await service.environments.verify(digest)
    assert set(found.broken) == {"extra.py", "rapidfuzz/__init__.py"}
    assert found.mended
    assert (await service.environments.verify(digest))[0].broken == ()
    assert (await score(service, VERSION + "\n", "rapidfuzz==3.13.0")).label == "3.13.0"


async def test_a_half_written_set_is_mended(service: Service, home: Path) -> None:
    report = await service.environments.request(["six==1.16.0"], PYTHON)
    report = await service.environments.built(report.key)
    assert report.digest
    folder = home / "environments" / report.digest.removeprefix("sha256:")
    (folder / "env.json").write_text("{")
    found = {one.digest: one for one in await service.environments.verify()}
    assert found[report.digest].mended
    assert (await service.environments.get(report.key)).status == "ready"


async def test_prune_takes_what_nobody_uses_and_a_rebuild_is_the_same(home: Path) -> None:
    async with opened(settings(home)) as service:
        await service.environments.request(["six==1.15.0"], PYTHON)
        (report,) = [r for r in await service.environments.reports() if r.digest is None]
        digest = (await service.environments.built(report.key)).digest
    async with opened(settings(home)) as service:
        score_it = "import six\ndef evaluate(inputs, outputs, trace):\n    return 1\n"
        used = await score(service, score_it, "six==1.17.0")
        gone = {record.digest for record in await service.environments.prune(ceiling_mb=0)}
        assert digest in gone
        assert used.environment.digest not in gone
        rebuilt = await service.environments.request(["six==1.15.0"], PYTHON)
        assert (await service.environments.built(rebuilt.key)).digest == digest
        await service.environments.delete(str(digest))
        with pytest.raises(NotFound):
            await service.environments.get(str(digest))


async def test_bad_pins_are_named_with_what_was_meant(service: Service) -> None:
    with pytest.raises(InvalidPin) as refused:
        await score(service, VERSION, "six==1.16.0", "rapidfuzz>=3,<3.14")
    (problem,) = refused.value.problems
    assert problem.field == "evaluator.packages[1]"
    assert (problem.hint or "").startswith("rapidfuzz==3.13")


async def test_a_set_that_cannot_be_leaves_nothing_and_can_be_tried_again(service: Service, home: Path) -> None:
    before = sorted((home / "environments").iterdir())
    for _ in range(2):
        with pytest.raises(PackagesFailed, match=r"no version 99\.0\.0"):
            await score(service, VERSION, "six==99.0.0")
    assert sorted((home / "environments").iterdir()) == before
    (failed,) = [report for report in await service.environments.reports() if report.status == "failed"]
    assert "99.0.0" in (failed.error or "")


async def test_check_names_the_pin_that_an_import_needs(service: Service) -> None:
    code = "import six\nimport cv2\ndef evaluate(inputs, outputs, trace):\n    return 1\n"
    report = await service.check(Evaluator(code=code, packages=("six==1.16.0",)))
    (missing,) = report.missing_imports
    assert (missing.module, missing.line) == ("cv2", 2)
    assert (missing.pin or "").startswith("opencv-python==")


def test_a_host_killed_in_the_middle_of_a_build_builds_it_after_its_restart(tmp_path: Path, home: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(home / "toolchain", data / "toolchain")
    body = {"language": "python", "packages": ["scipy==1.14.1"]}
    first = Server(log=tmp_path / "first", data_dir=data).wait_until_ready()
    key = first.client.post("/v1/environments", json=body).json()["key"]
    staging = data / "environments" / "build" / "staging"
    until = time.monotonic() + 60
    while not any(staging.glob("*/files")) and time.monotonic() < until:
        time.sleep(0.02)
    assert any(staging.glob("*/files"))
    first.kill()
    wait_for_no_process_of(str(data))
    with Server(log=tmp_path / "second", data_dir=data) as second:
        assert list(staging.iterdir()) == []
        assert second.client.get(f"/v1/environments/{key}").status_code == 404
        response = second.client.post("/v1/environments", json=body)
        assert response.status_code == 202
        events = second.client.get(f"/v1/environments/{key}/events").text
        assert "event: downloading" in events
        assert events.rstrip().splitlines()[-2] == "event: ready"
        assert second.client.get(f"/v1/environments/{key}").json()["status"] == "ready"
        assert second.client.post("/v1/environments", json=body).status_code == 200


def wait_for_no_process_of(path: str) -> None:
    """The builder ends with its host."""
    until = time.monotonic() + 10
    while processes_of(path):
        assert time.monotonic() < until, processes_of(path)
        time.sleep(0.05)


def processes_of(path: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if path in line and "pip install" in line:
            found.append(line)
    return found


def test_a_file_brings_its_own_pins(tmp_path: Path, home: Path) -> None:
    python = tmp_path / "e.py"
    python.write_text(
        '# /// script\n# dependencies = ["six==1.16.0"]\n# ///\nimport six\ndef evaluate(i, o, t):\n    return 1\n'
    )
    script = tmp_path / "e.ts"
    script.write_text(VELLUM.replace('"lodash"', '"npm:lodash@4.17.21"'))
    environment = {**os.environ, **index_environment(), "EVALUATOR_HOST_DATA_DIR": str(home)}
    for arguments in (["run", str(python)], ["run", str(script), "--variables", '{"target": "abc"}']):
        command = [sys.executable, "-m", "evaluator_host.cli.main", *arguments, "--sandbox", "bubblewrap"]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr
        assert "scored" in ran.stdout


async def test_a_package_without_a_wheel_is_built_where_the_operator_allows_it(home: Path) -> None:
    code = "import docopt\ndef evaluate(inputs, outputs, trace):\n    return 1\n"
    async with opened(settings(home)) as service:
        with pytest.raises(PackagesFailed, match="has no wheel"):
            await score(service, code, "docopt==0.6.2")
    async with opened(settings(home, allow_source_builds=True)) as service:
        assert (await score(service, code, "docopt==0.6.2")).score == 1
