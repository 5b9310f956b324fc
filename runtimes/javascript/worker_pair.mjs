// @ts-check
/**
 * Manages two workers: one runs the rows of an evaluator, and a standby worker can replace it. Also cleans up when one replaces the other.
 */
import { Output } from './worker/output.cjs';
import { emptyFolders, killProcesses } from './worker/row_cleanup.cjs';
import { RowWorker } from './workers.mjs';

const GONE_MS = 100; // the next row waits at most this long for the last thread to end
const STUCK_MS = 10_000; // a thread that has not ended after this time hangs in native code
const STANDBY_MS = 10_000;
const MARGIN_MB = 32;
const NEARLY = 0.92; // share of the memory limit at which the worker is ended; the rest is for allocations between two checks
const POOLED_MS = 9000; // time in which an ended heap does not count as used memory: V8 keeps its pages for 8 s, to reuse them
const LOG_HEADER_BYTES = 16;

/** @typedef {{program: any, data: Record<string, string> | null, environment: Record<string, string> | null, selector: any, logKb: number, resultKb: number}} Order */

export class WorkerPair {
  #surroundings;
  /** @type {RowWorker} */
  #active;
  /** @type {RowWorker | null} */
  #standby = null;
  /** @type {NodeJS.Timeout | null} */
  #standbyTimer = null;
  /** @type {Order | null} */
  #order = null;
  /** @type {Map<RowWorker, any>} */
  #outputs = new Map();
  /** @type {Promise<unknown>} resolved when nothing of an earlier worker is left */
  #clearing = Promise.resolve();
  #exitCode = '';
  ready = false;
  /** Set if this process should end once every call is answered. */
  doomed = false;
  /** @type {(result: any) => void} */
  onResult = () => {};
  /** @type {(reason: 'memory' | 'exit' | 'ended', detail: string) => void} */
  onLost = () => {};
  /** @type {() => void} */
  onReady = () => {};
  /** @type {(message: any) => void} */
  onLoading = () => {};

  /** @param {import('./workers.mjs').Surroundings} surroundings */
  constructor(surroundings) {
    this.#surroundings = surroundings;
    this.#idleRss = 0;
    this.#active = this.#enlist(new RowWorker(surroundings));
  }

  #idleRss;
  #pooledMb = 0;
  #pooledUntil = 0;

  get memoryMb() {
    return this.#surroundings.memoryMb;
  }

  get elapsed() {
    return this.#active.state.elapsed;
  }

  /** @param {number} seq */
  isRunning(seq) {
    return this.#active.state.current === seq;
  }

  /** @param {number} seq */
  skip(seq) {
    this.#active.state.skip(seq);
  }

  drain() {
    this.#active.drain();
  }

