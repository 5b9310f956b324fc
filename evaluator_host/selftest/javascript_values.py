"""JavaScript attacks by what they return: values that lie, loop, are huge or have no JSON form."""
# ruff: noqa: E501 - programs, of which some are one line

from typing import Any, Final

from evaluator_host.model.evaluator import Language
from evaluator_host.model.outcome import ErrorCode, Status
from evaluator_host.selftest.attack import Attack, Expected, Group, Guard, fails, scores, whole
from evaluator_host.selftest.javascript import SHORT, STILL_HANGS

_CALM: Final = "function evaluate(inputs) {\n  if (inputs.calm) return 0.25;\n  %s\n}\n"
_INVALID: Final = fails(ErrorCode.INVALID_RESULT)
_RAISED: Final = fails(ErrorCode.USER_EXCEPTION)
_READ: Final = "the runner reads a value once, within its row's limits, and believes nothing of it"


def _values(name: str, body: str, *expected: Expected, **details: Any) -> Attack:
    told: dict[str, Any] = {
        "calm": True,
        "why": _READ,
        "language": Language.JAVASCRIPT,
        **({} if "seen" in details else {"without": Guard.ENCODING}),
        "safe": False,  # the runner alone decides these, wherever it runs
    } | details
    return whole(f"javascript-{name}", Group.VALUES, _CALM % body, *expected, **told)


_OWN: Final = "never: whatever encodes it, it can do no more than fail, or score what it is"

