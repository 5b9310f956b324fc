// @ts-check
'use strict';
/**
 * Contains the worker's functions that the runner's own scripts inside a context may call. User code never gets a bridge or one of its methods. Once
 * the row of the context is over, the functions do nothing.
 */
const { clientOf } = require('../dialects/clients.cjs');
const { isOwnFile } = require('../own_files.cjs');
const path = require('node:path');
const builtins = require('./builtins.cjs');
const { METHODS } = require('./output.cjs');
const packages = require('./packages.cjs');

/** @typedef {import('./slot.cjs').Slot} Slot */

const CONSOLE_METHODS = JSON.stringify(METHODS);
const MODULE_NAMES = JSON.stringify(builtins.builtinModules);
const GLOBAL_NAMES = JSON.stringify(builtins.NAMES);

const MOST_MISSING = 20;
const MOST_KEYS = 5;
/** Names of variables for keys and tokens. */
const OF_KEYS = /(?:^|_)(?:APIKEY|CREDENTIALS|KEY|SECRET|TOKEN)(?:_|$)/i;
const NAME_CHARS = 200;
const STACK_CHARS = 4096;

class Bridge {
  /** @type {Slot} */
  #slot;
  #unknown;

  /**
   * @param {Slot} slot
   * @param {string[]} names names of the globals to define
   * @param {string} wantedNames names of entries, as JSON
   * @param {string[]} unknown missing packages that are not well known
   */
  constructor(slot, names, wantedNames, unknown) {
    this.#slot = slot;
    this.#unknown = unknown;
    this.names = names;
    this.wantedNames = wantedNames;
  }

  get consoleMethods() {
    return CONSOLE_METHODS;
  }

  get builtinModules() {
    return MODULE_NAMES;
  }

  /** @param {string} id */
  isBuiltin(id) {
    return builtins.isBuiltin(id);
  }

  /** @param {unknown} value */
  brandOf(value) {
    return builtins.brandOf(value);
  }

  /** @param {unknown} value */
  isError(value) {
    return builtins.isNodes(value, 'Error');
  }

  /** @param {unknown} value @param {string} brand */
  isNodes(value, brand) {
    return builtins.isNodes(value, brand);
  }

  /** @param {string} id */
  require(id) {
    const found = builtins.builtin(id);
    return found && this.#slot.hand(found);
  }

  get allNames() {
    return GLOBAL_NAMES;
  }

  /** @param {string} id */
  clientOf(id) {
    return clientOf(id);
  }

  /** @param {string} id @param {string} from */
  locate(id, from) {
    return packages.locate(id, from);
  }

  /** Record that code imports a missing module, and at which position. @param {string} id */
  lacks(id) {
    const { missing, over } = this.#slot;
    if (!over && missing.length < MOST_MISSING) missing.push({ module: String(id).slice(0, NAME_CHARS), stack: String(new Error('missing').stack).slice(0, STACK_CHARS) });
  }

