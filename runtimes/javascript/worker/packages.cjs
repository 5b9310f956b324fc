// @ts-check
'use strict';
/**
 * Opens files of the package set that are not in the bundle: native addons, WebAssembly, and modules whose names are
 * known only at run time. Every row runs a module again; an addon is loaded once in a thread, whose rows share the addon.
 */
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');
const { createRequire } = require('node:module');
const { fileURLToPath } = require('node:url');
const { workerData } = require('node:worker_threads');
const { FILES, WAITS } = require('./builtins.cjs');

/**
 * @typedef {{kind: 'addon', found: {value: any, follows: number}} | {kind: 'bytes', bytes: Buffer} | {kind: 'json', text: string}
 *   | {kind: 'module', run: vm.Script}} Opened
 */

const { packages: root, esbuild, memoryMb } = workerData.tools;
const FROM_ROOT = `${root}/evaluator.js`;
const PARAMETERS = '(function (exports, require, module, __filename, __dirname) {';
const IMPORT = new Set(['node', 'import', 'module-sync']);

/** @type {Map<string, Opened>} modules that were compiled in this thread, by file */
const opened = new Map();

/**
 * Find a module as Node does, from `from` or else from the evaluator, because an addon's loader may have another
 * `require`.
 *
 * @param {string} id
 * @param {string} from a file or its URL
 * @returns {string} its file, or ''
 */
function locate(id, from) {
  if (root === null) return '';
  const base = from.startsWith('file:') ? fileURLToPath(from) : from;
  const places = base.startsWith(`${root}/`) ? [base, FROM_ROOT] : [FROM_ROOT];
  for (const place of places) {
    const require = /** @type {any} */ (createRequire(place));
    for (const options of [undefined, { conditions: IMPORT }]) {
      try {
        return require.resolve(id.startsWith('file:') ? fileURLToPath(id) : id, options);
      } catch {
        // no module was found from this file
      }
    }
  }
  return '';
}

/** @param {string} file @returns {Opened} */
function open(file) {
  const known = opened.get(file) ?? openNew(file);
  opened.set(file, known);
  return known;
}

/** @param {string} file @returns {Opened} */
function openNew(file) {
  switch (path.extname(file)) {
    case '.node': return { kind: 'addon', found: { value: require(file), follows: WAITS | FILES } };
    case '.wasm': return { kind: 'bytes', bytes: fs.readFileSync(file) };
    case '.json': return { kind: 'json', text: fs.readFileSync(file, 'utf8') };
    default: return { kind: 'module', run: compile(file) };
  }
}

/** Bundle an ES module with its imports. @param {string} file */
function compile(file) {
  const source = path.extname(file) === '.mjs' ? null : fs.readFileSync(file, 'utf8');
  try {
    if (source !== null) return script(source.replace(/^#!.*/, ''), file);
  } catch (error) {
    if (!(error instanceof SyntaxError) || esbuild === null) throw error;
  }
  return script(require('../bundle.mjs').buildFile(file, { esbuild, packages: root, memoryMb }), file);
}

/** @param {string} source @param {string} file */
function script(source, file) {
  return new vm.Script(`${PARAMETERS}${source}\n})`, { filename: file, columnOffset: -PARAMETERS.length });
}

module.exports = { locate, open };
