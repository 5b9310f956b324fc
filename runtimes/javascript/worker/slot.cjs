// @ts-check
'use strict';
/**
 * One context and its state: its timers, the parts of Node that it was given, and whether its promise can still settle.
 * A slot serves one row, or the consecutive rows of one batch.
 */
const { RowConsole } = require('./output.cjs');
const { WAITS, FILES, HIDES, RESETS } = require('./builtins.cjs');

/** @typedef {{type: string, message: string, stack: string, code: string, syscall: string}} Thrown */
/** @typedef {(code: string, payload: string | Thrown | null) => void} Done */

const NEVER = 'the promise it returned can never settle: no timer and no operation is left that could do it';

/** The timers of one slot, by the number that user code sees. */
class Timers {
  #count = 0;
  /** @type {Map<number, any>} */
  #running = new Map();
  #after;

  /** @param {() => void} after a function that is called after a timer has fired */
  constructor(after) {
    this.#after = after;
  }

  get size() {
    return this.#running.size;
  }

  next() {
    return ++this.#count;
  }

  /** @param {number} id @param {string} kind @param {() => void} fire @param {number} delay */
  start(id, kind, fire, delay) {
    const once = () => {
      this.#running.delete(id);
      this.#after();
      fire();
    };
    if (kind === 'interval') this.#running.set(id, setInterval(fire, delay));
    else this.#running.set(id, kind === 'immediate' ? setImmediate(once) : setTimeout(once, delay));
  }

  /** @param {number} id */
  stop(id) {
    const timer = this.#running.get(id);
    if (timer === undefined || !this.#running.delete(id)) return;
    clearTimeout(timer);
    clearImmediate(timer);
    this.#after();
  }

  /** @param {number} id @param {boolean} holds whether the program waits for the timer */
  hold(id, holds) {
    if (holds) this.#running.get(id)?.ref();
    else this.#running.get(id)?.unref();
  }

  stopAll() {
    for (const timer of this.#running.values()) {
      clearTimeout(timer);
      clearImmediate(timer);
    }
    this.#running.clear();
  }
}

class Slot {
  /**
   * @param {import('./output.cjs').Output} output
   * @param {import('./integrity.cjs').Integrity} integrity
   * @param {(code: number) => void} exit
   * @param {boolean} isProgram whether the code runs until its event loop is empty, and returns nothing
   */
  constructor(output, integrity, exit, isProgram) {
    this.isProgram = isProgram;
    /** @type {string[]} arguments of a program */
    this.argv = [];
    this.console = new RowConsole(output);
    this.integrity = integrity;
    this.over = false;
    this.follows = 0;
    this.exit = exit;
    this.timers = new Timers(() => this.#look());
    /** @type {any} */
    this.context = null;
    /** @type {any} the functions of guest/rows.js */
    this.guest = null;
    /** @type {string | null} the batch it serves */
    this.share = null;
    this.started = false;
    /** @type {{module: string, stack: string}[]} missing modules that the code has imported */
    this.missing = [];
    /** @type {string[]} missing keys of `appParams` that the code has read */
    this.unset = [];
    /** @type {string[]} unset variables for API keys that the code has read */
    this.keys = [];
    /** @type {Done | null} */
    this.done = null;
    this.#waiting = false;
  }

  #waiting;

  /** @param {{value: any, follows: number}} found */
  hand(found) {
    this.follows |= found.follows;
    this.integrity.hand(found.value);
    return found.value;
  }

  /** Return the missing modules that code has imported since the last call. */
  takeMissing() {
    const found = this.missing;
    this.missing = [];
    return found;
  }

  /** Return the missing keys of `appParams` that code has read since the last call. */
  takeUnset() {
    const found = this.unset;
    this.unset = [];
    return found;
  }

  /** Return the unset variables for API keys that code has read since the last call. */
  takeKeys() {
    const found = this.keys;
    this.keys = [];
    return found;
  }

  get leavesFiles() {
    return (this.follows & FILES) !== 0;
  }

  get hidesState() {
    return (this.follows & HIDES) !== 0;
  }

  get changesModules() {
    return (this.follows & RESETS) !== 0;
  }

  get waits() {
    return (this.follows & WAITS) !== 0;
  }

  /** @param {Done} done a function that gets the outcome of the row, and errors that occur later */
  expect(done) {
    this.done = (code, payload) => {
      this.#waiting = false;
      done(code, payload);
    };
    return this.done;
  }

  /** @param {boolean} waits whether only a promise can bring the outcome now */
  wait(waits) {
    this.#waiting = waits && !this.isProgram;
    this.#look();
  }

  /** Record that the row has an outcome. */
  rest() {
    this.#waiting = false;
    this.done = null;
    this.timers.stopAll();
  }

  /** If the row waits for something that can no longer happen, end the row. Call this after all callbacks that are due have run. */
  #look() {
    if (!this.#waiting || this.waits || this.timers.size > 0) return;
    setImmediate(() => {
      if (!this.#waiting || this.waits || this.timers.size > 0 || this.over) return;
      this.done?.('timeout', { type: '', message: NEVER, stack: '', code: '', syscall: '' });
    });
  }
}

module.exports = { Slot };