  /** The author's missing files and packages, and the missing clients of models, that the code tried to use. */
  get lackedModules() {
    const names = this.#slot.missing.map(({ module }) => module);
    return names.filter((name) => isOwnFile(name) || this.#unknown.includes(name) || clientOf(name) !== null).join(', ');
  }

  /** The missing packages that are not well known, and that the code tried to use. */
  get unknownModules() {
    return this.#slot.missing.map(({ module }) => module).filter((name) => this.#unknown.includes(name)).join(', ');
  }

  /** Record that code reads a missing key of `appParams`. @param {string} key */
  lacksParam(key) {
    const { unset, over } = this.#slot;
    const name = key.slice(0, NAME_CHARS);
    if (!over && unset.length < MOST_MISSING && !unset.includes(name)) unset.push(name);
  }

  /** Record that code reads an environment variable that is not set, if the name says that it is for a key. @param {string} name */
  lacksVariable(name) {
    const { keys, over } = this.#slot;
    const isOptional = `${name.split('_')[0]}_API_KEY` in process.env; // a client that has a key looks for others, such as OPENAI_ADMIN_KEY
    if (!over && !isOptional && OF_KEYS.test(name) && keys.length < MOST_KEYS && !keys.includes(name)) keys.push(name.slice(0, NAME_CHARS));
  }

  /** Open a file of the package set. @param {string} file a path that `locate` returned */
  open(file) {
    try {
      const opened = packages.open(file);
      switch (opened.kind) {
        case 'json': return opened;
        case 'module': return { kind: 'module', run: opened.run.runInContext(this.#slot.context), folder: path.dirname(file) };
        case 'bytes': return { kind: 'bytes', value: new Uint8Array(opened.bytes) }; // each row gets a copy
        default: return { kind: 'addon', value: this.#slot.hand(opened.found) };
      }
    } catch (error) {
      return { kind: 'failed', message: messageOf(error), code: String(/** @type {any} */ (error)?.code ?? '') };
    }
  }

  /** @param {string} name */
  give(name) {
    return this.#slot.hand(builtins.globalOf(name));
  }

  /** @param {string} method @param {any[]} parts */
  print(method, parts) {
    if (!this.#slot.over) this.#slot.console.print(method, parts);
  }

  /** @param {number} fd @param {unknown} chunk */
  writeRaw(fd, chunk) {
    if (this.#slot.over) return;
    const bytes = typeof chunk === 'string' || chunk instanceof Uint8Array ? chunk : String(chunk);
    this.#slot.console.output.write(fd === 2 ? 1 : 0, bytes);
  }

  /** @param {boolean} waits whether the row waits for a promise from now on */
  wait(waits) {
    this.#slot.wait(waits);
  }

  /** Record that from now on V8 itself may settle promises. */
  mayWait() {
    this.#slot.follows |= builtins.WAITS;
  }

  get isProgram() {
    return this.#slot.isProgram;
  }

  /** Return a stream that reads descriptor 0. */
  standardInput() {
    const { ReadStream } = this.#slot.hand(/** @type {any} */ (builtins.builtin('fs')));
    return new ReadStream(null, { fd: 0, autoClose: false });
  }

  newTimer() {
    return this.#slot.timers.next();
  }

  /** @param {number} id @param {string} kind @param {() => void} fire @param {number} delay */
  startTimer(id, kind, fire, delay) {
    this.#slot.timers.start(id, kind, fire, delay);
  }

  /** @param {number} id */
  stopTimer(id) {
    this.#slot.timers.stop(id);
  }

  /** @param {number} id @param {boolean} holds */
  holdTimer(id, holds) {
    this.#slot.timers.hold(id, holds);
  }

  /** @param {() => void} callback */
  queueMicrotask(callback) {
    queueMicrotask(callback);
  }

  /** @param {() => void} callback */
  nextTick(callback) {
    process.nextTick(callback);
  }

  /** @param {number} code */
  exit(code) {
    if (!this.#slot.over) this.#slot.exit(code);
  }

  /** @param {number} pid @param {any} signal */
  kill(pid, signal) {
    return process.kill(pid, signal);
  }

  nanoseconds() {
    return process.hrtime.bigint();
  }

  uptime() {
    return process.uptime();
  }

  cpuUsage() {
    return JSON.stringify(process.cpuUsage());
  }

  report() {
    return report();
  }

  memoryUsage() {
    return JSON.stringify(process.memoryUsage());
  }

  processFacts() {
    return processFacts(this.#slot.argv);
  }
}

/** @param {unknown} error */
function messageOf(error) {
  const message = error instanceof Error ? error.message : String(error);
  return message.startsWith('Module did not self-register') ? `${message}: it is not an addon that a worker thread can load` : message;
}

/** @type {string | undefined} */
let header;

/** Return, as JSON, the part of a diagnostic report that loaders of addons read to find the C library. */
function report() {
  if (header === undefined) {
    process.report.excludeNetwork = true;
    const { header: found } = /** @type {any} */ (process.report.getReport());
    const { glibcVersionRuntime, glibcVersionCompiler, nodejsVersion, arch, platform } = found;
    header = JSON.stringify({ header: { glibcVersionRuntime, glibcVersionCompiler, nodejsVersion, arch, platform }, sharedObjects: [] });
  }
  return header;
}

/** @type {object | undefined} */
let facts;

/** Return, as JSON, facts about the process that a row may see; each row parses its own objects from it. @param {string[]} argv */
function processFacts(argv) {
  facts ??= {
    title: 'node', version: process.version, versions: process.versions, arch: process.arch, platform: process.platform,
    release: process.release, argv0: 'node', execArgv: [], execPath: process.execPath,
    pid: process.pid, ppid: process.ppid, features: process.features, config: {}, debugPort: 0,
    cwd: process.cwd(), uid: process.getuid?.(), gid: process.getgid?.(),
  };
  return JSON.stringify({ ...facts, argv: ['node', '/evaluator.js', ...argv], env: process.env });
}

module.exports = { Bridge };
