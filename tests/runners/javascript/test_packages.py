"""Packages inside and outside a bundle find their own files, and can be imported in every way, also by names that are
known only at run time.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runners.conftest import RunnerProcess

# (module (func (export "seven") (result i32) i32.const 7))
WASM = bytes.fromhex("0061736d010000000105016000017f03020100070901057365766" + "56e00000a06010400" + "41070b")

FILES: dict[str, str | bytes] = {
    "own-files/package.json": json.dumps({"name": "own-files", "main": "lib/index.js"}),
    "own-files/lib/index.js": (
        "const fs = require('fs'); exports.text = fs.readFileSync(__dirname + '/../data.txt', 'utf8');\n"
        "exports.name = __filename; exports.seven = () => new WebAssembly.Instance(new WebAssembly.Module("
        "fs.readFileSync(require('path').join(__dirname, '..', 'seven.wasm')))).exports.seven();\n"
        "exports.later = (name) => require(name);"
    ),
    "own-files/lib/finds.js": (
        "exports.sibling = require.resolve('./index.js'); exports.eight = require('../facts.json').eight;\n"
        "try { require.resolve('./gone.js') } catch (error) { exports.gone = error.code }"
    ),
    "own-files/data.txt": "mine",
    "own-files/facts.json": '{"eight": 8}',
    "own-files/large.json": json.dumps({str(number): number for number in range(20_000)}),
    "own-files/seven.wasm": WASM,
    "modern/package.json": json.dumps(
        {
            "name": "modern",
            "type": "module",
            "exports": {".": {"import": "./index.js"}, "./sub/*": "./parts/*.js", "./seven.wasm": "./seven.wasm"},
        }
    ),
    "modern/index.js": (
        "import { readFileSync } from 'node:fs'; import { createRequire } from 'node:module';\n"
        "import facts from './facts.json' with { type: 'json' };\n"
        "export const text = readFileSync(new URL('./data.txt', import.meta.url), 'utf8');\n"
        "export const nine = createRequire(import.meta.url)('./nine.cjs'); export default facts.eight;"
    ),
    "modern/facts.json": '{"eight": 8}',
    "modern/data.txt": "yours",
    "modern/nine.cjs": "module.exports = 9; Buffer.from('x');",
    "modern/parts/ten.js": "export const ten = 10;",
    "modern/seven.wasm": WASM,
    "@scope/counter/package.json": json.dumps({"name": "@scope/counter"}),
    "@scope/counter/index.js": "let count = 0; module.exports = () => ++count;",
    "broken/package.json": json.dumps({"name": "broken", "main": "broken.node"}),
    "broken/broken.node": "no shared library",
}

# for each form of import that the bundler finds in code: an expression and its value; imports whose names are known
# only at run time are tested separately, because a bundle contains everything that the bundler finds
SEEN = {
    "a file beside a CommonJS module": ('require("own-files").text', "mine"),
    "WebAssembly beside a CommonJS module": ('require("own-files").seven()', 7),
    "a file beside an ES module": ('(await import("modern")).text', "yours"),
    "createRequire in an ES module": ('(await import("modern")).nine', 9),
    "an ES module that imports JSON": ('(await import("modern")).default', 8),
    "an exports map": ('(await import("modern/sub/ten")).ten', 10),
    "JSON of a package": ('require("own-files/facts.json").eight', 8),
    "JSON beside a CommonJS module": ('require("own-files/lib/finds.js").eight', 8),
    "require.resolve of a file beside a module": (
        'require(require("own-files/lib/finds.js").sibling).text + require("own-files/lib/finds.js").gone',
        "mineMODULE_NOT_FOUND",
    ),
    "require.resolve": ('require.resolve("own-files").endsWith("/own-files/lib/index.js")', True),
    "what a package requires at run time": ('require("own-files").later("@scope/" + "counter")()', 1),
    "the evaluator's own place": ('[__dirname, __filename].join(" ")', "/ /evaluator.js"),
}
AT_RUN_TIME = {
    "a name": ('require(["own", "files"].join("-")).text', "mine"),
    "an ES module": ('(await import("mod" + i.ern)).text', "yours"),
    "an exports map": ('(await import("modern/sub/" + ["ten"][0])).ten', 10),
    "JSON": ('require("own-files/" + ["facts.json"][0]).eight', 8),
    "a builtin": ('require("node:" + ["path"][0]).basename("/a/b")', "b"),
    "builtins with paths": (
        '(await import("inspector/promises"), [typeof require("inspector/promises").Session, typeof require("path/posix").join].join())',
        "function,function",
    ),
}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("packages")
    for name, content in FILES.items():
        path = root / "node_modules" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def value_of(runner: RunnerProcess) -> Any:
    answer = runner.call({"ern": "ern"}, "", None)
    assert answer.type == "result", answer
    return json.loads(answer.body)["value"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ways", [SEEN, AT_RUN_TIME], ids=["seen by the bundler", "known at run time"])
@pytest.mark.slow
def test_a_row_reaches_its_packages(
    ways: dict[str, tuple[str, object]], packages: Path, load: Callable[..., RunnerProcess]
) -> None:
    values = ",\n".join(f"{json.dumps(name)}: {expression}" for name, (expression, _) in ways.items())
    runner = load(f"exports.evaluate = async (i, o, t) => ({{{values}}});", arguments=("--packages", str(packages)))
    expected = {name: value for name, (_, value) in ways.items()}
    assert [value_of(runner), value_of(runner)] == [expected, expected]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("language", ["javascript", "typescript"])
@pytest.mark.slow
def test_static_imports_of_every_form(packages: Path, load: Callable[..., RunnerProcess], language: str) -> None:
    code = (
        'import own, { text } from "own-files"; import * as all from "own-files"; import count from "@scope/counter";\n'
        'import * as counter from "@scope/counter"; import eight, { text as other } from "modern";\n'
        'import wasm from "modern/seven.wasm"; import { dirname } from "node:path";\n'
        "const seven = new WebAssembly.Instance(new WebAssembly.Module(wasm)).exports.seven();\n"
        "export const evaluate = (i, o, t) => [own.text, text, all.text, count(), counter(), eight, other, seven,\n"
        "  dirname(import.meta.url)];"
    )
    runner = load(code, language=language, arguments=("--packages", str(packages)))
    expected = ["mine", "mine", "mine", 1, 2, 8, "yours", 7, "file://"]
    assert [value_of(runner), value_of(runner)] == [expected, expected]


def test_imports_as_deno_has_them(packages: Path, load: Callable[..., RunnerProcess]) -> None:
    code = (
        'import { text } from "npm:own-files@1.2.3"; import count from "npm:@scope/counter";\n'
        'import facts from "npm:own-files@1/facts.json";\n'
        "export const evaluate = (i, o, t) => [text, count(), facts.eight];"
    )
    runner = load(code, language="typescript", arguments=("--packages", str(packages)))
    assert value_of(runner) == ["mine", 1, 8]


@pytest.mark.slow
def test_top_level_await_has_places_too(packages: Path, load: Callable[..., RunnerProcess]) -> None:
    code = 'const it = await import("modern");\nexport const evaluate = (i, o, t) => it.text;'
    assert value_of(load(code, arguments=("--packages", str(packages)))) == "yours"


def test_a_module_that_cannot_be_opened_is_reported(packages: Path, load: Callable[..., RunnerProcess]) -> None:
    ways = {
        'require("ab".concat("sent"))': "Cannot find module 'absent'",
        'require("own-files/".concat("absent.js"))': "Cannot find module 'own-files/absent.js'",
        'require("broken")': "file too short",
    }
    functions = ", ".join(f"() => {way}" for way in ways)
    code = f"const ways = [{functions}]; exports.evaluate = (i, o, t) => ways[i.way]();"
    runner = load(code, arguments=("--packages", str(packages)))
    for number, message in enumerate(ways.values()):
        answer = runner.call({"way": number}, "", None)
        assert answer.type == "failed"
        error = json.loads(answer.body)["error"]
        assert message in error["message"]
        assert (error["code"], error["type"], error["line"]) == ("user_exception", "Error", 1)


IMPORTS = {
    "by default": "import data from 'own-files/large.json';",
    "by name": "import * as data from 'own-files/large.json';",
    "with its type": "import data from 'own-files/large.json' with { type: 'json' };\nawait 0;",
    "by require": "const data = require('own-files/large.json');",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("head", IMPORTS.values(), ids=IMPORTS)
@pytest.mark.slow
def test_data_of_packages_is_not_made_into_code(packages: Path, start: Callable[..., RunnerProcess], head: str) -> None:
    runner = start("--packages", str(packages))
    answer = runner.load(f"{head}\nexport const evaluate = (i, o, t) => data[19_999];", language="javascript")
    assert answer.type == "loaded", answer
    assert len(json.loads(answer.body)["bundle"]["text"]) < 20_000
    assert value_of(runner) == 19_999