  /**
   * Return whether memory is close to the limit. V8 does not limit buffers, which are outside its heap, and at the
   * limit the kernel would end the whole sandbox.
   */
  isOverMemory() {
    const pooled = performance.now() < this.#pooledUntil ? this.#pooledMb : 0;
    return rssMb() > Math.max(this.memoryMb * NEARLY, this.#idleRss + MARGIN_MB) + pooled;
  }

  /** Have the worker run a small program of the runner's own, before there is user code. @param {any} program */
  warm(program) {
    this.#active.send({ type: 'warm', program });
  }

  /** Begin to load; answers go to `onLoading`. @param {Order} order @param {number} memoryMb */
  load(order, memoryMb) {
    if (memoryMb !== this.memoryMb) {
      this.#surroundings = { ...this.#surroundings, memoryMb };
      void this.#active.end();
      this.#active = this.#enlist(new RowWorker(this.#surroundings));
    }
    this.#order = order;
    this.#idleRss = rssMb();
    this.#active.send({ type: 'load', ...this.#message(this.#active) });
  }

  /** @param {any} selector the selector of the entry that was found */
  select(selector) {
    this.#order = { .../** @type {Order} */ (this.#order), selector };
    this.#active.send({ type: 'select', selector });
    this.ready = true;
  }

  /** @param {any[]} rows */
  run(rows) {
    this.#active.send({ type: 'rows', rows });
  }

  /** Start a standby worker, which takes over when the present worker has to be ended. */
  standBy() {
    if (this.#standbyTimer) clearTimeout(this.#standbyTimer);
    this.#standbyTimer = setTimeout(() => this.#dismissStandby(), STANDBY_MS);
    this.#standby ??= this.#prepare(new RowWorker(this.#surroundings));
  }

  /** End the present worker. @returns {any} the output of its row */
  abandon() {
    const member = this.#active;
    const gone = member.end();
    killProcesses(false); // a thread that waits for a child process cannot end
    this.#noticeStuck(gone);
    this.#clearing = soon(gone).then(() => {
      this.#pooledMb = Math.max(0, rssMb() - this.#idleRss);
      this.#pooledUntil = performance.now() + POOLED_MS;
      killProcesses(this.#surroundings.ownSandbox);
      if (this.#surroundings.ownSandbox) emptyFolders(['/tmp', '/dev/shm']);
    });
    const output = this.#outputs.get(member);
    output?.collectFiles();
    return output?.take() ?? null;
  }

  /** If a thread does not end, remember to end the process, because that thread uses up resources of later rows. @param {Promise<unknown>} gone */
  #noticeStuck(gone) {
    const clock = setTimeout(() => {
      this.doomed = true;
      this.onReady();
    }, STUCK_MS);
    void gone.then(() => clearTimeout(clock));
  }

  /** Switch to the next worker; call `onReady` when rows may be sent to it. */
  replace() {
    this.#outputs.delete(this.#active);
    const gone = this.#active.end();
    // wait until the previous worker is gone, because its row may still open connections
    if (this.#order?.environment) this.#clearing = Promise.all([this.#clearing, soon(gone)]);
    this.ready = false;
    this.#active = this.#enlist(this.#standby ?? this.#prepare(new RowWorker(this.#surroundings)));
    this.#standby = null;
    void this.#clearing.then(() => {
      this.ready = true;
      this.onReady();
    });
  }

  /** @param {RowWorker} member */
  #enlist(member) {
    member.onMessage = (message) => this.#receive(message);
    member.onEnd = (reason, detail) => {
      const exited = this.#exitCode;
      this.#exitCode = '';
      if (exited !== '') this.onLost('exit', exited);
      else this.onLost(reason, detail);
    };
    return member;
  }

  /** @param {any} message */
  #receive(message) {
    if (Array.isArray(message)) this.onResult(message);
    else if (message.type === 'exit') this.#exitCode = String(message.code);
    else if (message.type !== 'prepared') this.onLoading(message);
  }

  /** @param {RowWorker} member */
  #prepare(member) {
    member.onEnd = () => {
      if (this.#standby === member) this.#standby = null;
    };
    member.send({ type: 'prepare', ...this.#message(member) });
    return member;
  }

  /** @param {RowWorker} member */
  #message(member) {
    const order = /** @type {Order} */ (this.#order);
    const logs = new SharedArrayBuffer(LOG_HEADER_BYTES + 2 * order.logKb * 1024);
    this.#outputs.set(member, new Output(logs, this.#surroundings.descriptors.errors));
    return { program: order.program, data: order.data, environment: order.environment, selector: order.selector, resultBytes: order.resultKb * 1024, logs };
  }

  #dismissStandby() {
    if (this.#standby) this.#outputs.delete(this.#standby);
    void this.#standby?.end();
    this.#standby = null;
  }
}

/** @param {Promise<unknown>} gone @returns {Promise<unknown>} a promise that resolves when `gone` does, or after a short wait */
function soon(gone) {
  return Promise.race([gone, new Promise((resolve) => setTimeout(resolve, GONE_MS))]);
}

function rssMb() {
  return process.memoryUsage.rss() / 1024 / 1024;
}
