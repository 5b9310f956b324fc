"""The runner sends each returned value in the form that the protocol prescribes."""

import pytest

from tests.runners.conftest import body

DEEP = "let v = {}; for (let i = 0; i < %d; i++) v = {v};"


@pytest.mark.parametrize(
    ("statement", "kind", "value"),
    [
        ("return 0.7", "number", 0.7),
        ("return -0", "number", 0),
        ("return 2n ** 70n", "number", 2**70),
        ("return new Number(3)", "number", 3),
        ("return true", "bool", True),
        ("return new Boolean(false)", "bool", False),
        ("return 'é🎉\\u0000'", "string", "é🎉\x00"),
        ("return '\\ud800x'", "string", "\ufffdx"),
        ("return null", "null", None),
        ("return [1, undefined, 'x', [true]]", "array", [1, None, "x", [True]]),
        ("return {a: 1, b: undefined, c: {d: [null]}}", "object", {"a": 1, "c": {"d": [None]}}),
        ("return {score: undefined, b: {score: undefined}}", "object", {"score": None, "b": {}}),
        ('return JSON.parse(\'{"__proto__": {"x": 1}, "y": 2}\')', "object", {"__proto__": {"x": 1}, "y": 2}),
        ("return new Map([['a', 1], ['b', {c: 2}]])", "object", {"a": 1, "b": {"c": 2}}),
        ("return {when: new Date(0)}", "object", {"when": "1970-01-01T00:00:00.000Z"}),
        ("return {score: 1, toJSON() { return {score: 0.5} }}", "object", {"score": 0.5}),
        (
            "class Score { constructor() { this.score = 0.25; this.extra = 1 } }; return new Score()",
            "object",
            {"score": 0.25, "extra": 1},
        ),
        ("return Object.create(null, {a: {value: 1, enumerable: true}, b: {value: 2}})", "object", {"a": 1}),
        ("return new Proxy({score: 1}, {})", "object", {"score": 1}),
        ("return {get score() { return 0.5 }}", "object", {"score": 0.5}),
        ("return Promise.resolve(0.5)", "number", 0.5),
        ("return {then(resolve) { resolve(0.5) }}", "number", 0.5),
        ("return new URL('http://x.test/a')", "string", "http://x.test/a"),
        (DEEP % 63 + "return v", "object", None),
    ],
)
def test_value_is_written_as_json(scratch, statement, kind, value):
    frame = scratch(statement)
    assert frame.type == "result", body(frame)
    answer = body(frame)
    assert (answer["kind"], answer["unsupported"], answer["nonfinite"]) == (kind, None, [])
    if value is not None or kind == "null":
        assert answer["value"] == value


@pytest.mark.parametrize("statement", ["", "return", "return undefined", "return Promise.resolve()"])
def test_nothing_returned_is_missing(scratch, statement):
    answer = body(scratch(statement))
    assert answer["kind"] == "missing"
    assert "value" not in answer


@pytest.mark.parametrize(
    ("statement", "paths", "value"),
    [
        ("return NaN", ["$"], None),
        ("return {a: Infinity, b: [1, -Infinity]}", ["$.a", "$.b[1]"], {"a": None, "b": [1, None]}),
        ("return {'a b': NaN, 'é': NaN}", ['$["a b"]', "$.é"], {"a b": None, "é": None}),
        ("return Array(20).fill(NaN)", [f"$[{i}]" for i in range(8)], [None] * 20),
    ],
)
def test_non_finite_numbers_are_named(scratch, statement, paths, value):
    answer = body(scratch(statement))
    assert answer["nonfinite"] == paths
    assert answer["value"] == value
    assert answer["kind"] == {type(None): "number", dict: "object", list: "array"}[type(value)]


@pytest.mark.parametrize(
    ("statement", "path", "kind"),
    [
        ("return () => 1", "$", "function"),
        ("return Symbol('x')", "$", "symbol"),
        ("return {a: [1, new Set([1])]}", "$.a[1]", "Set"),
        ("return {m: new Map([[1, 2]])}", "$.m", "Map with keys that are not strings"),
        ("return new Uint8Array(3)", "$", "Uint8Array"),
        ("return Buffer.from('x')", "$", "Buffer"),
        ("return new ArrayBuffer(3)", "$", "ArrayBuffer"),
        ("return {score: Promise.resolve(1)}", "$.score", "Promise"),
        ("return /x/", "$", "RegExp"),
        ("return (function* () {})()", "$", "generator"),
        ("return new Error('x')", "$", "Error"),
        ("const a = {}; a.self = a; return a", "$.self", "cyclic value"),
        ("const a = []; a.push([a]); return a", "$[0][0]", "cyclic value"),
        (DEEP % 64 + "return v", "$" + ".v" * 64, "value deeper than 64 levels"),
        (DEEP % 100_000 + "return v", "$" + ".v" * 64, "value deeper than 64 levels"),
    ],
)
def test_a_value_without_a_json_form_is_named(scratch, statement, path, kind):
    answer = body(scratch(statement))
    assert answer["kind"] == "unsupported"
    assert answer["unsupported"] == {"path": path, "type": kind}


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("return 5n", "the returned BigInt was taken as a number"),
        ("return new Map([['a', 1]])", "the returned Map was taken as an object"),
        ("class Score { a = 1 }; return new Score()", "the returned instance of Score was taken as"),
        ("return {d: new Date(0)}", "Date at $.d"),
        ("return {t: 'a\\udc00'}", "half of a surrogate pair at $.t was replaced"),
        ("return {t: {'\\udc00': 1}}", "half of a surrogate pair in a key at $.t was replaced"),
    ],
)
def test_a_coercion_is_noted(scratch, statement, words):
    notes = body(scratch(statement))["notes"]
    assert [note["code"] for note in notes] == ["coerced"]
    assert words in notes[0]["message"]


