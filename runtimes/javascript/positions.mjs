// @ts-check
/** Converts the positions of V8's errors to positions in the user's code by source maps, and leaves out frames of other code. */

import { MADE } from './absent.mjs';
import { madeNames, moduleHint, namesCode, withOwnNames } from './made_names.mjs';

const { SourceMap } = process.getBuiltinModule('node:module');

/**
 * @typedef {{type: string, message: string, stack: string, code: string, syscall: string}} Thrown
 * @typedef {{code: string, message: string, type: string | null, line: number | null, column: number | null,
 *   traceback: string | null, hint: string | null}} Failure
 * @typedef {{line: number, column: number | null}} Place
 */

export const SCRIPT = 'evaluator.js';
const TRACEBACK = 16_000;
const MESSAGE = 4096;
const MOST_MISSING = 20;
const RENAMED = /(?<![\w$])[A-Za-z_$][\w$]*?\d+(?![\w$])/g;
const FRAME = /^\s+at (?:(.*?) \()?.*?\bevaluator\.js:(\d+):(\d+)/;

/** Maps positions in one evaluator's compiled program to the user's code. */
export class Positions {
  /** @type {import('node:module').SourceMap | null} */
  #map = null;
  /** @type {string[] | null} lines of the script */
  #lines = null;
  /** The latest message with names, kept because rows often fail for the same reason. @type {{key: string, said: {message: string, hint: string | null}}} */
  #last = { key: '', said: { message: '', hint: null } };

  /**
   * @param {string} code the user's code
   * @param {string} shownName
   * @param {string} mapText a source map as JSON, or ''
   * @param {string[]} files paths of the files that came with the evaluator
   * @param {string} script the code as esbuild has compiled it, or ''
   * @param {{module: string, line: number, file?: string}[]} imports missing imports of the code and its files
   */
  constructor(code, shownName, mapText, files = [], script = '', imports = []) {
    this.imports = imports;
    this.files = new Set(files);
    this.code = code;
    this.script = script;
    this.lineCount = code.split('\n').length;
    this.shownName = shownName;
    this.mapText = mapText;
  }

  /** @param {number} line @param {number | null} column both of the compiled script, from 1 @returns {Place | null} */
  original(line, column) {
    const found = this.#find(line, column);
    return found !== null && found.file === this.shownName ? found.place : null;
  }

  /**
   * Return the missing modules that the user's own code imports, without those that only packages in the bundle import.
   *
   * @param {unknown} recorded a `{module, stack}` for each missing module, which user code may have changed
   * @returns {{module: string, line: number, file?: string}[]}
   */
  missingImports(recorded) {
    const found = new Map();
    for (const one of Array.isArray(recorded) ? recorded.slice(0, MOST_MISSING) : []) {
      if (typeof one?.module !== 'string' || typeof one.stack !== 'string') continue;
      const asked = this.#asker(one.stack);
      if (asked === null || found.has(one.module)) continue;
      const written = asked.file === this.shownName ? this.imports.find(({ module, file }) => file === undefined && module === one.module) : null;
      found.set(one.module, { module: one.module, line: written?.line ?? asked.place.line, ...(asked.file === this.shownName ? {} : { file: asked.file }) });
    }
    return [...found.values()];
  }

  /** Return the place of the innermost frame whose source is known, or null if that source is not the user's. @param {string} stack */
  #asker(stack) {
    for (const line of stack.split('\n').slice(0, 50)) {
      const match = line.includes(MADE) ? null : FRAME.exec(line);
      if (!match) continue;
      const found = this.#find(Number(match[2]), Number(match[3]));
      if (found !== null || this.#hasSource(Number(match[2]), Number(match[3]))) return found;
    }
    return null;
  }

  /** @param {number} line @param {number} column both of the compiled script, from 1 */
  #hasSource(line, column) {
    return this.#map !== null && /** @type {any} */ (this.#map.findEntry(line - 1, column - 1)).originalSource !== undefined;
  }

  /** Return the part of a compiled script that is the user's code, without the modules that are bundled before this code. @param {string} script */
  own(script) {
    return script.slice(Math.max(0, script.lastIndexOf(`\n// ${this.shownName}\n`)));
  }

  /** Return the place in the user's code where a function of the compiled script begins. @param {string} script @param {string} text of the function @returns {Place | null} */
  start(script, text) {
    const at = script.indexOf(text);
    if (at < 0) return null;
    const before = script.slice(0, at);
    return this.original(before.split('\n').length, at - before.lastIndexOf('\n'));
  }

  /**
   * Return the source of a function with the names that the user wrote, because esbuild renames a parameter if a
   * bundled package has the same name at its top level.
   *
   * @param {string} script @param {string} text text of the function in the script
   */
  asWritten(script, text) {
    const at = this.mapText === '' || text.search(RENAMED) < 0 ? -1 : script.indexOf(text);
    if (at < 0) return text;
    const map = (this.#map ??= new SourceMap(JSON.parse(this.mapText)));
    const before = script.slice(0, at).split('\n');
    const [first, column] = [before.length - 1, (before.at(-1) ?? '').length];
    return text.split('\n').map((line, index) => line.replace(RENAMED, (found, ...more) => {
      const from = more.at(-2) + (index === 0 ? column : 0);
      const { name, generatedLine, generatedColumn } = /** @type {any} */ (map.findEntry(first + index, from));
      return name && generatedLine === first + index && generatedColumn === from ? name : found;
    })).join('\n');
  }

  /** Return a place in the evaluator's code or in one of its files. @param {number} line @param {number | null} column @returns {{file: string, place: Place} | null} */
  #find(line, column) {
    if (this.mapText === '') return inFile(this.shownName, this.within(line, column));
    this.#map ??= new SourceMap(JSON.parse(this.mapText));
    const entry = /** @type {any} */ (this.#map.findEntry(line - 1, (column ?? 1) - 1));
    const file = entry.originalSource ?? '';
    const found = { line: entry.originalLine + 1, column: column === null ? null : entry.originalColumn + 1 };
    if (this.files.has(file)) return { file, place: found };
    const isOwn = file === this.shownName || /(^|\/)evaluator\.[jt]s$/.test(file);
    return isOwn ? inFile(this.shownName, this.within(found.line, found.column)) : null;
  }

  /** Return a place in the user's code, or null for the accessor after it. @param {number | null} line @param {number | null} column */
  within(line, column) {
    return line === null || line > this.lineCount ? null : { line, column };
  }

  /**
   * Return V8's message with the names that the user wrote, and a hint if it is about an ES module as a whole.
   *
   * @param {Thrown} thrown
   * @returns {{message: string, hint: string | null}}
   */
  named(thrown) {
    const { type, message } = thrown;
    const frame = this.script !== '' && this.mapText !== '' && namesCode(type, message) ? stackLines(thrown).map((line) => FRAME.exec(line)).find(Boolean) : null;
    if (!frame) return { message, hint: null };
    const key = `${frame[2]}:${frame[3]} ${message}`;
    if (this.#last.key !== key) this.#last = { key, said: this.#named(message, Number(frame[2]), Number(frame[3])) };
    return this.#last.said;
  }

  /** @param {string} message @param {number} line @param {number} column both of the compiled script, from 1 */
  #named(message, line, column) {
    this.#lines ??= this.script.split('\n');
    const found = this.#find(line, column);
    const map = /** @type {import('node:module').SourceMap} */ (this.#map);
    const names = madeNames(this.#lines, line - 1, (...at) => map.findEntry(...at));
    const written = found?.file === this.shownName ? expressionAt(this.code, found.place) : '';
    const hint = moduleHint(message, this.script, this.#lines.slice(Math.max(0, line - 6), line).join('\n'));
    return { message: withOwnNames(message, names, written), hint };
  }

  /** @param {Thrown} thrown @param {string} [message] the message to show @returns {{place: Place | null, traceback: string | null}} */
  trace(thrown, message = thrown.message) {
    const head = `${thrown.type}: ${message}`;
    if (thrown.stack === '') return { place: null, traceback: null };
    if (thrown.type === 'SyntaxError') {
      const place = this.#syntaxPlace(thrown.stack);
      if (place) return { place, traceback: null };
    }
    const frames = [];
    let first = null;
    for (const line of stackLines(thrown)) {
      const match = FRAME.exec(line);
      const found = match && this.#find(Number(match[2]), Number(match[3]));
      if (!match || !found) continue;
      if (found.file === this.shownName) first ??= found.place;
      frames.push(`    at ${frameName(match[1] ?? '')}(${found.file}:${found.place.line}:${found.place.column})`);
    }
    return { place: first, traceback: frames.length ? cut([head, ...frames].join('\n'), TRACEBACK) : null };
  }

  /** Read the place of a syntax error: V8 puts the line number before the message, and marks the column by a caret. @param {string} stack */
  #syntaxPlace(stack) {
    const match = /^evaluator\.js:(\d+)\n(.*)\n( *)\^/.exec(stack);
    if (!match) return null;
    return this.original(Number(match[1]), match[3].length + 1) ?? { line: this.lineCount, column: null };
  }
}

/** @param {string} file @param {Place | null} place */
function inFile(file, place) {
  return place === null ? null : { file, place };
}

/** Return the name at a place, with the names of the objects around it (`a.b.c`); '' if there is none. @param {string} code @param {Place} place */
function expressionAt(code, { line, column }) {
  const at = (column ?? 1) - 1;
  const found = [...(code.split('\n')[line - 1] ?? '').matchAll(/[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)*/g)];
  return found.find((one) => one.index <= at && at < one.index + one[0].length)?.[0] ?? '';
}

/** Return a frame's name followed by a space; '' if V8 has made up the name. @param {string} found */
function frameName(found) {
  const name = found.replace(/ ?\[as .*\]$/, '').replace(/^((?:async )?)Object\./, '$1');
  return name === '' || /^(?:async )?(?:eval|<anonymous>)$/.test(name) ? '' : `${name} `;
}

/** Return the frames of a stack without the message, which may have lines that look like frames. @param {Thrown} thrown */
function stackLines({ stack, message }) {
  const at = message === '' ? -1 : stack.indexOf(message.slice(0, 1000));
  return (at < 0 ? stack : stack.slice(at + Math.min(message.length, 1000))).split('\n').slice(0, 500);
}

/**
 * @param {string} code
 * @param {string} message
 * @param {Partial<Failure>} [more]
 * @returns {Failure}
 */
export function failure(code, message, more = {}) {
  return { code, message: cut(message, MESSAGE), type: null, line: null, column: null, traceback: null, hint: null, ...more };
}

/**
 * Return the failure for a value that user code threw.
 *
 * @param {string} code error code of the worker; another code replaces it if the error shows that a limit was reached
 * @param {Thrown} thrown
 * @param {Positions} positions
 * @returns {Failure}
 */
export function thrownFailure(code, thrown, positions) {
  const { message, hint } = positions.named(thrown);
  const { place, traceback } = positions.trace(thrown, message);
  const limit = limitOf(thrown);
  const stray = code === 'unhandled_rejection';
  return failure(limit?.code ?? (stray ? 'user_exception' : code), message || thrown.type, {
    type: thrown.type || null,
    line: place?.line ?? null,
    column: place?.column ?? null,
    traceback,
    hint: limit?.hint ?? (stray ? 'a promise was rejected and nothing awaited it; await it or catch the error' : hint),
  });
}

/** Return the code for an error that means a limit of the sandbox was hit, else null. @param {Thrown} thrown @returns {{code: string, hint: string} | null} */
function limitOf({ code, syscall, type, message }) {
  if (code === 'ENOSPC' || code === 'EDQUOT') return { code: 'disk_limit', hint: 'write less to /tmp, or raise limits.disk_mb' };
  if (code === 'EAGAIN' && /^spawn|^fork/.test(syscall)) return { code: 'process_limit', hint: 'start fewer processes, or raise limits.processes' };
  if (code === 'ENOMEM' || code === 'ERR_WORKER_OUT_OF_MEMORY' || (type === 'RangeError' && /allocation failed/i.test(message))) {
    return { code: 'memory_limit', hint: 'use less memory at once, or raise limits.memory_mb' };
  }
  return null;
}

/** @param {string} text @param {number} length */
function cut(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
