// @ts-check
'use strict';
/**
 * Holds the state that both threads read while user code blocks the worker: the worker writes which row runs and since
 * when, the supervisor writes which rows were cancelled before they began.
 */

const MARKS = 128; // room for marks of cancelled rows; larger than the maximum number of unanswered rows
const BYTES = 16 + MARKS * 4;

class SharedState {
  /** @param {SharedArrayBuffer} shared */
  constructor(shared) {
    this.since = new Float64Array(shared, 0, 1);
    this.marks = new Int32Array(shared, 8);
  }

  static allocate() {
    return new SharedArrayBuffer(BYTES);
  }

  /** Return the number of the row that is running or ran last; -1 before the first row. */
  get current() {
    return Atomics.load(this.marks, 0) - 1;
  }

  /** Return the milliseconds since the current row began. */
  get elapsed() {
    return now() - this.since[0];
  }

  /** @param {number} seq */
  begin(seq) {
    this.since[0] = now();
    Atomics.store(this.marks, 0, seq + 1);
  }

  /** @param {number} seq */
  skip(seq) {
    Atomics.store(this.marks, 2 + (seq % (MARKS - 2)), seq);
  }

  /** @param {number} seq */
  isSkipped(seq) {
    return seq !== 0 && Atomics.load(this.marks, 2 + (seq % (MARKS - 2))) === seq;
  }
}

/** Return the time of a clock that both threads share. */
function now() {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}

module.exports = { SharedState };
