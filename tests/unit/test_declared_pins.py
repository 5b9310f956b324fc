"""The exact versions that a project's own files pin become pins of an evaluator."""

import json
from pathlib import Path

import pytest

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.packages.declared import (
    declared_imports,
    declared_pins,
    declared_ranges,
    excerpt,
    name_of_pin,
)
from evaluator_host.platform.evaluators.evaluator_files import read_evaluator
from evaluator_host.types.evaluator import Language

LOCK = {
    "lockfileVersion": 3,
    "packages": {
        "": {},
        "node_modules/fastest-levenshtein": {"version": "1.0.15"},
        "node_modules/a/node_modules/fastest-levenshtein": {"version": "1.0.1"},
        "node_modules/own": {"resolved": "../own", "link": True},
    },
}
PNPM = """lockfileVersion: '9.0'

importers:

  .:
    dependencies:
      '@scope/name':
        specifier: ^2.0.0
        version: 2.1.0
      alias:
        specifier: npm:ms@^2.0.0
        version: ms@2.1.3
      autoevals:
        specifier: ^0.0.64
        version: 0.0.130(zod@3.25.1)
      own:
        specifier: workspace:*
        version: link:../own

packages:

  ms@2.1.3:
    resolution: {integrity: sha512-x}
"""
YARN = """# yarn lockfile v1


"@scope/name@^2.0.0":
  version "2.1.0"
  dependencies:
    autoevals "^0.0.1"

"alias@npm:ms@^2.0.0":
  version "2.1.3"

autoevals@^0.0.64, autoevals@^0.0.80:
  version "0.0.130"

ms@^2.0.0:
  version "2.1.3"

two@^1.0.0:
  version "1.0.0"

two@^2.0.0:
  version "2.0.0"
"""
YARN_BERRY = """__metadata:
  version: 8

"@scope/name@npm:^2.0.0":
  version: 2.1.0
  resolution: "@scope/name@npm:2.1.0"

"alias@npm:ms@^2.0.0":
  version: 2.1.3

"autoevals@npm:^0.0.64, autoevals@npm:^0.0.80":
  version: 0.0.130

"ms@npm:>=2 <3":
  version: 2.1.3

"own@workspace:.":
  version: 0.0.0-use.local
"""
BUN = """{
  "lockfileVersion": 1,
  "packages": {
    "@scope/name": ["@scope/name@2.1.0", "", {}, "sha512-x"],
    "alias": ["ms@2.1.3", "", {}, "sha512-x"],
    "autoevals": ["autoevals@0.0.130", "", { "dependencies": { "ms": "^2.0.0" } }, "sha512-x"],
    "autoevals/ms": ["ms@2.1.2", "", {}, "sha512-x"],
  }
}
"""
SCORER = """import { distance } from "fastest-levenshtein";
export const sim = ({ output, expected }) => 1 - distance(output, expected) / 10;
"""


@pytest.mark.parametrize(
    ("path", "text", "pins"),
    [
        ("package-lock.json", json.dumps(LOCK), {"fastest-levenshtein@1.0.15"}),
        ("package-lock.json", json.dumps({"dependencies": {"zod": {"version": "3.25.1"}}}), {"zod@3.25.1"}),
        ("package.json", json.dumps({"dependencies": {"zod": "^4.0.0", "ms": "2.1.3"}}), {"ms@2.1.3"}),
        ("pnpm-lock.yaml", PNPM, {"autoevals@0.0.130", "@scope/name@2.1.0"}),
        ("yarn.lock", YARN, {"autoevals@0.0.130", "@scope/name@2.1.0", "ms@2.1.3"}),
        ("yarn.lock", YARN_BERRY, {"autoevals@0.0.130", "@scope/name@2.1.0", "ms@2.1.3"}),
        ("bun.lock", BUN, {"autoevals@0.0.130", "@scope/name@2.1.0"}),
        ("package.json", "{", set()),
        ("package.json", "[1]", set()),
        ("other.json", json.dumps(LOCK), set()),
    ],
)
def test_versions_of_npm(path: str, text: str, pins: set[str]) -> None:
    assert {one.pin for one in declared_pins({path: text}, Language.TYPESCRIPT).values()} == pins


@pytest.mark.parametrize(
    ("path", "text", "pins"),
    [
        ("requirements.txt", "rapidfuzz==3.13.0  # why\nnumpy>=2\nrequests[socks]==2.32.0\n", {"rapidfuzz==3.13.0", "requests==2.32.0"}),
        ("uv.lock", '[[package]]\nname = "rapidfuzz"\nversion = "3.13.0"\n', {"rapidfuzz==3.13.0"}),
        ("poetry.lock", '[[package]]\nname = "rapidfuzz"\nversion = "3.13.0"\n', {"rapidfuzz==3.13.0"}),
        ("pylock.toml", '[[packages]]\nname = "rapidfuzz"\nversion = "3.13.0"\n', {"rapidfuzz==3.13.0"}),
        ("uv.lock", '[[package]]\r\nname = "a"\r\nversion = "1.0"\r\n\r\n[[package]]\nversion = "2.0"\n', {"a==1.0"}),
        ("uv.lock", "[[", set()),
        ("requirements.txt", 'a==1.0; python_version < "3.9"\na==2.0\nb==1.0\nb==1.0\n', {"b==1.0"}),
    ],
)  # fmt: skip
def test_versions_of_pip(path: str, text: str, pins: set[str]) -> None:
    assert {one.pin for one in declared_pins({path: text}, Language.PYTHON).values()} == pins


