"""Errors name lines of the user's own code, in JavaScript and TypeScript and in every form of source."""

import pytest

from tests.runners.conftest import body

PLAIN = """// a comment
function helper(value) {
  return value.missing.deeper
}
function evaluate(inputs, outputs, trace) {
  return helper(inputs)
}
"""
TYPED = """// a comment
interface Unused { a: string; b: number }

function helper(value: any): number {
  return value.missing.deeper as number
}
export async function evaluate(inputs: any, outputs: any, trace: any): Promise<number> {
  return helper(inputs)
}
"""


def test_a_javascript_error_names_line_column_and_frames(load):
    error = body(load(PLAIN).call({}, None, None))["error"]
    assert (error["code"], error["type"], error["line"], error["column"]) == ("user_exception", "TypeError", 3, 24)
    assert error["message"] == "Cannot read properties of undefined (reading 'deeper')"
    assert error["traceback"].splitlines() == [
        "TypeError: Cannot read properties of undefined (reading 'deeper')",
        "    at helper (evaluator.js:3:24)",
        "    at evaluate (evaluator.js:6:10)",
    ]


def test_a_typescript_error_is_mapped_to_the_source(load):
    error = body(load(TYPED, language="typescript").call({}, None, None))["error"]
    assert (error["type"], error["line"], error["column"]) == ("TypeError", 5, 24)
    assert error["traceback"].splitlines()[1:] == [
        "    at helper (evaluator.ts:5:24)",
        "    at evaluate (evaluator.ts:8:10)",
    ]


def test_an_error_on_the_first_line_has_its_column(load):
    error = body(load("function evaluate(i, o, t) { throw new Error('x') }").call({}, None, None))["error"]
    assert (error["line"], error["column"]) == (1, 36)


@pytest.mark.engine
def test_frames_of_packages_are_cut(load, packages):
    code = 'import _ from "lodash"\nfunction evaluate(i, o, t) {\n  return _.map([1], () => {\n    throw new RangeError("inside")\n  })\n}'
    error = body(load(code, arguments=("--packages", str(packages))).call({}, None, None))["error"]
    assert (error["line"], error["column"]) == (4, 11)
    assert all("(evaluator.js:" in line for line in error["traceback"].splitlines()[1:])


SYNTAX = [
    ("javascript", "function evaluate(a, b, c) {\n  return 1 +* 2\n}", 2, 13),
    ("javascript", "const x = 1\nconst x = 2\nfunction evaluate(a, b, c) {}", 2, 7),
    ("javascript", "function evaluate(a, b, c) {\n  if (a {\n}\n", 2, 9),
    ("javascript", "function evaluate(a, b, c) {\n", 2, None),
    ("javascript", "function evaluate(a, b, c) { return 1 }\n}", 2, 1),
    ("javascript", "const s = 'never closed\nfunction evaluate() {}", 1, None),
    ("javascript", "import x from\nfunction evaluate() {}", 2, None),
    ("javascript", "function evaluate(a: string) { return 1 }", 1, 20),
    ("javascript", "const \x00 = 1", 1, 7),
    ("typescript", "const é = 'é'; const x y\nfunction evaluate(a, b, c) {}", 1, 24),
    ("typescript", "\n\nfunction evaluate(a: string {\n}", 3, None),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("language", "code", "line", "column"), SYNTAX)
def test_a_syntax_error_names_its_place(start, language, code, line, column):
    answer = start().load(code, language=language)
    assert answer.type == "load_failed"
    error = body(answer)["error"]
    assert (error["code"], error["type"], error["line"]) == ("syntax_error", "SyntaxError", line)
    assert column is None or abs(error["column"] - column) <= 1
    assert error["message"]


def test_typescript_sent_as_javascript_gets_a_hint(start):
    answer = start().load("function evaluate(a: string) { return 1 }", language="javascript")
    assert "typescript" in body(answer)["error"]["hint"]


