// @ts-check
'use strict';
/**
 * Lists the parts of Node that a row may use, and the consequences of using each. Some parts keep all their state in
 * properties, which can be checked. After the use of any other part the worker is replaced.
 */
const nodeModule = require('node:module');
const types = require('node:util').types;
const { workerData } = require('node:worker_threads');
const { captureChildStderr } = require('./stderr_capture.cjs');
const unreached = require('./unreached.cjs');

let childrenDiverted = false;

/**
 * What follows when a row gets a part of Node: the row can wait for something, the row can leave files behind, or the part has state, which is hidden
 * or which `module_state.cjs` resets.
 */
const WAITS = 1;
const FILES = 2;
const HIDES = 4;
const RESETS = 8;

/** @type {Record<string, number>} */
const MODULES = {
  assert: 0, 'assert/strict': 0, buffer: 0, constants: 0, crypto: WAITS, events: 0, fs: WAITS | FILES, 'fs/promises': WAITS | FILES,
  os: RESETS, path: 0, 'path/posix': 0, 'path/win32': 0, perf_hooks: RESETS | WAITS, punycode: 0, querystring: 0, stream: RESETS | WAITS,
  'stream/consumers': WAITS, 'stream/promises': WAITS, 'stream/web': WAITS, string_decoder: 0, 'timers/promises': WAITS, url: 0,
  util: 0, 'util/types': 0, zlib: WAITS,
};

/** @type {Record<string, number>} */
const GLOBALS = {
  Buffer: 0, URL: 0, URLSearchParams: 0, URLPattern: 0, TextEncoder: 0, TextDecoder: 0, AbortController: 0, AbortSignal: WAITS, Event: 0,
  EventTarget: 0, CustomEvent: 0, MessageChannel: WAITS, MessagePort: WAITS, MessageEvent: 0, BroadcastChannel: HIDES | WAITS,
  Blob: WAITS, File: WAITS, FormData: 0, Headers: 0, Request: WAITS, Response: WAITS, fetch: HIDES | WAITS, WebSocket: HIDES | WAITS,
  EventSource: HIDES | WAITS, performance: RESETS, PerformanceEntry: 0, PerformanceMark: 0, PerformanceMeasure: 0,
  PerformanceObserver: RESETS | WAITS, atob: 0, btoa: 0, crypto: WAITS, Crypto: 0, CryptoKey: 0, SubtleCrypto: 0, ReadableStream: WAITS,
  WritableStream: WAITS, TransformStream: WAITS, ByteLengthQueuingStrategy: 0, CountQueuingStrategy: 0, TextEncoderStream: WAITS,
  TextDecoderStream: WAITS, CompressionStream: WAITS, DecompressionStream: WAITS, DOMException: 0, navigator: 0,
};

/** Names that are defined inside the context, by guest/globals.js and guest/rows.js. */
const OWN_GLOBALS = [
  'console', 'process', 'require', 'global', 'structuredClone', 'queueMicrotask', 'setTimeout', 'setInterval', 'setImmediate',
  'clearTimeout', 'clearInterval', 'clearImmediate', 'module', 'exports', '__filename', '__dirname',
  'WebAssembly', 'Atomics',
];

const NAMES = [...OWN_GLOBALS, ...Object.keys(GLOBALS)];

/** @param {string} id @returns {{value: any, follows: number} | undefined} */
function builtin(id) {
  if (!nodeModule.isBuiltin(id)) return undefined;
  const name = id.startsWith('node:') ? id.slice(5) : id;
  const value = require(`node:${name}`);
  if (name === 'child_process' && !childrenDiverted) {
    captureChildStderr(value, workerData.descriptors.errors);
    childrenDiverted = true;
  }
  return handedOut(value, MODULES[name] ?? WAITS | FILES | HIDES);
}

/** @param {string} name @returns {{value: any, follows: number}} */
function globalOf(name) {
  return handedOut(/** @type {any} */ (globalThis)[name], GLOBALS[name] ?? HIDES);
}

/** @param {any} value @param {number} follows */
function handedOut(value, follows) {
  if (follows & RESETS) require('./module_state.cjs'); // loaded before a row can change the state that this module records
  if (follows & HIDES) unreached.watch();
  return { value, follows };
}

const BRANDS = /** @type {[string, (value: unknown) => boolean][]} */ ([
  ['view', ArrayBuffer.isView], ['Map', types.isMap], ['Set', types.isSet], ['Date', types.isDate], ['Promise', types.isPromise],
  ['RegExp', types.isRegExp], ['Error', types.isNativeError], ['Number', types.isNumberObject], ['String', types.isStringObject],
  ['Boolean', types.isBooleanObject], ['BigInt', types.isBigIntObject], ['Symbol', types.isSymbolObject],
  ['ArrayBuffer', types.isArrayBuffer], ['SharedArrayBuffer', types.isSharedArrayBuffer], ['generator', types.isGeneratorObject],
  ['WeakMap', types.isWeakMap], ['WeakSet', types.isWeakSet], ['Map iterator', types.isMapIterator], ['Set iterator', types.isSetIterator],
]);

/** Return the true class of a value, whatever prototype it has; '' for an ordinary object. @param {unknown} value */
function brandOf(value) {
  for (const [name, is] of BRANDS) if (is(value)) return name;
  return '';
}

/** @type {Record<string, (value: any) => boolean>} */
const NODES = {
  Error: (value) => types.isNativeError(value),
  Promise: (value) => types.isPromise(value),
  Uint8Array: (value) => types.isUint8Array(value),
  ArrayBuffer: (value) => types.isArrayBuffer(value),
  Map: (value) => types.isMap(value),
  Set: (value) => types.isSet(value),
  Date: (value) => types.isDate(value),
  RegExp: (value) => types.isRegExp(value),
  Array: (value) => Array.isArray(value),
  Function: (value) => typeof value === 'function',
  Object: (value) => (typeof value === 'object' && value !== null && value instanceof Object) || typeof value === 'function',
};

/** Return whether a value of another realm belongs to a class. @param {unknown} value @param {string} brand */
function isNodes(value, brand) {
  return NODES[brand](value);
}

module.exports = { WAITS, FILES, HIDES, RESETS, NAMES, builtin, globalOf, brandOf, isNodes, isBuiltin: nodeModule.isBuiltin, builtinModules: nodeModule.builtinModules };
