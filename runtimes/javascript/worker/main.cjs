// @ts-check
'use strict';
/**
 * The thread that runs user code: one row after another, each in its own context or in the context of its batch. The
 * thread sends the supervisor the outcome of each row, and whether the worker can be trusted with another row.
 *
 * It is CommonJS, because the loader for ES modules would cost every worker 10 ms and 0.7 MB.
 */
const fs = require('node:fs');
const { workerData } = require('node:worker_threads');
const { Contexts, compileGuest } = require('./contexts.cjs');
const { Integrity } = require('./integrity.cjs');
const { Output } = require('./output.cjs');
const { captureStderr } = require('./stderr_capture.cjs');
const { killProcesses, emptyFolders, linkFiles, writeFiles } = require('./row_cleanup.cjs');
const { peakMemoryKb } = require('./peak_memory.cjs');
const { ProgramRun } = require('./program.cjs');
const { SharedState } = require('./shared_state.cjs');
const unreached = require('./unreached.cjs');

/** @typedef {import('./slot.cjs').Slot} Slot */
/** @typedef {{seq: number, share: string | null, args: string}} Row */

const { port, shared: sharedBuffer, descriptors, ownSandbox, dataFolder } = workerData;
const state = new SharedState(sharedBuffer);
const integrity = new Integrity();
const TEMPORARY = ['/tmp', '/dev/shm'];
const WARM_BYTES = 1024;

/** @type {Output} */
let output;
/** @type {Contexts} */
let contexts;
/** @type {any} */
let selector = null;
let resultBytes = 0;
/** @type {Record<string, string> | null} files that each row finds in its working directory */
let data = null;
/** @type {Row[]} */
const queue = [];
/** @type {Slot | null} */
let active = null;
/** @type {Slot | null} the context of the batch that is being run */
let shared = null;
let spoiled = false;
let restingResources = 0;
let lowestFreeDescriptor = -1;

/** @param {any} message */
function onMessage(message) {
  switch (message.type) {
    case 'warm': return warm(message.program);
    case 'load': return load(message, inspect);
    case 'prepare': return load(message, () => port.postMessage({ type: 'prepared' }));
    case 'select':
      selector = message.selector;
      return contexts.prepare();
    case 'rows':
      queue.push(...message.rows);
      return next();
    default: throw new Error(`unknown message ${message.type}`);
  }
}

// Loading -----------------------------------------------------------------------------------------------------------

/** @param {any} order @param {() => void} then */
function load(order, then) {
  // set only now, because once this flag is set, V8 refuses Node's code cache
  require('node:v8').setFlagsFromString('--no-turboshaft-loop-unrolling');
  output = new Output(order.logs, descriptors.errors);
  selector = order.selector ?? null;
  resultBytes = order.resultBytes;
  Object.assign(process.env, order.program.keys, order.environment ?? {});
  if (order.environment?.HTTPS_PROXY) require('node:http').setGlobalProxyFromEnv(order.environment);
  data = ownSandbox ? order.data ?? null : null;
  try {
    contexts = new Contexts(order.program, output, integrity, exit);
  } catch (error) {
    const stack = error instanceof Error ? String(error.stack) : '';
    port.postMessage({ type: 'load_failed', code: 'syntax_error', thrown: { type: 'SyntaxError', message: messageOf(error), stack, code: '', syscall: '' }, logs: null });
    return;
  }
  restingResources = process.getActiveResourcesInfo().length;
  lowestFreeDescriptor = probeDescriptor();
  then();
}

/** Run the module once and report what it offers; a program only runs with a row. */
function inspect() {
  if (contexts.perRow) return port.postMessage({ type: 'offers', offers: '[]', logs: null, spoiled: false, missing: [] });
  const slot = begin(0, contexts.take());
  /** @type {any} */
  let answer;
  const done = slot.expect((code, thrown) => {
    answer = { type: 'load_failed', code, thrown };
    conclude();
  });
  const conclude = once(() => setImmediate(() => {
    answer ??= offersOf(slot);
    const { logs } = end(slot);
    close(slot);
    port.postMessage({ ...answer, logs, spoiled, missing: slot.takeMissing() });
  }));
  slot.guest.start(contexts.moduleFunction(slot), conclude, done);
}