@pytest.mark.parametrize(
    ("statement", "kind", "message"),
    [
        ("throw 'just text'", "string", "just text"),
        ("throw {code: 5}", "Object", 'thrown value: {"code":5}'),
        ("throw null", "null", "null"),
        ("throw undefined", "undefined", "undefined"),
        ("throw Symbol('s')", "symbol", "Symbol(s)"),
        ("throw 5n", "bigint", "5"),
        ("class Special extends Error {}; throw new Special('mine')", "Special", "mine"),
        ("const e = new Error('x'); e.name = 'Named'; throw e", "Named", "x"),
        (
            "throw Object.assign(new Error('outer'), {cause: new TypeError('inner')})",
            "Error",
            "outer (caused by TypeError: inner)",
        ),
        ("throw new Proxy(new Error('x'), {get() { throw 1 }, getPrototypeOf() { throw 1 }})", None, None),
        ("throw {get message() { throw 1 }, toString() { throw 1 }, get constructor() { throw 1 }}", "Object", None),
        ("const e = new Error('x'); Object.defineProperty(e, 'stack', {get() { throw 1 }}); throw e", "Error", "x"),
        ("const e = new Error(); e.message = {}; e.stack = 5; throw e", "Error", None),
        ("throw new Error('m'.repeat(100000))", "Error", "m" * 4095 + "…"),
        ("require('fs').readFileSync('/nowhere')", "Error", "ENOENT: no such file or directory, open '/nowhere'"),
        ("const f = () => f(); f()", "RangeError", "Maximum call stack size exceeded"),
        ("return Promise.reject(new TypeError('later'))", "TypeError", "later"),
        (
            "setTimeout(() => { throw new TypeError('in timer') }, 1); return new Promise(done => setTimeout(done, 50, 1))",
            "TypeError",
            "in timer",
        ),
        ("Promise.reject(new TypeError('stray')); return 1", "TypeError", "stray"),
        ("queueMicrotask(() => { throw new TypeError('micro') }); return 1", "TypeError", "micro"),
    ],
)
def test_whatever_is_thrown_is_described(scratch, statement, kind, message):
    error = body(scratch(statement))["error"]
    assert error["code"] == "user_exception"
    assert kind is None or error["type"] == kind
    assert message is None or error["message"] == message
    assert isinstance(error["message"], str)
    assert body(scratch("return 1"))["value"] == 1


MEDDLING = [
    "Error.prepareStackTrace = () => 'nothing'",
    "Error.prepareStackTrace = () => { throw new Error('again') }",
    "Error.prepareStackTrace = (e, frames) => frames",
    "Object.defineProperty(Error, 'prepareStackTrace', {get() { throw 1 }, configurable: true})",
    "const Old = Error; globalThis.Error = function () {}; Error.prepareStackTrace = () => 'nothing'; globalThis.Error = Old",
    "Error.stackTraceLimit = 1",
    "String.prototype.split = () => []; Array.prototype.join = () => ''",
]


def test_positions_survive_meddling_with_stacks(load):
    """Errors have the right lines even if rows meddle with stack traces. Each row changes them in a different way; its
    code is two lines above the code of the next row.
    """
    ways = "\n".join(f"if (i.way === {number}) {{ {way};\nnull.x }}" for number, way in enumerate(MEDDLING))
    runner = load(f"function evaluate(i, o, t) {{\n{ways}\n}}")
    for number, way in enumerate(MEDDLING):
        error = body(runner.call({"way": number}, None, None))["error"]
        assert (error["type"], error["line"]) == ("TypeError", 3 + 2 * number), way


def test_without_any_stack_there_is_still_the_message(load):
    error = body(load("function evaluate(i, o, t) { Error.stackTraceLimit = 0; null.x }").call({}, None, None))["error"]
    assert error["message"] == "Cannot read properties of null (reading 'x')"


def test_a_message_cannot_pose_as_frames(load):
    code = "function evaluate(i, o, t) {\n  throw new Error('x\\n    at fake (evaluator.js:99:1)')\n}"
    error = body(load(code).call({}, None, None))["error"]
    assert error["line"] == 2
    assert error["traceback"].splitlines()[-1] == "    at evaluate (evaluator.js:2:9)"


def test_a_traceback_is_bounded(load):
    code = "Error.stackTraceLimit = Infinity\nfunction deep(n) { if (n === 0) throw new Error('x'); deep(n - 1) }\nfunction evaluate(i, o, t) { deep(3000) }"
    error = body(load(code).call({}, None, None))["error"]
    assert len(error["traceback"]) <= 16_384


def test_a_rejected_promise_at_load_is_a_load_error(start):
    answer = start().load(
        "Promise.reject(new TypeError('stray'))\nfunction evaluate(a, b, c) {}", language="javascript"
    )
    assert (answer.type, body(answer)["error"]["code"], body(answer)["error"]["type"]) == (
        "load_failed",
        "load_error",
        "TypeError",
    )
