// @ts-check
'use strict';
/**
 * Keeps the output of a row in memory shared with the supervisor, which can read it even after the worker has ended.
 * Each stream keeps at most `log_kb`.
 */
const fs = require('node:fs');
const util = require('node:util');
const { Console } = require('node:console');

const HEADER_BYTES = 16; // a header of three Int32: bytes of stdout, bytes of stderr, whether the output was truncated
const TO_STDERR = new Set(['warn', 'error', 'trace', 'assert']);
const PLAIN = new Set(['log', 'info', 'debug', 'warn', 'error']);
const METHODS = [
  'log', 'info', 'debug', 'warn', 'error', 'trace', 'assert', 'dir', 'dirxml', 'table', 'group', 'groupCollapsed', 'groupEnd',
  'count', 'countReset', 'time', 'timeLog', 'timeEnd', 'clear', 'timeStamp', 'profile', 'profileEnd',
];

class Output {
  /** @param {SharedArrayBuffer} shared @param {number} errorsFd descriptor of the file with the output that user code writes to descriptor 2 */
  constructor(shared, errorsFd) {
    this.counts = new Int32Array(shared, 0, 3);
    this.limit = (shared.byteLength - HEADER_BYTES) / 2;
    this.streams = [Buffer.from(shared, HEADER_BYTES, this.limit), Buffer.from(shared, HEADER_BYTES + this.limit, this.limit)];
    this.files = [1, errorsFd];
  }

  /** @param {number} stream 0 or 1 @param {string | Uint8Array} chunk */
  write(stream, chunk) {
    const used = this.counts[stream];
    const left = this.limit - used;
    if (left <= 0 || chunk.length > left) this.counts[2] = 1;
    if (left <= 0) return;
    if (typeof chunk === 'string') {
      const text = chunk.length > left ? chunk.slice(0, left) : chunk;
      this.counts[stream] += this.streams[stream].write(text, used, left, 'utf8');
      if (text.length * 3 > left && Buffer.byteLength(text) > left) this.counts[2] = 1;
    } else {
      this.streams[stream].set(chunk.subarray(0, left), used);
      this.counts[stream] += Math.min(chunk.length, left);
    }
  }

  /** Add output that reached descriptors 1 and 2 directly, for example from children, and empty the files. */
  collectFiles() {
    this.files.forEach((fd, stream) => {
      try {
        const { size } = fs.fstatSync(fd);
        if (size === 0) return;
        const held = Buffer.alloc(Math.min(size, this.limit + 1));
        const read = fs.readSync(fd, held, 0, held.length, 0);
        fs.ftruncateSync(fd, 0);
        this.write(stream, held.subarray(0, read));
      } catch {
        // the file could not be made, or user code closed it: there is nothing to read
      }
    });
  }

  /** Return the output of the row, and forget it. @returns {[string, string, boolean] | null} */
  take() {
    if (this.counts[0] === 0 && this.counts[1] === 0 && this.counts[2] === 0) return null;
    /** @type {[string, string, boolean]} */
    const logs = [
      this.streams[0].toString('utf8', 0, this.counts[0]),
      this.streams[1].toString('utf8', 0, this.counts[1]),
      this.counts[2] === 1,
    ];
    this.counts.fill(0);
    return logs;
  }
}

/** The console of one row: it formats plain values itself and uses Node's own Console for the rest. */
class RowConsole {
  /** @param {Output} output */
  constructor(output) {
    this.output = output;
    /** @type {any} */
    this.full = null;
  }

  /** @param {string} method @param {any[]} parts a list from the user's realm, so it must not be iterated or spread */
  print(method, parts) {
    if (PLAIN.has(method) && this.full === null) {
      const text = parts.length === 1 && typeof parts[0] === 'string' ? parts[0] : Reflect.apply(util.format, undefined, parts);
      this.output.write(TO_STDERR.has(method) ? 1 : 0, `${text}\n`);
    } else if (method === 'trace') {
      this.output.write(1, `Trace: ${Reflect.apply(util.format, undefined, parts)}\n`);
    } else {
      this.full ??= new Console({ stdout: sink(this.output, 0), stderr: sink(this.output, 1), colorMode: false, ignoreErrors: false });
      const action = this.full[method];
      if (typeof action === 'function') Reflect.apply(action, this.full, parts);
    }
  }
}

/** @param {Output} output @param {number} stream @returns {any} the members of a stream that Console uses */
function sink(output, stream) {
  const made = {
    /** @param {string} text */
    write(text) {
      output.write(stream, text);
      return true;
    },
  };
  return made;
}

module.exports = { Output, RowConsole, METHODS };
