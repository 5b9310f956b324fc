// @ts-check
/**
 * Starts esbuild as a child process inside the sandbox and sends it builds, in the format of its `--service` mode. In
 * this mode it answers a second build without a second start, and can wait, warmed up, for the first build. The format
 * belongs to the version of esbuild that `toolchain/package.json` pins.
 */
import recipe from './toolchain/package.json' with { type: 'json' };

/**
 * @typedef {null | boolean | number | string | Uint8Array | Value[] | {[name: string]: Value}} Value
 * @typedef {{text: string, location: {file: string, line: number, column: number, lineText: string} | null}} Message
 *   `line` counts from 1, `column` in bytes from 0
 * @typedef {{output: string, errors: Message[], warnings: Message[]}} Built
 * @typedef {{crashed: string, killed: boolean, starved?: boolean}} Crashed `killed`: something other than the code has ended esbuild; `starved`:
 * memory ran out
 * @typedef {{flags: string[], folder: string, text: string | null, file: string | null}} Request `text`: the code of the
 *   entry; null if it is in `file`
 */

/** This module is loaded late, because most evaluators in JavaScript do not need esbuild. */
const children = () => process.getBuiltinModule('node:child_process');

const OUTPUT_BYTES = 64 * 1024 * 1024;
const FAULTS_BYTES = 1024 * 1024;
const RUNNER_MB = 96; // memory of the sandbox, in MB, that Node and its threads take
const LEAST_MB = 64;

/**
 * Return the environment variables for esbuild. They make Go's garbage collector run only if memory gets scarce: the process usually ends before it
 * has much garbage, so collecting it would only cost time.
 *
 * @param {number} memoryMb of the sandbox
 */
export function environmentOf(memoryMb) {
  return { PATH: '/usr/bin:/bin', GOGC: 'off', GOMEMLIMIT: `${Math.max(LEAST_MB, memoryMb - RUNNER_MB)}MiB` };
}

export class Esbuild {
  #child;
  #requests = 0;
  /** @type {Map<number, (answer: Built | Crashed) => void>} */
  #waiting = new Map();
  #packets = new Packets();
  #faults = '';
  /** @type {Crashed | null} */
  #crash = null;

  /** @param {string} program @param {number} memoryMb of the sandbox */
  constructor(program, memoryMb) {
    try {
      requireProgram(program);
      this.#child = children().spawn(program, [`--service=${recipe.dependencies.esbuild}`], { cwd: '/', env: environmentOf(memoryMb), stdio: ['pipe', 'pipe', 'pipe'] });
    } catch (error) { // Node throws some errors of `spawn` at once, for example if the program is damaged
      this.#child = null;
      return void this.#lose(notStarted(error), true);
    }
    const { stdin, stdout, stderr } = this.#child;
    stdin.on('error', () => {}); // esbuild may end without reading; the handler of `close` deals with that
    stdout.on('data', (chunk) => this.#receive(chunk));
    stderr.on('data', (chunk) => (this.#faults += this.#faults.length < FAULTS_BYTES ? chunk : ''));
    this.#child.on('error', (error) => this.#lose(notStarted(error), true));
    this.#child.on('close', (code, signal) => {
      this.#lose(this.#faults.slice(-2000) || (signal ? broken(`ended by ${signal}`) : `esbuild ended with ${code}`), signal !== null, signal === 'SIGKILL' || /out of memory|cannot allocate memory/.test(this.#faults));
    });
  }

  /** Return whether esbuild is still running and can answer. */
  get lives() {
    return this.#crash === null;
  }

  /**
   * @param {Request} request
   * @param {AbortSignal} signal ends esbuild
   * @returns {Promise<Built | Crashed>}
   * @throws {DOMException} AbortError
   */
  build({ flags, folder, text, file }, signal) {
    return new Promise((resolve, reject) => {
      const stop = () => {
        reject(signal.reason);
        this.end();
      };
      if (signal.aborted) return stop();
      if (this.#crash !== null) return resolve(this.#crash);
      signal.addEventListener('abort', stop, { once: true });
      const id = this.#requests++;
      this.#waiting.set(id, (answer) => {
        signal.removeEventListener('abort', stop);
        resolve(answer);
      });
      this.#child?.stdin.write(encodePacket(id << 1, {
        command: 'build', key: id, entries: file === null ? [] : [['', file]], flags, write: true,
        stdinContents: text === null ? null : Buffer.from(text), stdinResolveDir: text === null ? null : folder,
        absWorkingDir: folder, nodePaths: [], context: false,
      }));
    });
  }

  /** End esbuild. From now on it executes nothing; the kernel frees its memory within 2 ms. */
  end() {
    this.#lose(broken('it was ended'), true);
  }

  /** @param {Buffer} chunk */
  #receive(chunk) {
    for (const packet of this.#packets.feed(chunk)) {
      if (packet === null) return void this.#lose(`esbuild wrote more than ${OUTPUT_BYTES >> 20} MB`, false);
      const { id, value } = /** @type {{id: number, value: any}} */ (packet);
      const answered = this.#waiting.get(id >> 1);
      this.#waiting.delete(id >> 1);
      answered?.(value.error ? { crashed: value.error, killed: false } : { output: value.writeToStdout?.toString('utf8') ?? '', errors: value.errors, warnings: value.warnings ?? [] });
    }
  }

  /** @param {string} crashed @param {boolean} killed @param {boolean} starved */
  #lose(crashed, killed, starved = false) {
    this.#crash ??= { crashed, killed, starved };
    this.#child?.kill('SIGKILL');
    for (const answered of this.#waiting.values()) answered(this.#crash);
    this.#waiting.clear();
  }
}

