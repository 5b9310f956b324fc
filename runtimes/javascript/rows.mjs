// @ts-check
/**
 * Runs the calls of one loaded evaluator: sends them to the worker in order, a few ahead, and answers them in order,
 * even when the worker ends. It also checks the time and the memory of the running row.
 */
import { crashFailure, exitFailure, memoryFailure, rowFailure, shapeLogs, shapeMs, timeoutFailure } from './answers.mjs';
import { die } from './channel.mjs';
import { tellOperator } from './descriptors.mjs';
import { failure } from './positions.mjs';
import { giveInput } from './standard_input.mjs';
import { peakMemoryKb } from './worker/peak_memory.cjs';

/**
 * @typedef {{id: string, seq: number, timeoutMs: number, share: string | null, args: string, cancelled: boolean, sent: boolean}} Call
 * @typedef {import('./positions.mjs').Failure} Failure
 * @typedef {import('./worker_pair.mjs').WorkerPair} WorkerPair
 */

const AHEAD = 4; // maximum number of rows to send ahead, so that the worker need not wait for messages; not more, because each row needs a context
const AHEAD_SHARED = 64;
const TICK_MS = 25;
const MOST_UNREACHED = 5;
const MOST_UNSET = 20;
const STANDBY_AFTER_MS = 50;
const STANDBY_BEFORE_MS = 500; // how long before a limit a standby worker is started; its start takes 50 to 100 ms on a slow machine

export class Rows {
  /** @type {Call[]} the sent calls come first */
  #calls = [];
  #sent = 0;
  #seq = 0;
  /** @type {NodeJS.Timeout | null} */
  #watch = null;

  /**
   * @param {import('./channel.mjs').Channel} channel
   * @param {WorkerPair} workers
   * @param {{positions: import('./positions.mjs').Positions, resultKb: number, perRow: boolean}} program `perRow`: the program runs for each row, and
   * ends with an exit code
   * @param {import('./relay.mjs').Relay | null} relay the relay for code that may make connections; with it, only one row is sent at a time
   */
  constructor(channel, workers, program, relay = null) {
    this.relay = relay;
    this.channel = channel;
    this.workers = workers;
    this.program = program;
    workers.onResult = (result) => this.#finish(result);
    workers.onLost = (reason, detail) => this.#lost(reason, detail);
    workers.onReady = () => this.dispatch();
  }

  /** Return whether a worker has a call that it has not answered. */
  get runsOne() {
    return this.#sent > 0;
  }

  /** @param {any} header @param {Buffer} body */
  add({ id, timeout_s: timeoutS, share }, body) {
    const args = body.toString('utf8');
    this.#calls.push({ id, seq: ++this.#seq, timeoutMs: timeoutS * 1000, share: share ?? null, args, cancelled: false, sent: false });
  }

  /** @param {string} id the id of a call; nothing happens if the call has been answered */
  cancel(id) {
    const index = this.#calls.findIndex((call) => call.id === id);
    if (index < 0) return;
    const call = this.#calls[index];
    call.cancelled = true;
    if (index > 0 || !call.sent) {
      if (call.sent) this.workers.skip(call.seq);
      return this.dispatch();
    }
    this.workers.skip(call.seq);
    if (this.workers.isRunning(call.seq)) this.#stop(rowFailure('cancelled', null, this.program));
  }