ATTACKS: Final[tuple[Attack, ...]] = (
    _values("cyclic-object", "const value = { score: 1 }; value.more = [{ value }]; return value;", _INVALID),
    _values("cyclic-map", "const value = new Map(); value.set('score', 1).set('me', value); return value;", _INVALID),
    _values(
        "deep-array",
        "let value = 0; for (let n = 0; n < 100000; n++) value = [value]; return { score: 1, value };",
        _INVALID,
    ),
    _values(
        "deep-object",
        "let value = 0; for (let n = 0; n < 100000; n++) value = { value }; return value;",
        _INVALID,
    ),
    _values(
        "long-string",
        "return { score: 1, text: 'x'.repeat(1 << 21) };",
        fails(ErrorCode.RESULT_TOO_LARGE),
        without=Guard.RESULT,
        why="the runner sends `result_kb` of a result",
    ),
    _values(
        "array-of-four-thousand-million",
        "const value = []; value.length = 2 ** 32 - 1; return { score: 1, value };",
        fails(ErrorCode.RESULT_TOO_LARGE, ErrorCode.INVALID_RESULT, ErrorCode.TIMEOUT, ErrorCode.MEMORY_LIMIT),
        limits=SHORT,
    ),
    _values(
        "many-keys",
        "const value = { score: 1 }; for (let n = 0; n < 1e5; n++) value['k' + n] = n; return value;",
        fails(ErrorCode.RESULT_TOO_LARGE, ErrorCode.MEMORY_LIMIT),
        without=Guard.RESULT,
        why="the runner sends `result_kb` of a result",
    ),
    _values("not-a-number", "return NaN;", fails(ErrorCode.NON_FINITE)),
    _values("infinity-below", "return { score: 1, a: [{ b: -Infinity }] };", fails(ErrorCode.NON_FINITE)),
    _values("integer-of-400-digits", "return 10n ** 400n;", fails(ErrorCode.NON_FINITE)),
    _values(
        "integer-of-a-million-digits",
        "return 1n << 4000000n;",
        fails(ErrorCode.RESULT_TOO_LARGE, ErrorCode.NON_FINITE, ErrorCode.INVALID_RESULT, ErrorCode.TIMEOUT),
        limits=SHORT,
    ),
    _values(
        "lone-surrogates", "return { score: 0, reason: '\\ud800 x \\udfff', ['\\udc00']: 1 };", scores(0.0), seen=_OWN
    ),
    _values(
        "prototype-keys",
        'return JSON.parse(\'{"score": 0, "__proto__": {"score": 1}, "constructor": {"prototype": {"score": 1}}}\');',
        scores(0.0),
        seen=_OWN,
    ),
    _values("prototype-of-a-score", "return Object.create({ score: 1 });", Expected(Status.SCORED, None), seen=_OWN),
    _values("typed-array", "return new Float64Array([1, 2]);", _INVALID),
    _values(
        "invalid-date",
        "return { score: 0, when: new Date(NaN) };",
        scores(0.0),
        _INVALID,
        fails(ErrorCode.USER_EXCEPTION),
        seen=_OWN,
    ),
    _values("symbol", "return Symbol('score');", _INVALID),
    _values("function", "return () => 1;", _INVALID),
    _values(
        "boxed-values-that-lie",
        "return { score: Object.assign(new Number(0), { valueOf: () => 1, toString: () => '1', [Symbol.toPrimitive]: () => 1 }) };",
        scores(0.0),
        scores(1),
        _INVALID,
        seen=_OWN,
    ),
    _values(
        "getter-that-throws", "return { get score() { throw new RangeError('mine'); } };", _RAISED, _INVALID, seen=_OWN
    ),
    _values(
        "getter-that-loops", "return { get score() { for (;;); } };", STILL_HANGS, limits=SHORT, without=Guard.TIMEOUT
    ),
    _values(
        "getter-that-answers-otherwise-each-time",
        "let n = 0; return { get score() { return n++ ? {} : 0; } };",
        scores(0.0),
        _INVALID,
        seen=_OWN,
    ),
    _values(
        "proxy-that-throws",
        "return new Proxy({}, { ownKeys() { throw new TypeError('mine'); }, get() { throw new TypeError('mine'); } });",
        _RAISED,
        _INVALID,
        seen=_OWN,
    ),
    _values(
        "proxy-without-end",
        "const endless = () => new Proxy({}, { ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({ value: endless(), enumerable: true, configurable: true }), get: () => endless() }); return endless();",
        _INVALID,
        STILL_HANGS,
        _RAISED,
        limits=SHORT,
        seen=_OWN,
    ),
    _values(
        "revoked-proxy",
        "const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy;",
        _RAISED,
        _INVALID,
        seen=_OWN,
    ),
    _values(
        "proxy-that-calls-itself-an-array",
        "return { score: 0, value: new Proxy([], { get: (of, key) => (key === 'length' ? 2 ** 53 : 1) }) };",
        fails(ErrorCode.RESULT_TOO_LARGE, ErrorCode.TIMEOUT, ErrorCode.INVALID_RESULT, ErrorCode.MEMORY_LIMIT),
        _RAISED,
        scores(0.0),
        limits=SHORT,
        seen=_OWN,
    ),
    _values(
        "to-json-that-loops",
        "return { score: 1, toJSON() { for (;;); } };",
        STILL_HANGS,
        limits=SHORT,
        without=Guard.TIMEOUT,
    ),
    _values(
        "to-json-that-returns-itself",
        "return { toJSON() { return this; } };",
        _INVALID,
        STILL_HANGS,
        limits=SHORT,
    ),
    _values(
        "to-json-without-end",
        "const endless = () => ({ toJSON: endless }); return endless();",
        _INVALID,
        _RAISED,
        STILL_HANGS,
        limits=SHORT,
    ),
    _values("to-json-that-throws", "return { toJSON() { throw 1; } };", _RAISED, _INVALID, seen=_OWN),
    _values(
        "thenable-that-resolves-to-itself",
        "const value = { then(done) { done(value); } }; return value;",
        STILL_HANGS,
        _RAISED,
        _INVALID,
        limits=SHORT,
        without=Guard.TIMEOUT,
    ),
    _values(
        "promise-of-thenables-without-end",
        "const next = () => ({ then(done) { done(next()); } }); return Promise.resolve(next());",
        STILL_HANGS,
        fails(ErrorCode.MEMORY_LIMIT),
        limits=SHORT,
        without=Guard.TIMEOUT,
    ),
    _values(
        "thrown-proxy",
        "throw new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 1; } });",
        _RAISED,
        seen=_OWN,
    ),
    _values("thrown-nothing", "throw undefined;", _RAISED, seen=_OWN),
    _values(
        "error-that-lies",
        "throw Object.assign(new Error('x'), { get message() { for (let n = 0; n < 3; n++); throw 1; }, stack: { toString() { throw 1; } }, name: null, toString: null });",
        _RAISED,
        seen=_OWN,
    ),
    _values(
        "error-of-sixteen-megabytes",
        "throw new Error('x'.repeat(1 << 24));",
        _RAISED,
        fails(ErrorCode.RESULT_TOO_LARGE),
        seen=_OWN,
        why="the runner sends `result_kb` of an error too",
    ),
)
