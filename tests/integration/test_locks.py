"""Package sets get locks from the real indexes with the real resolvers, and wrong pins get suggestions."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.packages.index import IndexSettings
from evaluator_host.engine.packages.lock import Lock, LockTarget
from evaluator_host.engine.packages.npm.resolve import manifest
from evaluator_host.engine.packages.pin_parser import parse
from evaluator_host.engine.packages.pip.programs import PipPrograms
from evaluator_host.engine.packages.providers import ImportedModule, Provider, find_providers
from evaluator_host.engine.packages.resolve import resolve
from evaluator_host.engine.packages.suggest import suggest
from evaluator_host.engine.packages.tools import Resolver, installed_tools
from evaluator_host.engine.system.processes import Command, run
from evaluator_host.types.errors import InvalidPin, InvalidRequest, Misconfigured, PackagesFailed
from evaluator_host.types.evaluator import Language
from tests.lock_sites import JAVASCRIPT, PYTHON, TARGETS, TYPESCRIPT, lock_of

CA_FILE = os.environ.get("SSL_CERT_FILE")
PROXY = os.environ.get("HTTPS_PROXY")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> IndexSettings:
    """The settings for the real indexes, with the proxy that this machine uses."""
    cache = tmp_path_factory.mktemp("downloads")
    return IndexSettings(cache_dir=cache, ca_file=Path(CA_FILE) if CA_FILE else None, proxy=PROXY)


async def test_a_python_set_locks_every_package_with_hashes(index: IndexSettings) -> None:
    raw = ["pandas==2.2.3", "numpy==2.1.0", "requests[socks]==2.32.3"]
    lock = await lock_of(raw, PYTHON, index)
    by_name = {package.name: package for package in lock.packages}
    assert {name for name, package in by_name.items() if package.requested} == {"numpy", "pandas", "requests"}
    assert {"python-dateutil", "urllib3", "pysocks"} <= set(by_name)
    assert by_name["numpy"].version == "2.1.0"
    assert "numpy" in by_name["pandas"].dependencies
    assert all(hash_.startswith("sha256:") for package in lock.packages for hash_ in package.hashes)
    assert all(package.hashes for package in lock.packages)
    assert "://" not in lock.text
    assert Lock.from_json(lock.to_json()) == lock


async def test_the_same_set_in_another_spelling_is_the_same_lock(index: IndexSettings, tmp_path: Path) -> None:
    one = await lock_of(["jsonschema==4.23.0", "rapidfuzz==3.10.0"], PYTHON, index)
    other = await lock_of(["RapidFuzz == 3.10", "jsonschema==v4.23"], PYTHON, replace(index, cache_dir=tmp_path))
    assert one == other
    assert one.digest == other.digest


@pytest.mark.long
async def test_another_runtime_or_platform_is_another_environment(index: IndexSettings) -> None:
    pins = parse(["six==1.16.0"], PYTHON)
    targets = [LockTarget("3.13"), LockTarget("3.12"), LockTarget("3.13", "aarch64"), LockTarget("3.13", glibc=(2, 36))]
    locks = [await resolve(pins, PYTHON, target=target, index=index) for target in targets]
    assert len({lock.text for lock in locks}) == 1
    assert len({lock.digest for lock in locks}) == len(targets)


async def test_a_lock_installs_with_verified_hashes(index: IndexSettings, tmp_path: Path) -> None:
    lock = await lock_of(["idna==3.10", "six==1.16.0"], PYTHON, index)
    (tmp_path / "lock.txt").write_text(lock.text)
    await install(["uv", "pip", "install", "--require-hashes", "--target", "site", "-r", "lock.txt"], tmp_path, index)
    assert (tmp_path / "site" / "six.py").is_file()
    assert (tmp_path / "site" / "idna").is_dir()
    (tmp_path / "lock.txt").write_text(re.sub(r"sha256:[0-9a-f]{4}", "sha256:0000", lock.text))
    with pytest.raises(AssertionError, match=r"(?i)hash mismatch"):
        await install(
            ["uv", "pip", "install", "--require-hashes", "--target", "other", "-r", "lock.txt"], tmp_path, index
        )


async def install(argv: list[str], directory: Path, index: IndexSettings) -> None:
    tools = installed_tools()
    program = {"uv": [str(tools.uv)], "npm": [str(tools.node), str(tools.npm / "bin" / "npm-cli.js")]}[argv[0]]
    environment = {
        "HOME": str(directory),
        "UV_CACHE_DIR": str(directory / "cache"),
        "npm_config_cache": str(directory / "cache"),
    }
    if index.ca_file:
        environment |= {"SSL_CERT_FILE": str(index.ca_file), "NODE_EXTRA_CA_CERTS": str(index.ca_file)}
    if index.proxy:
        environment["HTTPS_PROXY"] = index.proxy
    python = ["--python", str(tools.python), "--no-config"] if argv[0] == "uv" else []
    done = await run(Command((*program, *argv[1:], *python), directory, environment), 60)
    assert done.code == 0, done.stderr


@pytest.mark.long
async def test_an_npm_set_locks_every_package_with_integrity(index: IndexSettings, tmp_path: Path) -> None:
    raw = ["nanoid@5.0.7", "@isaacs/cliui@8.0.2", "esbuild@0.21.5"]
    lock = await lock_of(raw, TYPESCRIPT, index)
    names = {package.name for package in lock.packages}
    assert {package.name for package in lock.packages if package.requested} == {"nanoid", "@isaacs/cliui", "esbuild"}
    assert {"string-width", "@esbuild/linux-x64"} <= names
    assert not {name for name in names if name.startswith("@esbuild/") and name != "@esbuild/linux-x64"}
    assert all(re.match(r"sha\d+-", hash_) for package in lock.packages for hash_ in package.hashes)
    content = json.loads(lock.text)
    assert content["lockfileVersion"] == 3
    assert not [path for path, entry in content["packages"].items() if "resolved" in entry]
    assert Lock.from_json(lock.to_json()) == lock


async def test_an_npm_lock_installs_with_npm_ci(index: IndexSettings, tmp_path: Path) -> None:
    pins = parse(["lodash@4.17.21"], JAVASCRIPT)
    lock = await resolve(pins, JAVASCRIPT, target=TARGETS[JAVASCRIPT], index=index)
    (tmp_path / "package.json").write_text(manifest(pins))
    (tmp_path / "package-lock.json").write_text(lock.text)
    await install(["npm", "ci", "--ignore-scripts", "--no-audit"], tmp_path, index)
    assert json.loads((tmp_path / "node_modules" / "lodash" / "package.json").read_text())["version"] == "4.17.21"
    assert lock == await lock_of(["lodash@v4.17.21"], TYPESCRIPT, index)


async def test_no_pins_need_no_index(tmp_path: Path) -> None:
    nowhere = IndexSettings(cache_dir=tmp_path, pip_index_url="http://127.0.0.1:9/simple")
    lock = await lock_of([], PYTHON, nowhere)
    assert lock.packages == ()
    assert lock.digest != (await lock_of([], JAVASCRIPT, nowhere)).digest


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("raw", "language", "words", "hint"),
    [
        (["numpy==2.1.77"], PYTHON, ["numpy has no version 2.1.77", "numpy==2.1.3", "numpy==2.2.0"], "numpy==2.1.3"),
        (["nunpy==1.0.0"], PYTHON, ["no package nunpy", "numpy"], "numpy"),
        (["numpi==2.1.0"], PYTHON, ["numpi has no version 2.1.0. Did you mean numpy?"], "numpy"),
        (["cv2==4.10.0"], PYTHON, ["no package cv2", "Did you mean opencv-python?"], "opencv-python"),
        (["sklearn==1.5.0"], PYTHON, ["Did you mean scikit-learn?"], "scikit-learn"),
        (
            ["numpy==1.26.0"],
            PYTHON,
            ["numpy==1.26.0 has wheels, but none for Python 3.13", "(`python`)", "allow_source_builds"],
            "numpy==2.1.0",
        ),
        (
            ["jieba==0.42.1"],
            PYTHON,
            [
                "jieba==0.42.1 has no wheels at all, only its source, and",
                ". Ask the operator to set allow_source_builds",
            ],
            None,
        ),
        (["lodash@4.17.99"], JAVASCRIPT, ["lodash has no version 4.17.99", "lodash@4.17.", "lodash@4.18.0"], ...),
        (["@no-such-scope-zz/x@1.0.0"], TYPESCRIPT, ["no package @no-such-scope-zz/x"], None),
        (["fsevents@2.3.3"], JAVASCRIPT, ["fsevents@2.3.3", "darwin"], ...),
    ],
)
async def test_an_error_names_each_unavailable_package_and_suggests_a_remedy(
    raw: list[str], language: Language, words: list[str], hint: Any, index: IndexSettings
) -> None:
    with pytest.raises(PackagesFailed) as caught:
        await lock_of(raw, language, index)
    assert [word for word in words if word not in caught.value.detail] == []
    if hint is not ...:
        assert [problem.hint for problem in caught.value.problems] == [hint]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("raw", "language", "words"),
    [
        (["pydantic==2.10.0", "pydantic-core==2.26.0"], PYTHON, ["pydantic==2.10.0 depends on pydantic-core==2.27.0"]),
        (["react@18.2.0", "react-dom@17.0.2"], JAVASCRIPT, ['peer react@"17.0.2" from react-dom@17.0.2']),
    ],
)
async def test_a_conflict_is_reported_in_the_resolvers_own_words(
    raw: list[str], language: Language, words: list[str], index: IndexSettings
) -> None:
    with pytest.raises(PackagesFailed, match="cannot be installed together") as caught:
        await lock_of(raw, language, index)
    detail = caught.value.detail
    assert [word for word in words if word not in detail] == []
    assert len(detail.splitlines()) <= 16
    assert "/tmp" not in detail
    assert "\x1b" not in detail


@pytest.mark.long
async def test_an_extra_that_does_not_exist_is_noted(index: IndexSettings) -> None:
    lock = await lock_of(["six[nosuch]==1.16.0"], PYTHON, index)
    assert "nosuch" in lock.notes[0]


async def test_a_machine_without_wheels_is_refused(index: IndexSettings) -> None:
    with pytest.raises(Misconfigured, match="riscv64"):
        await resolve(parse(["six==1.16.0"], PYTHON), PYTHON, target=LockTarget("3.13", "riscv64"), index=index)


async def test_pins_of_the_other_language_are_refused(index: IndexSettings) -> None:
    with pytest.raises(InvalidRequest):
        await resolve(parse(["six==1.16.0"], PYTHON), JAVASCRIPT, target=TARGETS[JAVASCRIPT], index=index)


# --- suggestions ---


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("item", "language", "hint"),
    [
        ("scipy==1.14.*", PYTHON, r"scipy==1\.14\.1"),
        ("requests[socks]>=2.31,<2.32", PYTHON, r"requests\[socks\]==2\.31\.0"),
        ("numpy=2.1.0", PYTHON, r"numpy==2\.1\.0"),
        ("six", PYTHON, r"six==\d+\.\d+\.\d+"),
        ("six@latest", PYTHON, r"six==\d+\.\d+\.\d+"),
        ("nunpy>=1", PYTHON, r"numpy==\d+\.\d+\.\d+"),
        ("nosuch-zzqq", PYTHON, None),
        ("lodash@^3", JAVASCRIPT, r"lodash@3\.10\.1"),
        ("lodash>=4,<4.17", JAVASCRIPT, r"lodash@4\.16\.6"),
        ("@types/node", JAVASCRIPT, r"@types/node@\d+\.\d+\.\d+"),
        ("lodash@latest", JAVASCRIPT, r"lodash@\d+\.\d+\.\d+"),
        ("git+https://example.org/a", PYTHON, None),
    ],
)
async def test_a_refused_pin_is_answered_with_the_newest_that_matches(
    item: str, language: Language, hint: str | None, index: IndexSettings
) -> None:
    with pytest.raises(InvalidPin) as caught:
        parse([item], language)
    (problem,) = await suggest(
        caught.value.problems, [item], language, target=TARGETS[language], index=index, timeout_s=30
    )
    assert problem.hint == hint if hint is None else re.fullmatch(hint, problem.hint or "")


async def test_suggestions_are_silent_without_an_index(tmp_path: Path) -> None:
    with pytest.raises(InvalidPin) as caught:
        parse(["numpy>=2.1.0", "pandas"], PYTHON)
    nowhere = IndexSettings(cache_dir=tmp_path, pip_index_url="http://127.0.0.1:9/simple")
    problems = await suggest(
        caught.value.problems, ["numpy>=2.1.0", "pandas"], PYTHON, target=TARGETS[PYTHON], index=nowhere, timeout_s=1
    )
    assert problems == caught.value.problems


async def test_an_import_is_answered_with_an_exact_pin(index: IndexSettings) -> None:
    modules = [
        ImportedModule("dotenv", ("load_dotenv",)),
        ImportedModule("os"),
        ImportedModule("dotenv", ("no_such_name",)),
    ]
    resolver = Resolver(index, TARGETS[PYTHON])
    exact, none, other = await find_providers(modules, PYTHON, resolver=resolver, programs=PipPrograms())
    assert re.fullmatch(r"python-dotenv==\d+\.\d+\.\d+", exact.pin or "")
    assert none == Provider()
    assert (other.pin, other.is_own) == (None, True)
    assert f"{exact.pin} has no no_such_name" in (other.problem or "")