/** @param {Slot} slot @returns {any} what the module offers, or the error that was thrown when its exports were read */
function offersOf(slot) {
  try {
    return { type: 'offers', offers: slot.guest.inspect() };
  } catch (thrown) {
    return { type: 'load_failed', code: 'user_exception', thrown: slot.guest.describe(thrown) };
  }
}

/**
 * Load a small program of the runner's own and run one row, so that V8 has deserialised its code and mapped its memory before the real load. No user
 * code has run at this time, and nothing of the small program stays.
 *
 * @param {any} program
 */
function warm(program) {
  const made = new Contexts(program, new Output(new SharedArrayBuffer(WARM_BYTES), descriptors.errors), new Integrity(), exit);
  for (const use of [(/** @type {Slot} */ slot) => slot.guest.inspect(), callWarm]) {
    const slot = made.take();
    slot.guest.start(made.moduleFunction(slot), () => use(slot), () => {});
    slot.rest();
    close(slot);
  }
}

/** @param {Slot} slot */
function callWarm(slot) {
  slot.guest.call({ where: 'declared', name: 'evaluate' }, '{"args":[{"text":"x"},"x",null]}', WARM_BYTES, () => {});
}

// Rows --------------------------------------------------------------------------------------------------------------

function next() {
  if (active !== null || spoiled) return;
  const row = queue.shift();
  if (row === undefined) return void setImmediate(prepareWhenIdle);
  if (contexts.perRow) row.share = null; // each row runs the whole program
  const started = performance.now();
  const slot = begin(row.seq, slotFor(row));
  /** @type {{code: string, payload: any} | null} */
  let outcome = null;
  const program = contexts.perRow ? new ProgramRun(port, slot) : null;
  const conclude = once(() => setImmediate(() => {
    program?.end();
    report(row, slot, outcome, started);
  }));
  const done = slot.expect((code, payload) => {
    outcome = code === '' && outcome !== null ? outcome : { code, payload };
    conclude();
  });
  if (state.isSkipped(row.seq)) return done('cancelled', null);
  if (program !== null) return program.start(JSON.parse(row.args).args[0], contexts.moduleFunction(slot), done);
  const call = () => {
    slot.takeKeys(); // discard the records of what the code read while it was loaded
    slot.guest.call(selector, row.args, resultBytes, done);
  };
  if (slot.started) return call();
  slot.started = true;
  slot.guest.start(contexts.moduleFunction(slot), call, done);
}

/** @param {Row} row */
function slotFor(row) {
  if (shared !== null && shared.share === row.share) return shared;
  if (shared !== null) close(shared);
  shared = null;
  const slot = contexts.take();
  slot.share = row.share;
  if (row.share !== null) shared = slot;
  return slot;
}

/** @param {Row} row @param {Slot} slot @param {any} outcome @param {number} started */
function report(row, slot, outcome, started) {
  const runMs = performance.now() - started;
  const { logs, peakKb } = end(slot);
  if (row.share === null) close(slot);
  else if (outcome.code !== '' && outcome.code !== 'cancelled' && !slot.started) shared = null;
  const { code, payload } = withinLimit(outcome);
  port.postMessage([row.seq, code, payload, runMs, peakKb, logs, spoiled, slot.takeMissing(), slot.takeUnset(), unreached.take(), slot.takeKeys()]);
  next();
}

/** @param {{code: string, payload: any}} outcome */
function withinLimit(outcome) {
  const tooLarge = outcome.code === '' && outcome.payload.length * 3 > resultBytes && Buffer.byteLength(outcome.payload) > resultBytes + 16_384;
  return tooLarge ? { code: 'result_too_large', payload: null } : outcome;
}

