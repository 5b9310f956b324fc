"""If a package set contains a package that cannot be imported, the refusal says why, and what to pin."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.errors import PackagesFailed
from evaluator_host.types.evaluator import Evaluator, Language, Row
from tests.builds import JAVASCRIPT, PYTHON, building, nothing_left, refusal, value_of
from tests.indexes import Index
from tests.packages import npm_package, wheel

# for each package: an import of it, and the pin that the refusal names (None if no well-known package has the module)
FORGOTTEN = {
    PYTHON: {
        "forgetsyaml": ("import yaml", "pyyaml==1.0.0"),
        "forgetsresources": ("import pkg_resources.extern", "setuptools==81.0.0"),
        "forgetsclick": ("from click.core import Command", "click==1.0.0"),
        "forgetsnobody": ("import nosuchlibrary", None),
        "forgetsitself": ("import forgetsitself.part", None),
    },
    JAVASCRIPT: {
        "forgets-lodash": ("require('lodash/fp')", "lodash@1.0.0"),
        "forgets-zod": ("module.exports = import('zod')", "zod@1.0.0"),
        "forgets-nobody": ("require('no-such-library')", None),
    },
}


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with Index() as serving:
        for name, module in (("pyyaml", "yaml"), ("click", "click")):
            serving.add_python(wheel(name, {f"{module}/__init__.py": ""}))
        for version in ("81.0.0", "82.0.0"):
            serving.add_python(wheel("setuptools", {"pkg_resources/__init__.py": ""}, version=version))
        for name in ("lodash", "zod"):
            serving.add_npm(npm_package(name, {"index.js": ""}))
        for name, (code, _) in FORGOTTEN[PYTHON].items():
            serving.add_python(wheel(name, {f"{name}.py": code}))
        for name, (code, _) in FORGOTTEN[JAVASCRIPT].items():
            serving.add_npm(npm_package(name, {"index.js": code}))
        yield serving


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
async def host(index: Index, home: Path) -> AsyncIterator[Service]:
    async with building(home, index) as opened:
        yield opened


async def refused(service: Service, *pins: str, language: Language) -> PackagesFailed:
    error = await refusal(service, *pins, language=language)
    assert isinstance(error, PackagesFailed), error
    return error


@pytest.mark.long("test_auto_packages.py finds pins of missing imports")
@pytest.mark.parametrize("language", FORGOTTEN)
async def test_a_package_that_forgets_a_dependency_is_answered_with_its_pin(
    host: Service, home: Path, language: Language
) -> None:
    for name, (_, pin) in FORGOTTEN[language].items():
        error = await refused(host, f"{name}{'==' if language is PYTHON else '@'}1.0.0", language=language)
        assert name in error.detail
        assert [one.hint for one in error.problems] == ([pin] if pin else []), error
        assert (f"pin {pin} too" in error.detail) is (pin is not None), error
    nothing_left(home)


@pytest.mark.long
async def test_a_package_that_another_has_outgrown_is_named_with_its_version(host: Service, index: Index) -> None:
    index.add_python(wheel("outgrown", {"outgrown/__init__.py": "", "outgrown/old.py": ""}))
    index.add_python(wheel("outgrown", {"outgrown/__init__.py": ""}, version="2.0.0"))
    index.add_python(wheel("needsold", {"needsold.py": "import outgrown.old"}, requires="outgrown"))
    error = await refused(host, "needsold==1.0.0", language=PYTHON)
    assert (
        "outgrown 2.0.0, which was installed as a dependency, has no such module: pin another version of outgrown too"
        in error.detail
    )
    code = "import needsold\ndef evaluate(inputs, outputs, trace):\n    return 1"
    assert (await value_of(host, code, "needsold==1.0.0", "outgrown==1.0.0")) == 1


@pytest.mark.long
async def test_the_pin_that_a_real_package_needs_makes_it_work(service: Service) -> None:
    error = await refused(service, "textstat==0.7.4", language=PYTHON)
    pin = error.problems[0].hint or ""
    assert pin.startswith("setuptools==")
    code = "import textstat\ndef evaluate(inputs, outputs, trace): return textstat.flesch_reading_ease(outputs) > 50"
    evaluator = Evaluator(code=code, language=PYTHON, packages=("textstat==0.7.4", pin))
    result = await service.evaluate(evaluator, Row(outputs="The cat sat."))
    assert result.score == 1, result.error


ADDONS = {
    "better-sqlite3@11.5.0": (
        "better-sqlite3 has a native addon that its install script would build",
        "use node:sqlite, which works here",
    ),
    "sqlite3@5.1.7": (
        "sqlite3 has a native addon that its install script would build",
        "use node:sqlite, which works here",
    ),
    "bcrypt@5.1.1": ("bcrypt has a native addon that its install script would build", "use bcryptjs, which works here"),
}


@pytest.mark.long
@pytest.mark.parametrize("pin", ADDONS)
async def test_a_real_package_whose_addon_is_not_prebuilt_is_refused_with_the_way_out(
    service: Service, pin: str
) -> None:
    error = await refused(service, pin, language=JAVASCRIPT)
    reason, remedy = ADDONS[pin]
    assert reason in error.problems[0].message
    assert error.problems[0].hint == remedy


@pytest.mark.long
async def test_a_package_that_brings_its_addon_or_needs_none_is_not_refused(host: Service, index: Index) -> None:
    gyp = {"binding.gyp": "{}"}
    both = {"index.js": "module.exports = 1", **gyp}
    index.add_npm(npm_package("brings", {**both, "prebuilds/linux-x64/node.node": "addon"}))
    index.add_npm(npm_package("brought-linux-x64", {"index.js": "", "it.node": "addon"}))
    index.add_npm(npm_package("brought", both, manifest={"optionalDependencies": {"brought-linux-x64": "1.0.0"}}))
    index.add_npm(npm_package("bigint-buffer", both))
    index.add_npm(
        npm_package("scripted", {"index.js": "require('./made.js')"}, manifest={"scripts": {"postinstall": "x"}})
    )
    index.add_npm(npm_package("compiled", both))
    code = "exports.evaluate = (inputs, outputs) => require('brings') + require('brought') + require('bigint-buffer')"
    pins = ("brings@1.0.0", "brought@1.0.0", "bigint-buffer@1.0.0")
    result = await host.evaluate(Evaluator(code=code, language=JAVASCRIPT, packages=pins), Row())
    assert result.score == 3, result.error
    assert "which does not run here" in (await refused(host, "scripted@1.0.0", language=JAVASCRIPT)).detail
    assert "another package" in (await refused(host, "compiled@1.0.0", language=JAVASCRIPT)).detail


LAZY = "def read(path):\n    raise ImportError('to read it, run `pip install PyYAML`')\n"


@pytest.mark.long
async def test_a_package_that_a_library_asks_for_when_it_is_used_is_answered_with_its_pin(
    host: Service, index: Index
) -> None:
    index.add_python(wheel("lazyreader", {"lazyreader.py": LAZY}))
    code = "import lazyreader\n\ndef evaluate(inputs, outputs, trace):\n    return lazyreader.read(outputs)\n"
    found = await host.evaluate(Evaluator(code, packages=("lazyreader==1.0.0",)), Row({}, "x"))
    assert found.error is not None
    assert (found.error.message, found.error.hint) == (
        "to read it, run `pip install PyYAML`",
        "add pyyaml==1.0.0 to `packages`",
    )
    at_load = await host.check(Evaluator(code + "\nlazyreader.read('')\n", packages=("lazyreader==1.0.0",)))
    assert [one.hint for one in at_load.problems] == ["add pyyaml==1.0.0 to `packages`"]
