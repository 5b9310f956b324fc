// @ts-check
'use strict';
/**
 * What the supervisor must know of the worker while user code keeps it from answering: which row runs, since when, and,
 * the other way, which rows were cancelled before they began.
 */

const MARKS = 128; // more than rows may be unanswered
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

  /** The row that runs or ran last, -1 before the first. */
  get current() {
    return Atomics.load(this.marks, 0) - 1;
  }

  /** Milliseconds since it began. */
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

/** One clock for both threads. */
function now() {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}

module.exports = { SharedState };