/** @param {number} seq @param {Slot} slot */
function begin(seq, slot) {
  active = slot;
  if (data !== null) writeFiles(process.cwd(), data);
  if (dataFolder !== null) linkFiles(process.cwd(), dataFolder);
  if (descriptors.peakReset !== null) resetPeak();
  state.begin(seq);
  return slot;
}

/** @param {Slot} slot */
function end(slot) {
  slot.rest();
  active = null;
  if (slot.leavesFiles) output.collectFiles();
  return { logs: output.take(), peakKb: peakMemoryKb() };
}

/** Check what a slot left behind; its context is not used again. @param {Slot} slot */
function close(slot) {
  slot.over = true;
  if (!integrity.intact() || slot.hidesState) spoiled = true;
  if (slot.changesModules && !require('./module_state.cjs').resetModules()) spoiled = true;
  if (slot.hidesState) killProcesses(ownSandbox);
  if (slot.leavesFiles) {
    if (ownSandbox) emptyFolders(TEMPORARY);
    if (probeDescriptor() !== lowestFreeDescriptor) spoiled = true;
  }
  if (slot.waits && process.getActiveResourcesInfo().filter((name) => name !== 'Immediate').length > restingResources) spoiled = true;
}

/** Make the next context in advance after the second row; not earlier, because many evaluators are called only once. */
function prepareWhenIdle() {
  if (active === null && queue.length === 0 && !spoiled && state.current > 1) contexts.prepare();
}

// The process ---------------------------------------------------------------------------------------------------------

/** Return the lowest free descriptor; if it has changed after a row, the row has left a descriptor open. */
function probeDescriptor() {
  try {
    const fd = fs.openSync('/dev/null', 'r');
    fs.closeSync(fd);
    return fd;
  } catch {
    return -1;
  }
}

/** Reset the peak memory of the whole process by writing 5 to `clear_refs`. */
function resetPeak() {
  try {
    fs.writeSync(descriptors.peakReset, '5');
  } catch {
    descriptors.peakReset = null;
  }
}

/**
 * Forbid code from strings in this realm, because rows get functions from it: `Buffer.constructor('return process')()`
 * would reach the runner's port. V8's own flag for this would make V8 refuse Node's code cache, which doubles the start
 * of a worker.
 */
function forbidCodeFromStrings() {
  const kinds = [function () {}, async function () {}, function* () {}, async function* () {}].map(Object.getPrototypeOf);
  const refusing = kinds.map(({ constructor }) => standIn(constructor.name));
  kinds.forEach((prototype, index) => {
    Object.setPrototypeOf(refusing[index], index === 0 ? prototype : refusing[0]);
    Object.defineProperty(refusing[index], 'prototype', { value: prototype, writable: false });
    Object.defineProperty(prototype, 'constructor', { value: refusing[index], writable: false, configurable: false });
  });
  Object.defineProperty(globalThis, 'Function', { value: refusing[0], writable: false, configurable: false });
  Object.defineProperty(globalThis, 'eval', { value: standIn('eval'), writable: false, configurable: false });
}

/** Return a function that refuses to make code. @param {string} name */
function standIn(name) {
  return { [name]: function () { throw new EvalError('Code generation from strings disallowed for this context'); } }[name];
}

/** Serve as `process.exit` of user code: end the thread here, so that user code cannot catch the exit. @param {number} code */
function exit(code) {
  port.postMessage({ type: 'exit', code });
  process.exit(code);
}

/** @param {unknown} thrown @param {string} code */
function onStray(thrown, code) {
  if (active === null || active.guest === null) return;
  const described = active.guest.describe(thrown);
  active.done?.(code, described);
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** @param {() => void} action */
function once(action) {
  let done = false;
  return () => {
    if (!done) action();
    done = true;
  };
}

process.on('uncaughtException', (thrown) => onStray(thrown, 'user_exception'));
process.on('unhandledRejection', (reason) => onStray(reason, 'unhandled_rejection'));
forbidCodeFromStrings();
captureStderr(descriptors.errors);
compileGuest();
port.on('message', onMessage);
