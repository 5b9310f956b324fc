// @ts-check
/**
 * The worker threads: one that runs rows, and sometimes a standby. A worker is never repaired: it is replaced when it
 * was ended, ran out of memory or can no longer be trusted.
 */
import { join } from 'node:path';
import { SharedState } from './worker/shared_state.cjs';

const { MessageChannel, Worker, receiveMessageOnPort } = process.getBuiltinModule('node:worker_threads');
const MAIN = join(import.meta.dirname, 'worker.cjs');

/**
 * @typedef {{packages: string | null, esbuild: string | null, memoryMb: number}} Tools
 * @typedef {{memoryMb: number, descriptors: import('./descriptors.mjs').Descriptors, ownSandbox: boolean, dataFolder: string | null, tools: Tools}} Surroundings
 * @typedef {(message: any) => void} OnMessage
 * @typedef {(reason: 'memory' | 'ended', detail: string) => void} OnEnd
 */

/**
 * Approximate memory of a sandbox besides the heap of user code: Node takes 60 MB. The supervisor checks the whole
 * process (worker_pair.mjs) and should act first, because V8 may have to abort the process when its heap is full.
 */
const OVERHEAD_MB = 48;
const LEAST_HEAP_MB = 32;
/**
 * Size of V8's heap for new objects, in MB. It is small, because contexts survive one collection and then move to the
 * heap for old objects, which needs room for them.
 */
const YOUNG_MB = 4;
/** Limit for machine code. Without it, V8 reserves 512 MB for each thread, which counts as used memory if there is no cgroup. */
const CODE_MB = 64;

/** One worker thread and the port to it. */
export class RowWorker {
  #worker;
  #port;
  #ended = false;
  /** @type {OnMessage} */
  onMessage = () => {};
  /** @type {OnEnd} */
  onEnd = () => {};

  /** @param {Surroundings} surroundings */
  constructor(surroundings) {
    const { port1, port2 } = new MessageChannel();
    const shared = SharedState.allocate();
    this.state = new SharedState(shared);
    this.memoryMb = surroundings.memoryMb;
    this.prepared = false;
    /** @type {Error | null} */
    this.error = null;
    this.#port = port1;
    this.#worker = new Worker(MAIN, {
      workerData: {
        port: port2, shared, descriptors: surroundings.descriptors, ownSandbox: surroundings.ownSandbox, dataFolder: surroundings.dataFolder, tools: surroundings.tools,
      },
      transferList: [port2],
      resourceLimits: {
        maxYoungGenerationSizeMb: YOUNG_MB,
        maxOldGenerationSizeMb: Math.max(LEAST_HEAP_MB, surroundings.memoryMb - OVERHEAD_MB),
        codeRangeSizeMb: CODE_MB,
      },
      execArgv: [],
      stdin: false,
      stdout: true,
      stderr: true,
    });
    port1.on('message', (message) => this.#receive(message));
    this.#worker.on('error', (error) => (this.error = error));
    this.#worker.on('exit', () => this.#exited());
  }

  /** @param {unknown} message */
  send(message) {
    this.#port.postMessage(message);
  }

  /** Handle the messages that have arrived but were not delivered yet. */
  drain() {
    for (let got = receiveMessageOnPort(this.#port); got && !this.#ended; got = receiveMessageOnPort(this.#port)) this.#receive(got.message);
  }

  /** End the thread, whatever it is doing, and ignore its messages from now on. @returns {Promise<unknown>} when the thread is gone */
  end() {
    this.#ended = true;
    this.#port.close();
    return this.#worker.terminate();
  }

  /** @param {any} message */
  #receive(message) {
    if (message?.type === 'prepared') this.prepared = true;
    if (!this.#ended) this.onMessage(message);
  }

  #exited() {
    this.drain();
    if (this.#ended) return;
    this.#ended = true;
    this.#port.close();
    const code = /** @type {any} */ (this.error)?.code;
    this.onEnd(code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory' : 'ended', this.error?.stack ?? '');
  }
}
