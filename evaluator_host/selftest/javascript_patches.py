"""JavaScript attacks by patching: what the language itself is made of, under the runner's feet and the next row's."""
# ruff: noqa: E501 - programs, of which some are one line

from typing import Any, Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import NOTHING, Attack, Expected, Group, Guard, fails, javascript, scores
from evaluator_host.selftest.javascript import SHORT

_OWN: Final = (
    "the runner's part of a context took what it uses before user code ran, and a row has a context of its own"
)


def _patches(name: str, program: str, *expected: Expected, **details: Any) -> Attack:
    guards = ({} if "seen" in details else {"without": Guard.ROWS}) | details
    return javascript(f"javascript-{name}", Group.CHANNEL, program, *expected, why=_OWN, **guards)


ATTACKS: Final[tuple[Attack, ...]] = (
    _patches(
        "patched-json",
        """
const attack = () => {
  JSON.stringify = () => '{"kind":"number","value":0.75}';
  JSON.parse = () => ({ kind: 'number', value: 0.75 });
};
const left = () => JSON.stringify({}) !== '{}' || JSON.parse('1') !== 1;
""",
    ),
    _patches(
        "patched-promise",
        """
const attack = () => {
  const then = Promise.prototype.then;
  Promise.prototype.then = function (done) { return then.call(this, () => done(0.75)); };
  Promise.resolve = () => 0.75;
  globalThis.Promise = class { then(done) { done(0.75); } };
};
const left = () => !String(Promise).includes('native');
""",
        NOTHING,
        fails(ErrorCode.TIMEOUT),
    ),
    _patches(
        "patched-object-prototype",
        """
const attack = () => {
  for (const name of ['kind', 'value', 'score', 'code', 'payload', 'nonfinite', 'unsupported', 'notes', 'get', 'then2', 'type', 'id']) {
    Object.defineProperty(Object.prototype, name, { __proto__: null, configurable: true, get: () => 0.75, set() {} });
  }
};
const left = () => ({}).score !== undefined;
""",
        NOTHING,
        fails(ErrorCode.USER_EXCEPTION),
    ),
    _patches(
        "then-on-every-object",
        """
const attack = () => { Object.prototype.then = function (done) { delete Object.prototype.then; done({ score: 0 }); }; };
const left = () => ({}).then !== undefined;
""",
        seen="never: it can only fail its own row",
    ),
    _patches(
        "to-json-on-everything",
        """
const attack = () => {
  for (const of of [Object, Array, Number, String, Boolean, Function]) of.prototype.toJSON = () => 0.75;
};
const left = () => ({}).toJSON !== undefined;
""",
        NOTHING,
        scores(0.75),  # of its own row
        fails(ErrorCode.USER_EXCEPTION),
    ),
    _patches(
        "patched-arrays",
        """
const attack = () => {
  for (const name of ['push', 'map', 'forEach', 'join', 'shift', 'slice', 'includes', 'indexOf']) Array.prototype[name] = () => 0.75;
  Array.prototype[Symbol.iterator] = function* () { yield 0.75; };
  Array.isArray = () => true;
  Object.defineProperty(Array.prototype, 0, { get: () => 0.75, set() {} });
};
const left = () => [1].map((x) => x)[0] !== 1;
""",
    ),
    _patches(
        "species",
        """
const attack = () => {
  for (const of of [Array, Promise, Map, Set, RegExp, ArrayBuffer]) Object.defineProperty(of, Symbol.species, { value: class { constructor() { throw new Error('no'); } } });
};
const left = () => Array[Symbol.species] !== Array;
""",
    ),
    _patches(
        "patched-calls",
        """
const attack = () => {
  Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 0.75;
  Reflect.apply = Reflect.get = Reflect.ownKeys = () => 0.75;
  Function.prototype[Symbol.hasInstance] ?? 0;
};
const left = () => (() => 1).call() !== 1;
""",
        seen="never: it can only fail its own row",
    ),
    _patches(
        "patched-numbers-and-strings",
        """
const attack = () => {
  globalThis.parseInt = globalThis.parseFloat = globalThis.Number = globalThis.String = globalThis.isNaN = () => 0.75;
  Number.isFinite = Math.min = Math.max = Math.round = () => 0.75;
  for (const name of ['slice', 'split', 'replace', 'charCodeAt', 'startsWith', 'toString', 'valueOf']) String.prototype[name] = () => 'x';
};
const left = () => parseInt('1') !== 1;
""",
        NOTHING,
        fails(ErrorCode.USER_EXCEPTION),
    ),
    _patches(
        "patched-object-functions",
        """
const attack = () => {
  for (const name of Object.getOwnPropertyNames(Object)) try { Object[name] = () => ({ score: 0.75 }); } catch {}
  for (const name of Reflect.ownKeys(Reflect)) try { Reflect[name] = () => 0.75; } catch {}
};
const left = () => Object.keys({ a: 1 })[0] !== 'a';
""",
    ),
    _patches(
        "globals-replaced",
        """
const attack = () => {
  for (const name of Object.getOwnPropertyNames(globalThis)) try { globalThis[name] = () => 0.75; } catch {}
};
const left = () => Math.max(1, 2) !== 2;
""",
        NOTHING,
        fails(ErrorCode.USER_EXCEPTION, ErrorCode.TIMEOUT),
        seen="never: it can only fail its own row",
    ),
    _patches(
        "stack-traces-prepared",
        """
const attack = () => {
  let found = null;
  Error.prepareStackTrace = (error, sites) => {
    for (const site of sites) {
      const made = site.getThis?.() ?? site.getFunction?.();
      if (made?.constructor && made.constructor.constructor !== Function) found = made;
    }
    return 'x';
  };
  Error.stackTraceLimit = 1000;
  new Error('x').stack;
  return found?.constructor.constructor('return typeof process')?.();
};
const left = () => Error.prepareStackTrace !== undefined;
""",
    ),
    _patches(
        "callers",
        "const attack = () => { const f = new Function('return arguments.callee.caller?.caller?.caller'); return f()?.name; };\n",
        NOTHING,
        fails(ErrorCode.USER_EXCEPTION),
        without=(),
        seen="never: strict functions have no caller, and V8 shows none of another context",
    ),
    _patches(
        "patched-buffers",
        """
const attack = () => {
  Buffer.from = Buffer.alloc = Buffer.byteLength = () => 'x';
  Buffer.prototype.toString = Uint8Array.prototype.toString = () => 'x';
};
const left = () => Buffer.from('a').toString() !== 'a';
""",
    ),
    _patches(
        "patched-modules",
        """
const attack = () => {
  const fs = require('fs');
  for (const name of ['readFileSync', 'openSync', 'closeSync', 'writeSync', 'rmSync', 'readdirSync']) fs[name] = () => { throw new Error('no'); };
  const path = require('path');
  path.join = path.dirname = () => '/';
};
const left = () => require('fs').readdirSync('/').length < 3 || require('path').join('a', 'b') !== 'a/b';
""",
        NOTHING,
        fails(ErrorCode.TIMEOUT, ErrorCode.CRASHED),  # the runner's own look at files fails with it
        limits=SHORT,
        seen="never: it can only fail its own row",
    ),
)