@pytest.mark.parametrize(
    ("wanted", "is_range"),
    [
        *((one, True) for one in ("^4.0.0", "~1.2", ">=1.2.0 <3", "1.x || 2.x", "1.0.0 - 1.2.0", "= 1.2.3", "v1.2")),
        *((one, False) for one in ("4.0.0", "latest", "*", "workspace:^1.0.0", "npm:ms@^2.0.0", "file:../own", "")),
    ],
)
def test_ranges_of_npm(wanted: str, is_range: bool) -> None:
    files = {"evals/package.json": '{"dependencies": {"zod": "^1"}}', "package.json": json.dumps({"dependencies": {"zod": wanted}})}  # fmt: skip
    assert declared_ranges(files, Language.TYPESCRIPT) == ({"zod": wanted} if is_range else {})
    assert declared_ranges(files, Language.PYTHON) == {}


def test_each_package_file_may_have_a_range() -> None:
    files = {"evals/package.json": '{"dependencies": {"ms": "^1.0", "zod": "^1"}}', "package.json": '{"dependencies": {"zod": "^4"}}'}  # fmt: skip
    assert declared_ranges(files, Language.TYPESCRIPT) == {"ms": "^1.0", "zod": "^4"}


@pytest.mark.parametrize("text", ["{", "[1]", '{"dependencies": [1]}', '{"dependencies": {"zod": 1}}'])
def test_a_broken_package_file_has_no_ranges(text: str) -> None:
    assert declared_ranges({"package.json": text}, Language.JAVASCRIPT) == {}


@pytest.mark.parametrize(
    "wanted", ["1" * 400 + "!", "1 " * 400 + "!", "1||" * 400 + "!", ">1" * 400 + "!", "1 - " * 400]
)
def test_a_text_like_many_ranges_is_refused_at_once(wanted: str) -> None:
    files = {"package.json": json.dumps({"dependencies": dict.fromkeys(map(str, range(1000)), wanted)})}
    assert declared_ranges(files, Language.JAVASCRIPT) == {}


def test_a_lock_file_counts_before_the_package_file() -> None:
    files = {
        "package.json": json.dumps({"dependencies": {"fastest-levenshtein": "1.0.16"}}),
        "package-lock.json": json.dumps(LOCK),
    }
    [found] = declared_imports(files, [SCORER], Language.JAVASCRIPT)
    assert (found.pin, found.path) == ("fastest-levenshtein@1.0.15", "package-lock.json")
    assert declared_imports(files, ["import 'zod'"], Language.JAVASCRIPT) == []


@pytest.mark.parametrize(
    ("pin", "name"),
    [("numpy==2.1.0", "numpy"), ("@a/b@1.2.3", "@a/b"), ("requests[socks]==2.32.0", "requests"), ("auto", "auto")],
)
def test_name_of_pin(pin: str, name: str) -> None:
    assert name_of_pin(pin) == name


@pytest.mark.parametrize(
    ("packages", "pins", "told"),
    [
        (["auto"], ("auto", "fastest-levenshtein@1.0.15"), "fastest-levenshtein@1.0.15 is the version in package-lock.json"),
        ([], (), "package-lock.json pins fastest-levenshtein@1.0.15: to use this version, add --package fastest-levenshtein@1.0.15"),
        (["fastest-levenshtein@1.0.16"], ("fastest-levenshtein@1.0.16",), ""),
    ],
)  # fmt: skip
def test_the_lock_file_beside_an_evaluator(
    tmp_path: Path, packages: list[str], pins: tuple[str, ...], told: str
) -> None:
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "package-lock.json").write_text(json.dumps(LOCK))
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/sim.js").write_text(SCORER)
    found = read_evaluator(tmp_path / "evals/sim.js", None, host=Settings(data_dir=tmp_path), packages=packages)
    assert found.evaluator.packages == pins
    assert "\n".join(found.told) == told


def test_the_lock_file_of_a_workspace_pins_what_its_packages_leave_open(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "pnpm-lock.yaml").write_text(PNPM.replace("autoevals", "fastest-levenshtein").replace("alias", "zod"))
    evals = tmp_path / "packages/evals"
    evals.mkdir(parents=True)
    (evals / "package.json").write_text(
        json.dumps({"dependencies": {"fastest-levenshtein": "^0.0.64", "zod": "3.25.1"}})
    )
    (evals / "sim.js").write_text(f'import "zod";\n{SCORER}')
    found = read_evaluator(evals / "sim.js", None, host=Settings(data_dir=tmp_path), packages=["auto"])
    assert found.evaluator.packages == ("auto", "fastest-levenshtein@0.0.130", "zod@3.25.1")