  /** Send the calls that may be sent now, and answer those that were cancelled before they were sent. */
  dispatch() {
    while (this.#calls.length > 0 && this.#calls[0].cancelled && !this.#calls[0].sent) {
      this.#answer(rowFailure('cancelled', null, this.program), 0, null, null);
    }
    if (this.#calls.length === 0 && this.workers.doomed) leave();
    if (!this.workers.ready) return;
    const rows = [];
    while (this.#sent < this.#calls.length) {
      const call = this.#calls[this.#sent];
      const ahead = this.relay !== null || this.program.perRow ? 1 : call.share === null ? AHEAD : AHEAD_SHARED;
      if (call.cancelled || this.#sent >= ahead) break;
      if (this.program.perRow && !this.#giveInput(call)) continue;
      call.sent = true;
      this.#sent++;
      rows.push({ seq: call.seq, share: call.share, args: call.args });
    }
    if (rows.length > 0) this.workers.run(rows);
    if (this.#sent > 0 && this.#watch === null) this.#watchIn(this.#calls[0].timeoutMs);
  }

  /** Make a program's input readable from descriptor 0; the row fails if the sandbox has no room for the input. @param {Call} call */
  #giveInput(call) {
    try {
      giveInput(JSON.parse(call.args).args[0].stdin ?? '');
      return true;
    } catch (error) {
      const message = `the standard input of the script could not be written: ${error instanceof Error ? error.message : String(error)}`;
      this.#answer(failure('disk_limit', message, { hint: 'send less, or raise limits.disk_mb' }), 0, null);
      return false;
    }
  }

  // Answers -----------------------------------------------------------------------------------------------------------

  /** @param {[number, string, any, number, number, import('./answers.mjs').TakenLogs, boolean, unknown, unknown, unknown, unknown]} result */
  #finish([seq, code, payload, runMs, peakKb, logs, spoiled, lacking, unset, unreached, keys]) {
    const call = this.#calls[0];
    if (call?.seq !== seq) {
      if (spoiled) this.#replace(); // the answer is forged: user code has got access to the worker's port
      return this.dispatch();
    }
    const facts = factsOf(this.program.positions.missingImports(lacking), unset);
    if (code === '') {
      this.#succeed(withKeys(withUnreached(payload, unreached), keys), runMs, logs, peakKb, facts);
    } else {
      this.#answer(rowFailure(code, payload, this.program), runMs, logs, peakKb, facts);
    }
    if (spoiled) this.#replace();
    this.dispatch();
  }

  /** Answer the oldest call with a result. @param {string} payload @param {number} runMs @param {import('./answers.mjs').TakenLogs} logs @param {number | null} [peakKb] @param {string} [facts] */
  #succeed(payload, runMs, logs, peakKb = peakMemoryKb(), facts = '') {
    const call = /** @type {Call} */ (this.#calls.shift());
    this.#sent--;
    this.relay?.endRow();
    this.channel.send({ type: 'result', id: call.id, run_ms: shapeMs(runMs), peak_memory_kb: peakKb, logs: shapeLogs(logs) }, facts === '' ? payload : `${payload.slice(0, -1)}${facts}}`);
  }

  /** Answer the oldest call with an error. @param {Failure} error @param {number} runMs @param {import('./answers.mjs').TakenLogs} logs @param {number | null} [peakKb] @param {string} [facts] */
  #answer(error, runMs, logs, peakKb = peakMemoryKb(), facts = '') {
    const call = /** @type {Call} */ (this.#calls.shift());
    if (call.sent) this.#sent--;
    this.relay?.endRow();
    const header = { type: 'failed', id: call.id, run_ms: shapeMs(runMs), peak_memory_kb: peakKb, logs: shapeLogs(logs) };
    this.channel.send(header, `{"error":${JSON.stringify(error)}${facts}}`);
  }

  /** Send the calls that an ended worker has not answered to the next worker. */
  #replace() {
    for (const call of this.#calls) call.sent = false;
    this.#sent = 0;
    this.workers.replace();
  }

  /** End the running row with an error. @param {Failure} error */
  #stop(error) {
    const { elapsed } = this.workers;
    const logs = this.workers.abandon();
    this.#answer(error, elapsed, logs);
    this.#replace();
    this.dispatch();
  }

  /** Handle the end of a worker that ended by itself. @param {'memory' | 'exit' | 'ended'} reason @param {string} detail */
  #lost(reason, detail) {
    const logs = this.workers.abandon();
    if (this.#sent > 0 && reason === 'exit' && this.program.perRow) {
      this.#succeed(exited(Number(detail)), this.workers.elapsed, logs);
    } else if (this.#sent > 0) {
      const error = reason === 'memory' ? memoryFailure(this.workers.memoryMb) : reason === 'exit' ? exitFailure(Number(detail), 'user_exception') : crashFailure(detail);
      this.#answer(error, this.workers.elapsed, logs);
    }
    this.#replace();
    this.dispatch();
  }

  // The clock and the memory --------------------------------------------------------------------------------------------

  /** @param {number} ms time until the next check of the limits, in milliseconds */
  #watchIn(ms) {
    this.#watch = setTimeout(() => {
      this.#watch = null;
      this.#look();
    }, Math.max(1, Math.min(ms, TICK_MS)));
  }

  #look() {
    this.workers.drain();
    if (this.#sent === 0 || this.#watch !== null) return;
    const call = this.#calls[0];
    if (!this.workers.isRunning(call.seq)) return this.#watchIn(TICK_MS);
    const { elapsed } = this.workers;
    const left = call.timeoutMs - elapsed;
    if (left <= 0) return this.#stop(timeoutFailure(call.timeoutMs, 'the row'));
    if (this.workers.isOverMemory()) return this.#stop(memoryFailure(this.workers.memoryMb));
    if (elapsed > STANDBY_AFTER_MS && left < STANDBY_BEFORE_MS) this.workers.standBy();
    this.#watchIn(Math.ceil(left));
  }
}

/** End the process when no call is unanswered and all answers are written. */
function leave() {
  tellOperator('a thread of user code could not be stopped; this sandbox ends');
  setImmediate(() => setImmediate(die));
}

/** Return the result of a program that called `process.exit`. @param {number} code */
function exited(code) {
  return JSON.stringify({ kind: 'object', value: { exit_code: code & 255 }, nonfinite: [], unsupported: null, notes: [] });
}

/** Return a result with a note on the hosts that the code could not reach. @param {string} payload @param {unknown} hosts the hosts, as the thread of
 * user code reports them */
function withUnreached(payload, hosts) {
  const names = Array.isArray(hosts) ? hosts.filter((one) => typeof one === 'string').slice(0, MOST_UNREACHED) : [];
  if (names.length === 0) return payload;
  return withNote(payload, 'unreachable', `the code could not reach ${names.join(', ')}, and goes on without an answer`);
}

/** Add a note on variables for API keys that the code reads but that are not set. @param {string} payload @param {unknown} keys the names of the
 * variables, as the
 * thread of user code reports them */
function withKeys(payload, keys) {
  const names = Array.isArray(keys) ? keys.filter((one) => typeof one === 'string').slice(0, MOST_UNREACHED) : [];
  return names.length === 0 ? payload : withNote(payload, 'missing_key', `the environment has no value for ${names.join(', ')}, which the code reads; the score is what the code returns without it`);
}

/** @param {string} payload a result's body @param {string} code @param {string} message */
function withNote(payload, code, message) {
  return payload.replace(/(\[)?\]\}$/, (_, empty) => `${empty ? '[' : ','}${JSON.stringify({ code, message })}]}`);
}

/** Return the facts about a row, such as missing modules, as further fields of its answer. @param {object[]} missing @param {unknown} unset the unset
 * keys, as the
 * thread of user code reports them */
function factsOf(missing, unset) {
  const keys = Array.isArray(unset) ? unset.filter((one) => typeof one === 'string').slice(0, MOST_UNSET) : [];
  return (missing.length > 0 ? `,"missing_imports":${JSON.stringify(missing)}` : '') + (keys.length > 0 ? `,"unset_params":${JSON.stringify(keys)}` : '');
}
