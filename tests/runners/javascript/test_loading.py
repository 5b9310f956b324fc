"""The runner loads code and finds the evaluator's function in it, or reports the right error."""

import psutil
import pytest

from tests.keyed import eventually
from tests.runners.conftest import body

ENTRY_FORMS = {
    "function": "function evaluate(inputs, outputs, trace) { return 0.5 }",
    "async function": "async function evaluate(inputs, outputs, trace) { return 0.5 }",
    "const arrow": "const evaluate = (inputs, outputs, trace) => 0.5",
    "factory": "const make = (score) => (inputs, outputs, trace) => score; const evaluate = make(0.5)",
    "let": "let evaluate; evaluate = function (inputs, outputs, trace) { return 0.5 }",
    "exports.evaluate": "exports.evaluate = (inputs, outputs, trace) => 0.5",
    "module.exports": "module.exports = { evaluate(inputs, outputs, trace) { return 0.5 } }",
    "module.exports function": "module.exports = function (inputs, outputs, trace) { return 0.5 }",
    "this.evaluate": "this.evaluate = (inputs, outputs, trace) => 0.5",
    "instance": "class Scorer { #s = 0.5; evaluate(inputs, outputs, trace) { return this.#s } }; module.exports = new Scorer()",
    "export function": "export function evaluate(inputs, outputs, trace) { return 0.5 }",
    "export const": "export const evaluate = (inputs, outputs, trace) => 0.5",
    "export default": "export default function (inputs, outputs, trace) { return 0.5 }",
    "export default instance": "class S { s = 0.5; evaluate(inputs, outputs, trace) { return this.s } }\nexport default new S()",
    "export as": "function score(inputs, outputs, trace) { return 0.5 }\nexport { score as evaluate }",
    "last wins": "function evaluate(a) { return 1 }\nfunction evaluate(inputs, outputs, trace) { return 0.5 }",
    "names like ours": "const result = 0.5, params = {}, inputs = 1, outputs = 2, trace = 3, module = 4, exports = 5\n"
    "function evaluate(inputs, outputs, trace) { return result }",
    "byte order mark, carriage returns, trailing comment": "\ufeff\r\n\r\n"
    "function evaluate(inputs, outputs, trace) {\r\n\treturn 0.5\r\n}\r\n// the end",
    "top-level await": "const score = await Promise.resolve(0.5)\nfunction evaluate(inputs, outputs, trace) { return score }",
    "dynamic import": "async function evaluate(inputs, outputs, trace) { const { EOL } = await import('node:os'); return EOL.length / 2 }",
}


@pytest.mark.sampled(21)
@pytest.mark.parametrize("form", ENTRY_FORMS)
def test_the_entry_is_found_in_every_form(load, form):
    runner = load(ENTRY_FORMS[form])
    answer = body(runner.call({}, None, None))
    assert answer["value"] == 0.5


