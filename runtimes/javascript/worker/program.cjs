// @ts-check
'use strict';
/**
 * Runs a program for one row: its arguments and environment are set before its first line, and it ends when its event
 * loop is empty, as in Node.
 */

/** @typedef {{argv?: string[], env?: Record<string, string>}} Given */

const UNSETTLED = 13; // Node's exit code for a top-level `await` that can never end

class ProgramRun {
  #port;
  #slot;
  #before = { ...process.env };
  #settled = false;
  #onEmpty = () => this.#empty();
  /** @type {(code: string, payload: any) => void} */
  #done = () => {};

  /** @param {import('node:worker_threads').MessagePort} port the port that keeps the event loop alive between programs @param
   * {import('./slot.cjs').Slot} slot */
  constructor(port, slot) {
    this.#port = port;
    this.#slot = slot;
  }

  /** @param {Given} given @param {Function} program @param {(code: string, payload: any) => void} done */
  start({ argv, env }, program, done) {
    this.#done = (code, payload) => done(code === 'load_error' ? 'user_exception' : code, payload);
    this.#slot.argv = argv ?? [];
    process.argv.splice(2, Infinity, ...this.#slot.argv); // Node's own modules read these arguments
    Object.assign(process.env, env);
    this.#port.unref();
    process.on('beforeExit', this.#onEmpty);
    this.#slot.guest.start(program, () => (this.#settled = true), this.#done);
  }

  /** Undo what was set up for the program. */
  end() {
    process.off('beforeExit', this.#onEmpty);
    this.#port.ref();
    for (const name of Object.keys(process.env)) if (!(name in this.#before)) delete process.env[name];
    Object.assign(process.env, this.#before);
  }

  #empty() {
    this.#port.ref();
    const { code, payload } = this.#left();
    this.#done(code, payload);
  }

  /** @returns {{code: string, payload: any}} the error that an `exit` listener of the program has thrown, or else the exit code */
  #left() {
    if (!this.#settled) this.#slot.console.print('warn', ['Warning: Detected unsettled top-level await']);
    try {
      return { code: '', payload: this.#slot.guest.leave(this.#settled ? 0 : UNSETTLED) };
    } catch (thrown) {
      return { code: 'user_exception', payload: this.#slot.guest.describe(thrown) };
    }
  }
}

module.exports = { ProgramRun };