/** Splits what esbuild writes into packets: its version first, then answers. */
export class Packets {
  /** @type {Buffer[]} */
  #chunks = [];
  #held = 0;
  #needed = 4;
  #greeted = false;

  /** @param {Buffer} chunk @returns {Generator<{id: number, value: Value} | null>} null: a packet that is too large */
  *feed(chunk) {
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    while (this.#held >= this.#needed) {
      const all = Buffer.concat(this.#chunks);
      this.#needed = 4 + all.readUInt32LE(0);
      if (this.#needed > OUTPUT_BYTES) return yield null;
      this.#chunks = [all];
      if (this.#held < this.#needed) return;
      const packet = all.subarray(4, this.#needed);
      this.#chunks = [all.subarray(this.#needed)];
      this.#held -= this.#needed;
      this.#needed = 4;
      if (this.#greeted) yield decodePacket(packet);
      this.#greeted = true;
    }
  }
}

/** @param {number} id @param {Value} value @returns {Buffer} */
export function encodePacket(id, value) {
  /** @type {Uint8Array[]} */
  const parts = [];
  const word = (/** @type {number} */ number) => parts.push(new Uint8Array(Uint32Array.of(number).buffer));
  const bytes = (/** @type {Uint8Array} */ some) => {
    word(some.length);
    parts.push(some);
  };
  const kind = (/** @type {number[]} */ ...some) => parts.push(Uint8Array.from(some));
  const visit = (/** @type {Value} */ one) => {
    if (one === null) kind(0);
    else if (typeof one === 'boolean') kind(1, Number(one));
    else if (typeof one === 'number') kind(2), word(one);
    else if (typeof one === 'string') kind(3), bytes(Buffer.from(one));
    else if (one instanceof Uint8Array) kind(4), bytes(one);
    else if (Array.isArray(one)) kind(5), word(one.length), one.forEach(visit);
    else {
      kind(6), word(Object.keys(one).length);
      for (const [name, its] of Object.entries(one)) bytes(Buffer.from(name)), visit(its);
    }
  };
  word(id);
  visit(value);
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([new Uint8Array(Uint32Array.of(length).buffer), ...parts]);
}

/** @param {Buffer} packet @returns {{id: number, value: Value}} */
export function decodePacket(packet) {
  let at = 0;
  const word = () => packet.readUInt32LE((at += 4) - 4);
  const bytes = () => {
    const length = word();
    return packet.subarray(at, (at += length));
  };
  /** @returns {Value} */
  const visit = () => {
    switch (packet[at++]) {
      case 0: return null;
      case 1: return packet[at++] === 1;
      case 2: return word();
      case 3: return bytes().toString('utf8');
      case 4: return bytes();
      case 5: return Array.from({ length: word() }, visit);
      default: return Object.fromEntries(Array.from({ length: word() }, () => [bytes().toString('utf8'), visit()]));
    }
  };
  return { id: word(), value: visit() };
}

/**
 * Throw an error if a file does not begin like a program, because Node would let a shell run any other file.
 *
 * @param {string} file
 */
function requireProgram(file) {
  const { closeSync, openSync, readSync } = process.getBuiltinModule('node:fs');
  const head = Buffer.alloc(4);
  const opened = openSync(file, 'r');
  try {
    readSync(opened, head, 0, 4, 0);
  } finally {
    closeSync(opened);
  }
  const words = head.toString('latin1');
  if (!words.startsWith('\x7fELF') && !words.startsWith('#!')) throw Object.assign(new Error(`${file} is not a program`), { code: 'ENOEXEC' });
}

/** @param {any} error an error that `spawn` has raised */
function notStarted(error) {
  return broken(error?.code ?? error);
}

/** @param {string} how */
function broken(how) {
  return `esbuild does not work on this host (${how}), which is not a fault of the code; the operator can see more with \`evaluator-host doctor\``;
}