def test_notes_are_at_most_sixteen_and_count_the_rest(scratch):
    notes = body(scratch("return Array(50).fill(1n)"))["notes"]
    assert len(notes) == 16
    assert notes[-1]["message"].startswith("35 more values")


@pytest.mark.parametrize("number", [2.0**60, -(2.0**64), 2.106683111996377e16, 1e20, 1e21, 2.0**1000, -0.0, 0.1])
def test_a_number_has_its_exact_value(scratch, number):
    value = body(scratch(f"return [{number}]"))["value"][0]
    assert (value, str(value)[0]) == (number, str(number)[0])


def test_a_bigint_that_no_reader_takes_is_not_finite(scratch):
    answer = body(scratch("return {n: 10n ** 5000n, m: 10n ** 400n}"))
    assert answer["nonfinite"] == ["$.n"]
    assert answer["value"] == {"n": None, "m": 10**400}


@pytest.mark.parametrize(
    "statement", ["return 'x'.repeat(300000)", "return Array(1e9)", "return {a: 'é'.repeat(140000)}"]
)
def test_a_value_over_its_limit_fails(scratch, statement):
    frame = scratch(statement)
    assert frame.type == "failed"
    assert body(frame)["error"]["code"] == "result_too_large"
    assert "256 KB" in body(frame)["error"]["message"]


@pytest.mark.slow
def test_large_rows_and_results_arrive_whole(load):
    runner = load("function evaluate(i, o, t) { return {same: o === i.text, back: o} }", limits={"result_kb": 8192})
    text = "añ🎉" * 400_000
    answer = body(runner.call({"text": text}, text, None))
    assert answer["value"] == {"same": True, "back": text}


def test_arguments_are_of_the_realm_of_the_code(load):
    code = """function evaluate(inputs, outputs, trace) {
      return inputs instanceof Object && inputs.constructor === Object && inputs.list instanceof Array && inputs.list.constructor === Array
    }"""
    assert body(load(code).call({"list": [1]}, None, None))["value"] is True


@pytest.mark.parametrize(
    "patch",
    [
        'JSON.stringify = () => \'{"kind":"number","value":1}\'; JSON.parse = () => 1',
        "Object.prototype.toJSON = undefined; Array.prototype.toJSON = undefined",
        "Promise.prototype.then = () => { throw 1 }; globalThis.Promise = undefined",
        "Number.isFinite = () => true; globalThis.parseInt = () => 7; Number.prototype.toString = () => '9'",
        "Object.defineProperty(Object.prototype, 'kind', {get() { return 'x' }, set() { throw 1 }})",
        "for (const k of ['0', '1', 'value', 'path']) Object.defineProperty(Array.prototype, k, {get() { return 'x' }, set() { throw 1 }, configurable: true})",
        "Array.prototype[Symbol.iterator] = () => { throw 1 }; Array.prototype.push = () => { throw 1 }",
        "class Bad extends Array { static get [Symbol.species]() { throw 1 } }; Object.defineProperty(Array, Symbol.species, {get() { throw 1 }})",
        "Object.keys = () => ['a']; Reflect.ownKeys = () => []; Reflect.apply = () => 1; Function.prototype.call = () => 1",
        "String.prototype.slice = () => 'x'; String.prototype.isWellFormed = () => false",
    ],
)
def test_patched_builtins_change_nothing(scratch, patch):
    for _ in range(2):
        frame = scratch(patch + "\nreturn {score: 0.5, list: [1, {a: 'x'}]}")
        assert frame.type == "result", body(frame)
        assert body(frame)["value"] == {"score": 0.5, "list": [1, {"a": "x"}]}


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("return {toJSON() { for (;;); }}", "timeout"),
        ("return {get score() { for (;;); }}", "timeout"),
        ("return {get score() { throw new RangeError('no') }}", "user_exception"),
        ("return new Proxy({}, {ownKeys() { throw new TypeError('trap') }})", "user_exception"),
    ],
)
def test_a_value_that_misbehaves_fails_its_row(scratch, statement, code):
    frame = scratch(statement, timeout_s=0.3)
    assert body(frame)["error"]["code"] == code
