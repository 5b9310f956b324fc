// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findEntry } from '../../../../runtimes/javascript/entry.mjs';
import { wantedNames } from '../../../../runtimes/javascript/wanted_names.mjs';

/** Return the values that the module of this code offers, as `inspect` of guest/rows.js lists them. @param {string} code @param {string | null} entry */
function offersOf(code, entry) {
  const names = wantedNames(entry, code);
  const read = names.map((name) => `${name}: typeof ${name} === 'undefined' ? undefined : ${name}`);
  const module = { exports: {} };
  const declared = new Function('module', 'exports', `${code}\nreturn {${read.join(', ')}};`)(module, module.exports);
  return [offer('module', '', module.exports, names), ...Object.keys(declared).flatMap((name) => (declared[name] === undefined ? [] : [offer('declared', name, declared[name], names)]))];
}

/** @param {any} where @param {string} name @param {any} value @param {string[]} names */
function offer(where, name, value, names) {
  const described = (/** @type {any} */ it) => (typeof it === 'function' ? { text: String(it), length: it.length } : { text: '', length: 0 });
  const methods = names.flatMap((one) => (typeof value[one] === 'function' ? [{ name: one, ...described(value[one]) }] : []));
  return { where, name, kind: typeof value, ownName: typeof value === 'function' ? value.name : '', methods, ...described(value) };
}

/** @param {string} code @param {{contract?: string, entry?: string | null}} wish @returns {any} */
function found(code, { contract = 'auto', entry = null } = {}) {
  return findEntry(offersOf(code, entry), { contract, entry, code, language: 'javascript' });
}

/** @type {[string, string, string[] | null][]} */
const INFERRED = [
  ['function evaluate(inputs, outputs, trace) {}', 'evaluate', ['inputs', 'outputs', 'trace']],
  ['function evaluate(inputs, outputs) {}', 'evaluate', ['inputs', 'outputs']],
  ['function evaluate() { return arguments[1] }', 'evaluate', []],
  ["function evaluate(inputs, outputs, trace = {a: [1, ')']}) {}", 'evaluate', ['inputs', 'outputs', 'trace']],
  ['function evaluate(inputs, ...rest) {}', 'evaluate', ['inputs', '...rest']],
  ['function evaluate(a, b, c, options = {}) {}', 'evaluate', ['a', 'b', 'c', 'options']],
  ['function evaluate(app_params, inputs, output, correct_answer) {}', 'evaluate-v1', null],
  ["const evaluate = async (app_params, inputs, output, correct_answer = '') => 1", 'evaluate-v1', null],
  ['module.exports = (a, b, c, d) => 1', 'evaluate-v1', ['a', 'b', 'c', 'd']],
  ['function main(variables) {}', 'main', ['variables']],
  ["async function main({completion, target: wanted = ')', ...rest}) {}", 'main', ['completion', 'target']],
  ['const main = variables => 1', 'main', ['variables']],
  ['const words = (output) => output.split(" ")\nconst score = (output, expected) => words(output)[0] === expected', 'function', ['output', 'expected']],
  ['function compile(words) { return new RegExp(words.join("|")) }\nconst WORDS = compile(["a"])\nconst score = (output) => WORDS.test(output)', 'function', ['output']],
  ['const _clean = (text) => text\nconst upper = (text) => text\nconst CASES = ["a"].map(upper)\nconst score = (output) => 1', 'function', ['output']],
  ['function evaluate({ output, reference, keywords }) {}', 'phoenix', ['output', 'reference', 'keywords']],
  ['function evaluate({ input, metadata }) {}', 'phoenix', ['input', 'metadata']],
  ['function evaluate({ output, expected }) {}', 'function', ['output', 'expected']],
];

for (const [code, contract, parameters] of INFERRED) {
  test(`the contract of ${code}`, () => {
    const answer = found(code);
    assert.deepEqual([answer.contract, answer.source], [contract, 'inferred']);
    if (parameters) assert.deepEqual(answer.parameters, parameters);
  });
}

test('several equal candidates are called together', () => {
  const answer = found('const one = (output) => 1\nconst two = (output) => 2');
  assert.deepEqual([answer.entry, answer.contract, answer.parameters], ['*', 'function', ['one(output)', 'two(output)']]);
  assert.match(answer.notes[0].message, /the mean of one\(output\), two\(output\)/);
});

/** @type {[string, {contract?: string, entry?: string}, string, string][]} */
const REFUSED = [
  ['function evaluate(...args) {}', {}, 'entry_ambiguous', '...args'],
  ['function evaluate() { return 1 }', {}, 'binding_error', 'takes no parameters'],
  ['function evaluate(a, b, c) {}\nfunction main(v) {}', {}, 'entry_ambiguous', 'both evaluate and main'],
  ['function evaluate(a, b, c, d, e) {}', {}, 'binding_error', 'requires 5'],
  ['function main(completion, target) {}', {}, 'binding_error', 'one object'],
  ['function score(a, b, c) {}\nconst rate = (x) => 1', {}, 'entry_not_found', 'score, rate'],
  ['', {}, 'entry_not_found', 'evaluate or main'],
  ['const evaluate = 0.5', {}, 'entry_not_found', 'evaluate is a number'],
  ['class evaluate {}', {}, 'entry_not_found', 'evaluate is a class'],
  ['function evaluate(a, b, c) {}', { contract: 'main' }, 'entry_not_found', 'main'],
  ['function evaluate({ keywords }) {}', {}, 'binding_error', 'one parameter'],
  ['const words = (output) => output.split(" ")\nconst scorer = (args) => words(args.said).length', {}, 'entry_ambiguous', 'scorer(args) may be the evaluator, but its parameter does not show'],
  ['const words = (output) => output.length\nconst scorer = (args) => Object.keys(args).length', {}, 'entry_ambiguous', 'words(output), scorer(args)'],
  ['async function scorer(args) { return args.flag }\nconst words = (output) => output.length', {}, 'entry_ambiguous', 'words(output), scorer(args)'],
  ['function evaluate(a, b, c) {}', { entry: 'grade' }, 'entry_not_found', 'grade'],
];

for (const [code, wish, error, words] of REFUSED) {
  test(`an entry that is not clear: ${code} ${JSON.stringify(wish)}`, () => {
    const answer = found(code, wish);
    assert.equal(answer.code, error);
    assert.ok(answer.message.includes(words), answer.message);
    assert.ok(answer.hint);
  });
}

/** @type {[string, {contract?: string, entry?: string}, string, string][]} */
const DECLARED = [
  ['function evaluate(...args) { return args.length / 10 }', { contract: 'evaluate-v1' }, 'evaluate-v1', 'evaluate'],
  ['function evaluate(a, b, c) { return 0.4 }\nfunction main(v) {}', { contract: 'evaluate' }, 'evaluate', 'evaluate'],
  ['function grade(a, b, c) { return 0.4 }\nfunction evaluate(a) { return 1 }', { entry: 'grade' }, 'evaluate', 'grade'],
  ['module.exports = x => 0.4', { contract: 'evaluate' }, 'evaluate', 'default'],
];

for (const [code, wish, contract, entry] of DECLARED) {
  test(`a declaration decides: ${code} ${JSON.stringify(wish)}`, () => {
    const answer = found(code, wish);
    assert.deepEqual([answer.contract, answer.entry], [contract, entry]);
  });
}
