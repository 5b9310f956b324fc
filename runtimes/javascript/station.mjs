// @ts-check
/**
 * Where the rows of one evaluator run: the worker in service, the one that stands by, and what has to be cleared away
 * between two workers.
 */
import { Member } from './crew.mjs';

const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);

const GONE_MS = 100; // the next row does not wait longer for the thread of the last one
const STUCK_MS = 10_000; // then it never goes: it hangs in native code
const STANDBY_MS = 10_000;
const MARGIN_MB = 32;
const NEARLY = 0.92; // what code allocates between two looks must not reach the kernel's limit
const POOLED_MS = 9000; // V8 keeps the pages of a heap that is gone for 8 s, for the next one to use
const LOG_HEADER_BYTES = 16;

/** @typedef {{program: any, selector: any, logKb: number, resultKb: number}} Order */

export class Station {
  #surroundings;
  /** @type {Member} */
  #member;
  /** @type {Member | null} */
  #standby = null;
  /** @type {NodeJS.Timeout | null} */
  #standbyTimer = null;
  /** @type {Order | null} */
  #order = null;
  /** @type {Map<Member, any>} */
  #outputs = new Map();
  /** @type {Promise<unknown>} resolved when nothing of an earlier worker is left */
  #clearing = Promise.resolve();
  #exitCode = '';
  ready = false;
  /** Whether this process should end as soon as no call is unanswered. */
  doomed = false;
  /** @type {(result: any) => void} */
  onResult = () => {};
  /** @type {(reason: 'memory' | 'exit' | 'ended', detail: string) => void} */
  onLost = () => {};
  /** @type {() => void} */
  onReady = () => {};
  /** @type {(message: any) => void} */
  onLoading = () => {};

  /** @param {import('./crew.mjs').Surroundings} surroundings */
  constructor(surroundings) {
    this.#surroundings = surroundings;
    this.#idleRss = 0;
    this.#member = this.#enlist(new Member(surroundings));
  }

  #idleRss;
  #pooledMb = 0;
  #pooledUntil = 0;

  get memoryMb() {
    return this.#surroundings.memoryMb;
  }

  get elapsed() {
    return this.#member.pulse.elapsed;
  }

  /** @param {number} seq */
  isRunning(seq) {
    return this.#member.pulse.current === seq;
  }

  /** @param {number} seq */
  skip(seq) {
    this.#member.pulse.skip(seq);
  }

  drain() {
    this.#member.drain();
  }

  /**
   * Whether the limit is as good as reached. Buffers lie outside the heap that V8 limits, and the kernel would end the
   * whole sandbox for them.
   */
  isOverMemory() {
    const pooled = performance.now() < this.#pooledUntil ? this.#pooledMb : 0;
    return rssMb() > Math.max(this.memoryMb * NEARLY, this.#idleRss + MARGIN_MB) + pooled;
  }

  /** Begin to load: answers come to `onLoading`. @param {Order} order @param {number} memoryMb */
  load(order, memoryMb) {
    if (memoryMb !== this.memoryMb) {
      this.#surroundings = { ...this.#surroundings, memoryMb };
      void this.#member.end();
      this.#member = this.#enlist(new Member(this.#surroundings));
    }
    this.#order = order;
    this.#idleRss = rssMb();
    this.#member.send({ type: 'load', ...this.#message(this.#member) });
  }

  /** @param {any} selector of the entry that was found */
  select(selector) {
    this.#order = { .../** @type {Order} */ (this.#order), selector };
    this.#member.send({ type: 'select', selector });
    this.ready = true;
  }

  /** @param {any[]} rows */
  run(rows) {
    this.#member.send({ type: 'rows', rows });
  }

  /** Start a worker that takes over when the present one has to be ended. */
  standBy() {
    if (this.#standbyTimer) clearTimeout(this.#standbyTimer);
    this.#standbyTimer = setTimeout(() => this.#dismissStandby(), STANDBY_MS);
    this.#standby ??= this.#prepare(new Member(this.#surroundings));
  }

  /** End the present worker. @returns {any} what its row had printed */
  abandon() {
    const member = this.#member;
    const residue = require('./worker/residue.cjs');
    const gone = member.end();
    residue.killProcesses(false); // a thread may be waiting for a child
    this.#noticeStuck(gone);
    const late = new Promise((resolve) => setTimeout(resolve, GONE_MS));
    this.#clearing = Promise.race([gone, late]).then(() => {
      this.#pooledMb = Math.max(0, rssMb() - this.#idleRss);
      this.#pooledUntil = performance.now() + POOLED_MS;
      residue.killProcesses(this.#surroundings.ownSandbox);
      if (this.#surroundings.ownSandbox) residue.emptyFolders(['/tmp', '/dev/shm']);
    });
    const output = this.#outputs.get(member);
    output?.collectFiles();
    return output?.take() ?? null;
  }

  /** A thread that cannot be ended eats what the next rows need. @param {Promise<unknown>} gone */
  #noticeStuck(gone) {
    const clock = setTimeout(() => {
      this.doomed = true;
      this.onReady();
    }, STUCK_MS);
    void gone.then(() => clearTimeout(clock));
  }

  /** Put the next worker into service; `onReady` when rows may be sent to it. */
  replace() {
    this.#outputs.delete(this.#member);
    void this.#member.end();
    this.ready = false;
    this.#member = this.#enlist(this.#standby ?? this.#prepare(new Member(this.#surroundings)));
    this.#standby = null;
    void this.#clearing.then(() => {
      this.ready = true;
      this.onReady();
    });
  }

  /** @param {Member} member */
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

  /** @param {Member} member */
  #prepare(member) {
    member.onEnd = () => {
      if (this.#standby === member) this.#standby = null;
    };
    member.send({ type: 'prepare', ...this.#message(member) });
    return member;
  }

  /** @param {Member} member */
  #message(member) {
    const order = /** @type {Order} */ (this.#order);
    const logs = new SharedArrayBuffer(LOG_HEADER_BYTES + 2 * order.logKb * 1024);
    const { Output } = require('./worker/output.cjs');
    this.#outputs.set(member, new Output(logs, this.#surroundings.descriptors.errors));
    return { program: order.program, selector: order.selector, resultBytes: order.resultKb * 1024, logs };
  }

  #dismissStandby() {
    if (this.#standby) this.#outputs.delete(this.#standby);
    void this.#standby?.end();
    this.#standby = null;
  }
}

function rssMb() {
  return process.memoryUsage.rss() / 1024 / 1024;
}
