"""No message contains a name that esbuild has invented for a bundle. If code calls an ES module like a function, a hint
suggests the module's default export.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runners.conftest import RunnerProcess

FILES = {
    "paint/package.json": '{"name": "paint", "type": "module", "exports": "./index.js"}',
    "paint/index.js": "const paint = { red: (x) => x }; const red = 1, mix = 2, crayons = 3; export default paint;"
    "export const used = [red, mix, crayons];",
    "@scope/ids/package.json": '{"name": "@scope/ids", "type": "module", "exports": "./index.js"}',
    "@scope/ids/index.js": "const ids = 1; export const one = ids; export const two = 2;",
    "old/package.json": '{"name": "old"}',
    "old/index.js": "const text = 1; module.exports = { pick() { return text } };",
}
DEFAULT = "paint is an ES module: import it, or use require('paint').default"
NAMED = "@scope/ids is an ES module: take what you need of its exports, one, two"
CASES = {
    "a member of a required ES module": (
        "const paint = require('paint')", "paint.red(1)", "paint.red is not a function", DEFAULT,
    ),
    "a required ES module": ("const paint = require('paint')", "paint(1)", "paint is not a function", DEFAULT),
    "one that is constructed": ("const paint = require('paint')", "new paint()", "paint is not a constructor", DEFAULT),
    "one that is taken apart": ("const { red } = require('paint')", "red(1)", "red is not a function", DEFAULT),
    "one that is required in place": ("", "require('paint').red(1)", "require(...).red is not a function", DEFAULT),
    "one over several lines": ("const paint = require('paint')", "paint\n.red\n(1)", "paint.red is not a function", DEFAULT),
    "one without a default export": ("const ids = require('@scope/ids')", "ids()", "ids is not a function", NAMED),
    "one that is imported while it runs": (
        "const load = async () => { const paint = await import('paint'); return paint.red(1) }", "load()",
        "paint.red is not a function", DEFAULT,
    ),
    "a namespace": ("import * as paint from 'paint'", "paint.red(1)", "paint.red is not a function", None),
    "a default import": ("import old from 'old'", "old.nope(1)", "old.nope is not a function", None),
    "a named import": ("import { nope } from 'old'", "nope(1)", "nope is not a function", None),
    "a renamed import": ("import { nope as no } from 'old'", "new no()", "no is not a constructor", None),
    "a member that a module in place lacks": ("", "require('old').nope()", "require(...).nope is not a function", None),
    "a name of one's own": (
        "require('old'); const text = {}", "text.a.b", "Cannot read properties of undefined (reading 'b')", None,
    ),
    "one that is not there yet": (
        "require('paint'); const f = () => { g(); const crayons = 1; function g() { return crayons } }", "f()",
        "Cannot access 'crayons' before initialization", None,
    ),
    "names that only look made up": (
        "require('old'); const import_x = {}, text2 = {}", "import_x.yy(text2)", "import_x.yy is not a function", None,
    ),
    "text of one's own": (
        "const paint = require('paint')", "(() => { throw new Error('paint2: ' + typeof paint) })()", "paint2: object", None,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("packages")
    for name, content in FILES.items():
        path = root / "node_modules" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", CASES)
def test_a_message_has_the_names_of_the_code(packages: Path, load: Callable[..., RunnerProcess], name: str) -> None:
    before, expression, message, hint = CASES[name]
    code = f"{before};\nexport const evaluate = async (i, o, t) => {{ return {expression} }}"
    answer = load(code, arguments=("--packages", str(packages))).call({}, "", None)
    error = json.loads(answer.body)["error"]
    assert (error["message"], error["hint"]) == (message, hint)
    assert message in error["traceback"]