TYPESCRIPT = {
    "types": """import type { Nothing } from 'nowhere'
import { type Other } from 'nowhere-else'
enum Grade { Half = 0.5 }
const enum Unused { A }
namespace Scores { export const half = 0.5 }
class Kept { constructor(private readonly s: number) {} get score() { return this.s } }
const scores = { half: 0.5 } satisfies Record<string, number>
const make = <T,>(score: T) => (): T => score
const ill: string = 0.5
function evaluate(inputs: Nothing, outputs: Other, trace: Nowhere): boolean {
  const found: any[] = [Grade.Half, Scores.half, new Kept(0.5).score, scores.half, make(0.5)(), ill, 0.5 as number]
  return found.every((one: unknown) => one === 0.5) ? 0.5 : found
}""",
    "untyped": "function evaluate(inputs, outputs, trace) { return 0.5 }",
    "decorator": "function twice(value: any, context: any) { return function (this: any) { return value.call(this) * 2 } }\n"
    "class S { @twice score() { return 0.25 } }\nfunction evaluate(inputs, outputs, trace) { return new S().score() }",
    "parameter decorator": "function mark(target: any, key: any, index: number) {}\nclass S { constructor(@mark public s: number) {} }\n"
    "function evaluate(inputs, outputs, trace) { return new S(0.5).s }",
    "export assignment": "export = (inputs: any, outputs: any, trace: any) => 0.5",
    "factory": "const make = <T,>(score: T) => (inputs: any, outputs: any, trace: any): T => score\nconst evaluate = make(0.5)",
    "top-level await": "import { readFileSync as read } from 'node:fs'\nimport * as os from 'node:os'\nimport path, { sep } from 'path'\nimport 'util'\n"
    "const score: number = await Promise.resolve(typeof read === 'function' && os.EOL && path.sep === sep ? 0.5 : 0)\n"
    "export function evaluate(inputs, outputs, trace) { return score }",
    "builtins": "import fs from 'node:fs'\nimport * as path from 'path'\nimport { createHash } from 'crypto'\nconst util = require('util')\n"
    "function evaluate(inputs, outputs, trace) { return path.join('a', 'b') === 'a/b' && fs.readFileSync && util.format('%d', 1) === '1' "
    "&& createHash('sha256').update('x').digest('hex').length === 64 ? 0.5 : 0 }",
}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("form", TYPESCRIPT)
def test_typescript_is_stripped_never_checked(load, form):
    runner = load(TYPESCRIPT[form], language="typescript")
    answer = body(runner.call({}, None, None))
    assert answer.get("value") == 0.5, answer


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("code", "contract", "parameters"),
    [
        ("function evaluate(a, b, c, options = {}) {}", "evaluate", ["a", "b", "c", "options"]),
        ("module.exports = (a, b, c, d) => 1", "evaluate-v1", ["a", "b", "c", "d"]),
        ("export default async function main({ completion }) {}", "main", ["completion"]),
    ],
)
def test_the_contract_is_inferred(start, code, contract, parameters):
    """The runner infers the contract from the names that the module exports; `unit/entry.test.mjs` tests every way to
    write the evaluator's function.
    """
    answer = start().load(code, language="javascript")
    assert answer.type == "loaded", answer
    assert (answer.header["contract"], answer.header["contract_source"]) == (contract, "inferred")
    assert answer.header["parameters"] == parameters


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("code", "header", "error", "words"),
    [
        ("function evaluate(a, b, c, d, e) {}", {}, "binding_error", "requires 5"),
        ("class evaluate {}", {}, "entry_not_found", "evaluate is a class"),
        ("function evaluate(a, b, c) {}", {"entry": "grade"}, "entry_not_found", "grade"),
    ],
)
def test_an_entry_that_is_not_clear_is_an_error(start, code, header, error, words):
    answer = start().load(code, language="javascript", **header)
    assert answer.type == "load_failed"
    assert body(answer)["error"]["code"] == error
    assert words in body(answer)["error"]["message"]
    assert body(answer)["error"]["hint"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("code", "header", "contract", "entry"),
    [
        (
            "function evaluate(a, b, c) { return 1 }\nfunction grade(a, b, c) { return 0.4 }\nfunction main(v) {}",
            {"entry": "grade"},
            "evaluate",
            "grade",
        ),
        ("module.exports = x => 0.4", {"contract": "evaluate"}, "evaluate", "default"),
    ],
)
def test_a_declaration_decides(start, code, header, contract, entry):
    runner = start()
    answer = runner.load(code, language="javascript", **header)
    assert answer.type == "loaded", answer
    assert (answer.header["contract"], answer.header["entry"]) == (contract, entry)
    assert body(runner.call({}, {}, None, None))["value"] == 0.4


def test_main_takes_one_object(load):
    runner = load("function main({ completion, target }) { return { score: completion === target ? 1 : 0 } }")
    assert body(runner.call_named({"completion": "x", "target": "x"}))["value"] == {"score": 1}


