"""The runner reports missing modules even if the code catches the error of `require` or `import`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runners.conftest import RunnerProcess, body

ROW = "function evaluate(inputs, outputs, trace) { %s }"
CAUGHT = [
    ("try { require('lodashx') } catch {}\n" + ROW % "return 0", [("lodashx", 1)]),
    ("\n" + ROW % "try { return require('lodashx/fp').size(outputs) } catch { return 0 }", [("lodashx/fp", 2)]),
    ("async " + ROW % "\n try { await import('lodashx'); return 1 } catch { return 0 }", [("lodashx", 2)]),
    ("async " + ROW % "return import('lodashx').then(() => 1, () => 0)", [("lodashx", 1)]),
    (ROW % "try { return require('./judge')(outputs) } catch { return 0 }", [("./judge", 1)]),
    (ROW % "const name = 'lod' + 'ashx'; try { require(name) } catch {} return 0", [("lodashx", 1)]),
    (ROW % "require('node:fs'); require('path'); return 0", []),
]


def told(answer: dict) -> list[tuple[str, int]]:
    return [(one["module"], one["line"]) for one in answer.get("missing_imports", [])]


@pytest.mark.sampled(16)
@pytest.mark.parametrize(("code", "missing"), CAUGHT)
@pytest.mark.parametrize("language", ["javascript", "typescript"])
@pytest.mark.slow
def test_a_module_whose_absence_is_caught(
    start: Callable[..., RunnerProcess], code: str, missing: list[tuple[str, int]], language: str
) -> None:
    runner = start()
    assert runner.load(code, language=language).type == "loaded"
    for share in (None, "a"):
        answer = runner.call({}, "x", None, share=share)
        assert (answer.type, body(answer)["value"], told(body(answer))) == ("result", 0, missing)


def test_a_module_whose_absence_fails_the_load_or_the_row(start: Callable[..., RunnerProcess]) -> None:
    answer = start().load("const a = require('lodashx')\n" + ROW % "return 1", language="javascript")
    assert (answer.type, told(body(answer))) == ("load_failed", [("lodashx", 1)])
    runner = start()
    runner.load(ROW % "return require('lodashx')", language="javascript")
    answer = runner.call({}, "x", None)
    assert (answer.type, told(body(answer))) == ("failed", [("lodashx", 1)])


def test_imports_that_fail_inside_a_package_are_not_reported(
    start: Callable[..., RunnerProcess], tmp_path: Path
) -> None:
    package = tmp_path / "node_modules" / "tries"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "tries", "main": "index.js"}')
    (package / "index.js").write_text(
        "let fast = 1; try { require('bufferutilx') } catch { fast = 0 } exports.fast = fast"
    )
    runner = start("--packages", str(tmp_path))
    loaded = runner.load("const { fast } = require('tries');\n" + ROW % "return fast", language="javascript")
    assert (loaded.type, told(body(loaded))) == ("loaded", [])
    answer = runner.call({}, "x", None)
    assert (body(answer)["value"], told(body(answer))) == (0, [])


KNOWN = {"zod": "zod", "lodash": "lodash", "@scope/known": "@scope/known", "openai": "openai"}
NOT_NEEDED = [
    "import { z } from 'zod';\nconst Row = z.object({ a: z.string().min(1) });\nexport const judge = (row) => Row.parse(row);\n",
    "import z, { ZodError as Fault } from 'zod/v4';\nclass Mine extends Fault { of() { return new Fault() } }\n",
    "import * as all from '@scope/known/sub';\nexport function other() { return all.one === 1 }\n",
    "import 'zod';\nimport OpenAI from 'openai';\nconst client = new OpenAI();\n",
    "const _ = require('lodash');\nfunction other(list) { return _.size(list) }\n",
    "const { size } = require('lodash');\n",
]
NEEDED = [
    ("import { z } from 'zod';\n", "return z ? 1 : 0"),
    ("import { z } from 'zod';\nconst ok = !z;\n", "return ok ? 1 : 0"),
    ("import { z } from 'zod';\nconst made = { z };\n", "return 'z' in made"),
    (
        "import { z } from 'zod';\nfunction inner() { return typeof z }\nconst outer = () => inner();\n",
        "return outer() === 'function'",
    ),
    ("import { z } from 'zod';\nconst table = new Map();\ntable.set('z', z.string);\n", "return table.size"),
    ("import { z } from 'zod';\nconst table = [];\nconst length = table.push(z.string);\n", "return table.length"),
    ("import { z } from 'zod';\nlet count = 0;\nif (z.config) count = 1;\n", "return count"),
    ("import { z } from 'zod';\nlet count = 0;\nconst other = z.config && (count = 1);\n", "return count"),
    (
        "import { z } from 'zod';\nlet count = 0;\nfunction add(one) { count += 1; return one }\nconst other = add(z.config);\n",
        "return count",
    ),
    ("import { z } from 'zod';\n", "return eval('typeof z') === 'function'"),
    ("import { z } from 'zod';\nimport other from 'unheard-of';\n", "return 1"),
    ("const _ = require('lodash');\n", "return _ ? 1 : 0"),
    ("const _ = require('lodash');\nconst size = _.size;\n", "return size ? 1 : 0"),
    ("var _ = require('lodash');\n", "return this?._ ? 1 : 0"),
    ("var _ = require('lodash');\n", "return this?.['_'] ? 1 : 0"),
    ("var _ = require('lodash');\nfunction self() { return this }\n", "return self()._ ? 1 : 0"),
    ("var _ = require('lodash');\nexports._ = _;\n", "return exports._ ? 1 : 0"),
    ("const _ = require('lodash');\nclass Kept { static one = _ ? 1 : 0 }\n", "return Kept.one"),
    (
        "import { z } from 'zod';\nconst made = (name, one) => one;\nconst same = made('same', () => (z ? 1 : 0));\n",
        "return same()",
    ),
    ("const _ = require('lodash');\nconst kept = `${1}` + (() => _)();\n", "return 1"),
]


OF_FILES = {
    "kept.js": "import { z } from 'zod'; export const Row = z.object({}); export const one = 1;",
    "all.js": "export * from './kept.js'; export default { two: 2 };",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("code", "loads"),
    [
        ("import { one } from './kept.js'; export function evaluate(inputs, outputs, trace) { return one }", True),
        ("import all from './all.js'; export function evaluate(inputs, outputs, trace) { return all.two }", True),
        (
            "import { Row } from './kept.js'; export function evaluate(inputs, outputs, trace) { return Row ? 1 : 0 }",
            False,
        ),
        (
            "import * as kept from './kept.js'; export function evaluate(inputs, outputs, trace) { return Object.keys(kept).length }",
            False,
        ),
        (
            "import * as all from './all.js'; const name = 'R' + 'ow'; export function evaluate(inputs, outputs, trace) { return all[name] }",
            False,
        ),
        (
            "const kept = require('./kept.js'); function evaluate(inputs, outputs, trace) { return kept.Row ? 1 : 0 }",
            False,
        ),
    ],
)
def test_a_file_may_keep_a_placeholder_that_the_entry_does_not_reach(
    start: Callable[..., RunnerProcess], code: str, loads: bool
) -> None:
    loaded = start().load(code, language="javascript", body={"known": KNOWN, "files": OF_FILES, "path": "score.js"})
    assert loaded.type == ("loaded" if loads else "load_failed"), loaded


@pytest.mark.sampled(6)
@pytest.mark.parametrize("code", NOT_NEEDED)
@pytest.mark.slow
def test_a_known_package_that_the_entry_does_not_need_is_not_loaded(
    start: Callable[..., RunnerProcess], code: str
) -> None:
    row = ROW % "return outputs === 'x' ? 1 : 0"
    code += row if "require" in code else f"export {row}"
    for check in (False, True):
        if check and "openai" in code:
            continue  # a check also reports model clients, which this test does not expect
        runner = start()
        loaded = runner.load(code, language="typescript", body={"known": KNOWN}, check=check)
        assert (loaded.type, told(body(loaded))) == ("loaded", []), loaded
        assert len(body(loaded)["not_loaded"]) == 1
        assert body(runner.call({}, "x", None))["value"] == 1
    again = start()
    loaded = again.load(code, language="typescript", body={"known": KNOWN, "bundle": body(loaded)["bundle"]})
    assert (loaded.type, len(body(loaded)["not_loaded"])) == ("loaded", 1)
    assert body(again.call({}, "y", None))["value"] == 0
    assert start().load(code, language="typescript").type == "load_failed"


@pytest.mark.sampled(21)
@pytest.mark.parametrize(("code", "row"), NEEDED)
def test_a_known_package_that_the_entry_may_reach_stops_it(
    start: Callable[..., RunnerProcess], code: str, row: str
) -> None:
    code += ROW % row if "require" in code else f"export {ROW % row}"
    loaded = start().load(code, language="javascript", body={"known": KNOWN})
    assert loaded.type == "load_failed", loaded
    assert "Cannot find module" in body(loaded)["error"]["message"]
    assert told(body(loaded))


def test_comments_in_a_package_hide_nothing(start: Callable[..., RunnerProcess], tmp_path: Path) -> None:
    package = tmp_path / "node_modules" / "told"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "told", "main": "index.mjs"}')
    (package / "index.mjs").write_text(
        "/* @__NO_SIDE_EFFECTS__ */\nexport function one() { return this ?? 1 }\n//! licensed\nexport const two = 2;\n"
    )
    code = "import { one } from 'told';\nimport { z } from 'zod';\n" + f"export {ROW % 'return one()'}"
    loaded = start("--packages", str(tmp_path)).load(code, language="javascript", body={"known": KNOWN})
    assert (loaded.type, body(loaded)["not_loaded"]) == ("loaded", ["zod"]), loaded


@pytest.mark.parametrize(
    ("made", "key"),
    [
        ("new OpenAI()", "'no-key-in-a-sandbox'"),
        ("new OpenAI({ apiKey: process.env.OPENAI_API_KEY })", "'no-key-in-a-sandbox'"),
        ("new OpenAI({ apiKey: process.env.OPENAI_API_KEY ?? '' })", "'no-key-in-a-sandbox'"),
        ("new OpenAI({ apiKey: process.env['OPENAI_API_KEY'] || '' })", "'no-key-in-a-sandbox'"),
        ("new OpenAI({ apiKey: process.env.OPENAI_API_KEY ?? 'none' })", "'none'"),
        ("process.env.OPENAI_API_KEY ? new OpenAI() : { apiKey: 'none' }", "'none'"),
    ],
)
def test_a_client_has_a_key_unless_the_code_can_do_without(
    start: Callable[..., RunnerProcess], tmp_path: Path, made: str, key: str
) -> None:
    package = tmp_path / "node_modules" / "openai"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "openai", "main": "index.mjs"}')
    (package / "index.mjs").write_text(
        "export default class { constructor({ apiKey = process.env.OPENAI_API_KEY } = {}) {"
        " if (!apiKey) throw new Error('no key'); this.apiKey = apiKey } }\n"
    )
    runner = start("--packages", str(tmp_path))
    code = f"import OpenAI from 'openai';\nconst client = {made};\nexport {ROW % f'return client.apiKey === {key}'}"
    assert runner.load(code, language="javascript").type == "loaded"
    assert body(runner.call({}, "x", None))["value"] is True


PARAMS = "function evaluate(appParams, inputs, output, correctAnswer) { return eval(output) }"


def test_keys_of_app_params_that_are_read_in_vain(start: Callable[..., RunnerProcess]) -> None:
    runner = start()
    assert runner.load(PARAMS, language="javascript").header["contract"] == "evaluate-v1"
    for expression, value, unset in (
        ("appParams.a", 1, []),
        ("appParams.b ?? 7", 7, ["b"]),
        ("(({ a, c = 3 }) => a + c)(appParams)", 4, ["c"]),
        ("'b' in appParams ? 1 : 0", 0, ["b"]),
        ("Object.keys(appParams).length + Object.keys({ ...appParams }).length", 2, []),
        ("JSON.stringify(appParams).length", 7, []),
        ("appParams instanceof Object ? 1 : 0", 1, []),
        ("String(appParams).length", 15, []),
        ("structuredClone(appParams).a", 1, []),
        ("appParams.b = 5", 5, []),
        ("inputs.b ?? 2", 2, []),
    ):
        for share in (None, "a"):
            found = body(runner.call({"a": 1}, {}, expression, None, share=share))
            assert (found["value"], found.get("unset_params", [])) == (value, unset), expression
    answer = runner.call({}, {}, "appParams.b.c", None)
    assert (answer.type, body(answer)["unset_params"]) == ("failed", ["b"])
