"""A real builder installs package sets from the real indexes, and real sandboxes use them."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.engine.environments.record import Step
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.types.errors import InvalidPin, MachineExhausted, NotFound, PackagesFailed
from evaluator_host.types.evaluator import Evaluator, Language, Package, Row
from evaluator_host.types.outcome import EvaluationResult
from tests.server import index_environment

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT
VERSION = (
    "import rapidfuzz\ndef evaluate(inputs, outputs, trace):\n    return {'score': 1, 'label': rapidfuzz.__version__}\n"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory into which only this module's tests install packages."""
    return tmp_path_factory.mktemp("data")


def settings(home: Path, **changes: Any) -> Settings:
    found = {name.removeprefix("EVALUATOR_HOST_").lower(): value for name, value in index_environment().items()}
    return Settings(sandbox=SandboxChoice.BUBBLEWRAP, data_dir=home, **{"idle_sandboxes": 0, **found, **changes})


@pytest.fixture(scope="module")
async def service(home: Path) -> AsyncIterator[Service]:
    async with open_engine(settings(home)) as opened:
        yield opened


@asynccontextmanager
async def opened(changed: Settings) -> AsyncIterator[Service]:
    async with open_engine(changed) as service:
        yield service


async def score(
    service: Service, code: str, *packages: str, language: Language = PYTHON, **row: Any
) -> EvaluationResult:
    result = await service.evaluate(Evaluator(code=code, language=language, packages=packages), Row(**row))
    assert result.error is None, result.error
    return result


async def test_a_python_set_is_installed_and_every_package_is_listed(service: Service) -> None:
    code = (
        "from dateutil.parser import parse\ndef evaluate(inputs, outputs, trace):\n    return parse('1 May 2024').day\n"
    )
    result = await score(service, code, "python-dateutil==2.9.0.post0")
    assert result.score == 1
    assert result.timing_ms.environment > 0
    names = {(package.name, package.requested) for package in result.environment.packages}
    assert names == {("python-dateutil", True), ("six", False)}
    report = await service.environments.find_report(result.environment.digest)
    assert set(report.import_ms) == {"dateutil"}
    assert "--hash=sha256:" in (report.lock or "")
    again = await score(service, code, "Python_DateUtil==2.9.0.post0")
    assert again.environment == result.environment
    assert again.timing_ms.environment < 1000


@pytest.mark.long
async def test_steps_are_reported_in_order(service: Service) -> None:
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


@pytest.mark.long
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


@pytest.mark.long
async def test_a_half_written_set_is_mended(service: Service, home: Path) -> None:
    report = await service.environments.request(["six==1.16.0"], PYTHON)
    report = await service.environments.built(report.key)
    assert report.digest
    folder = home / "environments" / report.digest.removeprefix("sha256:")
    (folder / "env.json").write_text("{")
    found = {one.digest: one for one in await service.environments.verify()}
    assert found[report.digest].mended
    assert (await service.environments.find_report(report.key)).status == "ready"


@pytest.mark.long
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
            await service.environments.find_report(str(digest))


@pytest.mark.long
async def test_nothing_is_installed_on_a_disk_without_its_reserve_and_unused_sets_make_room_first(
    tmp_path: Path,
) -> None:
    async with opened(settings(tmp_path)) as service:
        report = await service.environments.request(["six==1.15.0"], PYTHON)
        unused = (await service.environments.built(report.key)).digest
    async with opened(settings(tmp_path)) as service:
        used = await score(service, "import six\ndef evaluate(inputs, outputs, trace):\n    return 1\n", "six==1.17.0")
    more_than_the_disk_has = 1 << 40
    async with opened(settings(tmp_path, free_disk_mb=more_than_the_disk_has)) as service:
        again = await score(service, "import six\ndef evaluate(inputs, outputs, trace):\n    return 1\n", "six==1.17.0")
        assert again.environment.digest == used.environment.digest, (
            "an installed set must be used although the disk is full"
        )
        for ask in (
            service.environments.request(["six==1.16.0"], PYTHON),
            service.environments.require(("six==1.16.0",), PYTHON),
        ):
            with pytest.raises(MachineExhausted, match="EVALUATOR_HOST_FREE_DISK_MB"):
                await ask
        left = {one.digest for one in await service.environments.reports()}
        assert unused not in left
        assert used.environment.digest in left