IMPORTS = """
import * as all from "lodash"
import _ from "lodash"
import { floor } from "lodash"
import sub from "lodash/floor"
import * as pad from "left-pad"
import pad2 from "left-pad"
import { nanoid } from "nanoid"
function evaluate(inputs, outputs, trace) {
  return {
    namespace: all.floor(7.55), "namespace called": all([7]).first(), default: _.floor(7.55) + _([0]).first(), named: floor(7.55),
    "sub-path": sub(7.55), "plain function": pad("5", 2, ".") + pad2("5", 2, "."), "module-only package": nanoid().length,
  }
}
"""
IMPORTED = {
    "namespace": 7, "namespace called": 7, "default": 7, "named": 7, "sub-path": 7, "plain function": ".5.5",
    "module-only package": 21,
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("language", ["javascript", "typescript"])
@pytest.mark.engine
def test_packages_are_imported_in_every_form(load, packages, language):
    answer = body(load(IMPORTS, language=language, arguments=("--packages", str(packages))).call({}, None, None))
    assert answer.get("value") == IMPORTED, answer
    required = 'const _ = require("lodash")\nfunction evaluate(inputs, outputs, trace) { return _.floor(7.55) }'
    runner = load(required, language=language, arguments=("--packages", str(packages)))
    assert body(runner.call({}, None, None))["value"] == 7


@pytest.mark.engine
def test_a_bundle_spares_the_second_sandbox_the_bundler(start, packages):
    code = 'import * as _ from "lodash"\nexport const evaluate = (inputs, outputs, trace) => _.floor(outputs.x)'
    first = start("--packages", str(packages))
    bundle = body(first.load(code, language="typescript"))["bundle"]
    assert bundle is not None
    second = start(with_esbuild=False)
    assert second.load(code, language="typescript", bundle=bundle).type == "loaded"
    assert body(second.call({}, {"x": 7.55}, None))["value"] == 7
    error = body(second.call({}, None, None))["error"]
    assert (error["line"], error["column"]) == (2, 69)


def test_plain_code_needs_no_bundler(start):
    runner = start(with_esbuild=False)
    assert runner.load("function evaluate(a, b, c) { return 1 }", language="javascript").type == "loaded"
    other = start(with_esbuild=False)
    answer = other.load("function evaluate(a: any) {}", language="typescript")
    assert body(answer)["error"]["code"] == "load_error"


@pytest.mark.parametrize("kills", [1, 2])
def test_a_bundler_that_is_killed_is_started_once_more(start, esbuild, tmp_path, kills):
    script = tmp_path / "esbuild"
    killed = " || ".join(f"mkdir {tmp_path}/{number} 2>/dev/null" for number in range(kills))
    script.write_text(f'#!/bin/sh\nif {killed}; then kill -9 $$; fi\nexec "{esbuild}" "$@"\n')
    script.chmod(0o755)
    code = "export function evaluate(inputs: object, outputs: number, trace: unknown): number { return outputs }"
    answer = start("--esbuild", str(script), with_esbuild=False).load(code, language="typescript")
    assert answer.type == ("loaded" if kills == 1 else "load_failed"), body(answer)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wait_s", [0, 0.3])
@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_a_bundler_waits_for_the_load_and_is_gone_after_it(start, esbuild, tmp_path, language, wait_s):
    """While a runner waits for code, it already starts the bundler, which is gone after the load. Code with a top-level
    `await` needs two builds, which the same bundler makes.
    """
    script, starts = tmp_path / "esbuild", tmp_path / "starts"
    script.write_text(f'#!/bin/sh\necho >> "{starts}"\nsleep {wait_s}\nexec "{esbuild}" "$@"\n')
    script.chmod(0o755)
    runner = start("--esbuild", str(script), with_esbuild=False)
    node = psutil.Process(runner.process.pid)
    eventually(lambda: [child.name() for child in node.children()] in (["esbuild"], ["sh"]))
    plain = "function evaluate(inputs, outputs, trace) { return 0.5 }"
    typed = f"const half: number = await 0.5\n{plain.replace('0.5', 'half')}"
    answer = runner.load(plain if language == "javascript" else typed, language=language)
    assert answer.type == "loaded", body(answer)
    assert body(runner.call({}, None, None))["value"] == 0.5
    eventually(lambda: not node.children())
    assert starts.read_text() == "\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_check_lists_what_is_missing(start, language):
    code = 'import "node:fs"\nimport { floor } from "lodash"\nconst x = require("./near")\nfloor(1)\nfunction evaluate(a, b, c) {}'
    answer = start().load(code, language=language, check=True)
    assert answer.type == "load_failed"
    assert body(answer)["missing_imports"] == [{"module": "lodash", "line": 2}, {"module": "./near", "line": 3}]
    error = body(answer)["error"]
    assert (error["code"], error["line"]) == ("load_error", 2)
    assert "lodash" in error["hint"]


def test_check_of_good_code_lists_nothing(start):
    answer = start().load("const os = require('os')\nfunction evaluate(a, b, c) {}", language="javascript", check=True)
    assert answer.type == "loaded"
    assert body(answer)["missing_imports"] == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_a_missing_package_fails_the_load(start, language):
    answer = start().load("const _ = require('lodash')\nfunction evaluate(a, b, c) {}", language=language)
    error = body(answer)["error"]
    assert (error["code"], error["line"]) == ("load_error", 1)
    assert "lodash" in error["message"]
    assert "pin" in error["hint"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("code", "error", "extra"),
    [
        ("for (;;);\nfunction evaluate(a, b, c) {}", "timeout", {}),
        ("await new Promise(() => {})\nfunction evaluate(a, b, c) {}", "timeout", {}),
        (
            "console.log('before')\nthrow new TypeError('at load')\nfunction evaluate(a, b, c) {}",
            "load_error",
            {"type": "TypeError", "line": 2},
        ),
        ("process.exit(3)", "load_error", {"type": "process.exit"}),
        ("const a = []; for (;;) a.push(new Array(1000).fill({}))", "memory_limit", {}),
    ],
)
def test_a_module_that_fails_says_how(start, code, error, extra):
    timeout_s = 1 if error == "timeout" else 20
    answer = start().load(code, language="javascript", timeout_s=timeout_s, limits={"memory_mb": 96})
    assert answer.type == "load_failed"
    found = body(answer)["error"]
    assert found["code"] == error
    assert {key: found[key] for key in extra} == extra
    if "before" in code:
        assert answer.header["logs"]["stdout"] == "before\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("module", ["child_process", "vm", "worker_threads"])
def test_rows_run_after_loading_took_what_costs_the_worker(load, module):
    runner = load(f"const taken = require('{module}')\nfunction evaluate(inputs, outputs, trace) {{ return 0.5 }}")
    for _ in range(2):
        assert body(runner.call({}, None, None))["value"] == 0.5


def test_ten_megabytes_of_code_load(load):
    runner = load("// " + "x" * 10_000_000 + "\nfunction evaluate(a, b, c) { return 1 }")
    assert body(runner.call({}, None, None))["value"] == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_code_that_is_too_deep_to_parse_is_an_error(start, language):
    answer = start().load("const x = " + "[" * 100_000 + "\nfunction evaluate(a, b, c) {}", language=language)
    assert body(answer)["error"]["code"] == "syntax_error"
