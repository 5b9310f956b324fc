// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseParameters } from '../../../../runtimes/javascript/parameters.mjs';

/** @param {Function | string} given */
function names(given) {
  return parseParameters(String(given))?.map((one) => `${one.rest ? '...' : ''}${one.name}${one.optional && !one.rest ? '?' : ''}`);
}

const class_ = class {
  method(a, b) { return [a, b]; }
  async *[`odd(${1})`](a) { yield a; }
  static async 'quoted name'(x = ')') { return x; }
  get(value) { return value; }
};

/** @type {[string, Function | string, string[]][]} */
const READ = [
  ['function', function f(a, b, c) { return [a, b, c]; }, ['a', 'b', 'c']],
  ['none', function () {}, []],
  ['arrow', (a, b) => [a, b], ['a', 'b']],
  ['bare arrow', (a) => a, ['a']],
  ['bare arrow without parentheses', 'a => a', ['a']],
  ['async bare arrow', 'async row => row', ['row']],
  ['an arrow of a parameter named async', 'async => 1', ['async']],
  ['async arrow', 'async (a, b) => 1', ['a', 'b']],
  ['generator', 'function* g(a) {}', ['a']],
  ['default', '(a, b = {x: [1, ")"]}, c = f(1, 2)) => 1', ['a', 'b?', 'c?']],
  ['default text with brackets', '(a = "(", b = \')\', c = `${[")"]}`) => 1', ['a?', 'b?', 'c?']],
  ['default regular expression', '(a = /[)/]\\)/g, b) => 1', ['a?', 'b']],
  ['default division', '(a, b = a / 2, c = b / 2) => 1', ['a', 'b?', 'c?']],
  ['default function', '(a = (x, y) => { return ")" }, b) => 1', ['a?', 'b']],
  ['comments', 'function /* ( */ f(/* a, */ b, // c)\n d) {}', ['b', 'd']],
  ['trailing comma', 'function f(a, b,) {}', ['a', 'b']],
  ['rest', '(a, ...rest) => 1', ['a', '...rest']],
  ['destructured', '({a, b: {c}}, [d, e] = []) => 1', ['{a, b: {c}}', '[d, e]?']],
  ['unicode', 'function f(größe, $x, _y, 変数) {}', ['größe', '$x', '_y', '変数']],
  ['method', class_.prototype.method, ['a', 'b']],
  ['static method with a quoted name', class_['quoted name'], ['x?']],
  ['method named get', class_.prototype.get, ['value']],
  ['computed method with brackets in its name', class_.prototype['odd(1)'], ['a']],
];

for (const [name, given, expected] of READ) {
  test(`parameters of ${name}`, () => assert.deepEqual(names(given), expected));
}

test('functions without readable parameters give null', () => {
  assert.equal(parseParameters(String(Math.max)), null);
  assert.equal(parseParameters(String(class_)), null);
  assert.equal(parseParameters(String((() => 1).bind(null))), null);
});

test('the keys of a destructured object are named', () => {
  const [only] = parseParameters('({ completion, target: wanted = ")", "quoted key": q, ...rest }) => 1') ?? [];
  assert.deepEqual(only.keys, ['completion', 'target', 'quoted key']);
});

test('text that ends too early raises no error', () => {
  for (const text of ['function f(a, b', '(a = "', '(a = `${', 'function', '', '(a = /x', 'async']) assert.doesNotThrow(() => parseParameters(text));
});
