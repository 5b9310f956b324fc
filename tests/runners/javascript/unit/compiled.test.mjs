// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asFunctionBody, faultsOf, makeModulesCallable } from '../../../../runtimes/javascript/bundle.mjs';
import { Packets, decodePacket, encodePacket } from '../../../../runtimes/javascript/esbuild.mjs';
import { FrameDecoder, FrameError, encode } from '../../../../runtimes/javascript/frames.mjs';
import { Positions } from '../../../../runtimes/javascript/positions.mjs';

test('faults of esbuild: message, place in characters, missing modules', () => {
  const errors = [
    { text: 'Expected ";" but found "y"', location: { file: 'evaluator.ts', line: 2, column: 25, lineText: 'const é = "é"; const x y' } },
    { text: 'Could not resolve "lodash"', location: { file: 'evaluator.ts', line: 7, column: 9, lineText: '  import "lodash"' } },
    { text: 'out of luck', location: null },
  ];
  assert.deepEqual(faultsOf(errors), [
    { message: 'Expected ";" but found "y"', module: null, line: 2, column: 24, file: null },
    { message: 'Could not resolve "lodash"', module: 'lodash', line: 7, column: 10, file: null },
    { message: 'out of luck', module: null, line: null, column: null, file: null },
  ]);
  const elsewhere = { text: 'Unexpected end of file', location: { file: 'helpers/text.js', line: 3, column: 0, lineText: '' } };
  assert.deepEqual(faultsOf([elsewhere], 'main.ts'), [
    { message: 'Unexpected end of file (helpers/text.js:3)', module: null, line: 3, column: null, file: 'helpers/text.js' },
  ]);
});

test('packets to and from esbuild survive any cut of the stream', () => {
  const value = { none: null, yes: true, no: false, number: 7, text: 'é🎉', bytes: Buffer.from('x'.repeat(5000)), list: [['', 'a/b.ts'], []], inner: { a: 1 } };
  const packet = encodePacket(6, value);
  assert.equal(packet.readUInt32LE(0), packet.length - 4);
  assert.deepEqual(decodePacket(packet.subarray(4)), { id: 6, value });
  const greeting = Buffer.concat([Buffer.from([5, 0, 0, 0]), Buffer.from('0.1.2')]);
  const stream = Buffer.concat([greeting, packet, encodePacket(8, {})]);
  for (const step of [1, 3, 4, 9, 1000, stream.length]) {
    const packets = new Packets();
    const found = [];
    for (let at = 0; at < stream.length; at += step) found.push(...packets.feed(stream.subarray(at, at + step)));
    assert.deepEqual(found.map((one) => one?.id), [6, 8]);
    assert.deepEqual(found[0]?.value, value);
  }
  assert.deepEqual([...new Packets().feed(Buffer.from([255, 255, 255, 255]))], [null]);
});

test('the helper for modules is replaced without moving a line', () => {
  const original = 'var __toESM = (mod, isNodeMode, target) => (target = {}, __copyProps(\n  // a comment\n  target,\n  mod\n));\nvar after = 1;';
  const replaced = makeModulesCallable(original);
  assert.equal(replaced.split('\n').length, original.split('\n').length);
  assert.equal(replaced.split('\n')[5], 'var after = 1;');
  const toESM = new Function(`${replaced}; return __toESM`)();
  const module = Object.assign((/** @type {number} */ n) => n + 1, { floor: Math.floor });
  const namespace = toESM(module);
  assert.deepEqual([namespace(1), namespace.floor(1.5), namespace.default(1), 'default' in namespace], [2, 1, 2, true]);
  assert.equal(toESM({ __esModule: true, default: 5 }).default, 5);
  assert.equal(toESM({ a: 1 }).default.a, 1);
  assert.equal(toESM({ __esModule: true, a: 1 }).default.a, 1, 'a module without a default export is the default, as in Node');
  assert.equal(new (toESM(class { x = 3; }))().x, 3);
});

test('an ES module of esbuild becomes the body of a function', () => {
  const text = 'import fs, { readFileSync as r } from "node:fs";\nimport * as os from "os";\nimport "util";\nvar a = await 1;\nexport {\n  a,\n  fs as default\n};\n';
  assert.equal(
    asFunctionBody(text),
    'var fs = require("node:fs"), { readFileSync: r } = require("node:fs");\nvar os = require("os");\nrequire("util");\nvar a = await 1;\n' +
      'module.exports = { __esModule: true, "a": a, "default": fs };',
  );
});

test('frames survive any cut of the stream', () => {
  const frames = [encode({ type: 'a', text: 'é🎉' }, ''), encode({ type: 'b' }, '{"x":"ü"}'), encode({ type: 'c' }, 'x'.repeat(100_000))];
  const stream = Buffer.concat(frames);
  for (const step of [1, 7, 8, 9, 1000, stream.length]) {
    const decoder = new FrameDecoder();
    const found = [];
    for (let at = 0; at < stream.length; at += step) found.push(...decoder.feed(stream.subarray(at, at + step)));
    assert.deepEqual(found.map((one) => one.header.type), ['a', 'b', 'c']);
    assert.equal(found[1].body.toString(), '{"x":"ü"}');
    assert.equal(found[2].body.length, 100_000);
  }
});

test('bytes that are not a frame are refused when their lengths have arrived', () => {
  for (const bytes of [[255, 255, 255, 255, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 2, 127, 255, 255, 255]]) {
    assert.throws(() => new FrameDecoder().feed(Buffer.from(bytes)), FrameError);
  }
  assert.throws(() => encode({ type: 'x', text: 'y'.repeat(3 << 20) }, ''), FrameError);
});

test('a stack is cut to the lines of the user, whatever the message says', () => {
  const positions = new Positions('\n'.repeat(9), 'evaluator.js', '');
  const stack = [
    'TypeError: bad\n    at fake (evaluator.js:9:9)', '    at helper (evaluator.js:3:24)', '    at Object.evaluate (evaluator.js:6:10)',
    '    at async Promise.all (index 0)', '    at eval (eval at main (evaluator.js:7:1), <anonymous>:1:1)', '    at accessor (evaluator.js:11:1)',
    '    at call (runner:guest:1:1)', '    at node:internal/timers:1:1',
  ].join('\n');
  const { place, traceback } = positions.trace({ type: 'TypeError', message: 'bad\n    at fake (evaluator.js:9:9)', stack, code: '', syscall: '' });
  assert.deepEqual(place, { line: 3, column: 24 });
  assert.deepEqual(traceback?.split('\n').slice(2), ['    at helper (evaluator.js:3:24)', '    at evaluate (evaluator.js:6:10)', '    at (evaluator.js:7:1)']);
});