async def test_bad_pins_are_named_with_what_was_meant(service: Service) -> None:
    with pytest.raises(InvalidPin) as refused:
        await score(service, VERSION, "six==1.16.0", "rapidfuzz>=3,<3.14")
    (problem,) = refused.value.problems
    assert problem.field == "evaluator.packages[1]"
    assert (problem.hint or "").startswith("rapidfuzz==3.13")


@pytest.mark.long
async def test_a_set_that_cannot_be_leaves_nothing_and_can_be_tried_again(service: Service, home: Path) -> None:
    before = sorted((home / "environments").iterdir())
    for _ in range(2):
        with pytest.raises(PackagesFailed, match=r"no version 99\.0\.0"):
            await score(service, VERSION, "six==99.0.0")
    assert sorted((home / "environments").iterdir()) == before
    (failed,) = [report for report in await service.environments.reports() if report.status == "failed"]
    assert "99.0.0" in (failed.error or "")
    assert failed.packages == (Package("six", "99.0.0"),)  # the requested packages are known although the build failed


IMPORTS = """import cv2, six
import yaml, sklearn.metrics
from PIL import Image
from bs4 import BeautifulSoup
import dateutil.parser, os.path, json
from google.protobuf import json_format
from google.cloud import storage

def evaluate(inputs, outputs, trace):
    from regex import match
    return cv2, six, yaml, sklearn, Image, BeautifulSoup, dateutil, json_format, storage
"""
SPECIFIERS = """import fp from "lodash/fp";
import { sha256 as sub } from "@noble/hashes/sha256";
import { readFileSync } from "node:fs";
const path = require("path"), zod = require("zod"), { setTimeout } = require("timers/promises");
import("nanoid");
export const evaluate = (inputs, outputs, trace) => [fp, sub, readFileSync];
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("code", "language", "pins", "missing"),
    [
        (
            IMPORTS,
            PYTHON,
            ("six==1.16.0",),
            [
                ("cv2", 1, "opencv-python=="), ("yaml", 2, "pyyaml=="), ("sklearn", 2, "scikit-learn=="),
                ("PIL", 3, "pillow=="), ("bs4", 4, "beautifulsoup4=="), ("dateutil", 5, "python-dateutil=="),
                ("google.protobuf", 6, "protobuf=="), ("google.cloud.storage", 7, "google-cloud-storage=="),
                ("regex", 10, "regex=="),
            ],
        ),
        (
            IMPORTS.replace("cv2, ", "").replace("from bs4", "from json").replace("BeautifulSoup", "loads"),
            PYTHON,
            ("six==1.16.0", "protobuf==5.29.3", "python-dateutil==2.9.0.post0", "pyyaml==6.0.2"),
            [
                ("sklearn", 2, "scikit-learn=="), ("PIL", 3, "pillow=="),
                ("google.cloud.storage", 7, "google-cloud-storage=="), ("regex", 10, "regex=="),
            ],
        ),
        (
            SPECIFIERS,
            JAVASCRIPT,
            ("lodash@4.17.21",),
            [("@noble/hashes/sha256", 2, "@noble/hashes@"), ("zod", 4, "zod@"), ("nanoid", 5, "nanoid@")],
        ),
        (SPECIFIERS, TYPESCRIPT, ("lodash@4.17.21", "@noble/hashes@1.7.1", "nanoid@5.1.5", "zod@3.24.1"), []),
    ],
    ids=["Python", "Python, of a shared namespace", "JavaScript", "all provided"],
)  # fmt: skip
async def test_check_names_the_pin_that_each_import_needs(
    service: Service, code: str, language: Language, pins: tuple[str, ...], missing: list[tuple[str, int, str]]
) -> None:
    report = await service.check(Evaluator(code=code, language=language, packages=pins))
    found = {one.module: one for one in report.missing_imports}
    assert {(module, one.line) for module, one in found.items()} == {(module, line) for module, line, _ in missing}
    for module, _, pin in missing:
        assert re.fullmatch(rf"{re.escape(pin)}\d+(\.\d+)+.*", found[module].pin or "")
    assert report.ok is not bool(missing)


@pytest.mark.long
async def test_a_package_without_a_wheel_is_built_where_the_operator_allows_it(home: Path) -> None:
    code = "import docopt\ndef evaluate(inputs, outputs, trace):\n    return 1\n"
    async with opened(settings(home)) as service:
        with pytest.raises(PackagesFailed, match="has no wheel"):
            await score(service, code, "docopt==0.6.2")
    async with opened(settings(home, allow_source_builds=True)) as service:
        assert (await score(service, code, "docopt==0.6.2")).score == 1