def test_the_ranges_of_the_nearest_package_file_are_sent(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "package.json").write_text(
        '{"dependencies": {"zod": "^3.0", "ms": "^2.0", "ai": "^5.0", "own": "^1.0"}}'
    )
    (tmp_path / "pnpm-lock.yaml").write_text(PNPM)
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/package.json").write_text('{"dependencies": {"zod": "^4.0"}}')
    (tmp_path / "evals/near.ts").write_text(
        "import 'ai';\nimport 'autoevals';\nimport 'ms';\nimport 'own';\nimport 'zod';\n"
    )
    file = tmp_path / "evals/near.ts"
    sent = read_evaluator(file, None, host=Settings(data_dir=tmp_path), packages=["auto"]).evaluator
    assert declared_ranges(sent.files, Language.TYPESCRIPT) == {"ms": "^2.0", "zod": "^4.0"}
    assert list(declared_pins(sent.files, Language.TYPESCRIPT)) == ["autoevals"]
    assert read_evaluator(file, None, host=Settings(data_dir=tmp_path)).evaluator.files == {}


@pytest.mark.parametrize(
    ("path", "text", "language"),
    [
        ("package-lock.json", json.dumps(LOCK), Language.JAVASCRIPT),
        ("package.json", json.dumps({"dependencies": {"@a/b": "4.0.0", "ms": "2.1.3"}}), Language.JAVASCRIPT),
        ("evals/pnpm-lock.yaml", PNPM, Language.JAVASCRIPT),
        ("yarn.lock", YARN, Language.JAVASCRIPT),
        ("bun.lock", BUN, Language.JAVASCRIPT),
        ("uv.lock", '[[package]]\nname = "Numpy"\nversion = "2.1.0"\n', Language.PYTHON),
        ("pylock.toml", '[[packages]]\nname = "numpy"\nversion = "2.1.0"\n', Language.PYTHON),
        ("requirements.txt", "numpy==2.1.0\nruamel.yaml==0.18.6\n", Language.PYTHON),
    ],
)
def test_an_excerpt_pins_the_same_versions(path: str, text: str, language: Language) -> None:
    pins = declared_pins({path: text}, language)
    assert pins
    assert declared_pins(excerpt(pins.values(), {}), language) == pins


def test_of_packages_of_platforms_the_version_is_sent(tmp_path: Path) -> None:
    (tmp_path / "pnpm-lock.yaml").write_text(PNPM)
    file = tmp_path / "near.eval.ts"
    file.write_text("import { Levenshtein } from 'autoevals';\nexport const near = Levenshtein;\n")
    found = read_evaluator(file, None, host=Settings(data_dir=tmp_path), packages=["auto"])
    assert found.evaluator.packages == ("auto",)
    assert list(declared_pins(found.evaluator.files, Language.TYPESCRIPT)) == ["autoevals"]
    assert found.declared == {"autoevals": "autoevals@0.0.130"}
    assert read_evaluator(file, None, host=Settings(data_dir=tmp_path)).evaluator.files == {}


def test_packages_of_platforms_are_not_taken(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("braintrust==0.0.1\nopenai==1.0.0\n")
    (tmp_path / "exact.py").write_text(
        "import braintrust\nimport openai\ndef evaluate(inputs, outputs, trace):\n    return 1\n"
    )
    found = read_evaluator(tmp_path / "exact.py", None, host=Settings(data_dir=tmp_path), packages=["auto"])
    assert found.evaluator.packages == ("auto",)
    assert found.evaluator.files == {"requirements.txt": "braintrust==0.0.1\nopenai==1.0.0\n"}
    assert found.declared == {"braintrust": "braintrust==0.0.1", "openai": "openai==1.0.0"}


@pytest.mark.sampled(4)
@pytest.mark.timeout(60)
@pytest.mark.parametrize("path", ["pnpm-lock.yaml", "yarn.lock", "bun.lock"])
@pytest.mark.parametrize("piece", [" ", "a", "@", '"', "a@", '  "a": ["a', "  a:\n    specifier: b\n", "a@b:\n", "\n"])
def test_hostile_locks_of_npm_packages_pin_nothing(path: str, piece: str) -> None:
    assert declared_pins({path: piece * (1_000_000 // len(piece))}, Language.TYPESCRIPT) == {}


@pytest.mark.timeout(60)  # a search whose time is quadratic would take much longer
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("uv.lock", "a" + ".a" * 500_000 + "=1\n[b]"),
        ("uv.lock", '[[package]]\nname = "a' * 50_000),
        ("requirements.txt", "a[\n" * 340_000),
        ("requirements.txt", "a" * 1_000_000),
    ],
    ids=["keys with dots", "names without an end", "brackets", "a long name"],
)
def test_hostile_files_pin_nothing(path: str, text: str) -> None:
    assert declared_pins({path: text}, Language.PYTHON) == {}


def test_a_file_with_very_many_packages_is_read_in_part() -> None:
    text = "".join(f"a{number}==1.0\n" for number in range(50_000))
    assert len(declared_pins({"requirements.txt": text}, Language.PYTHON)) == 5_000
