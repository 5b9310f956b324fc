// @ts-check
/** Builds the frames that answer a load or a call, within the limits of the protocol. */
import { failure, thrownFailure } from './positions.mjs';

/**
 * @typedef {[string, string, boolean] | null} TakenLogs
 * @typedef {{stdout: string, stderr: string, truncated: boolean} | null} Logs
 * @typedef {import('./positions.mjs').Failure} Failure
 */

const LOG_JSON_BYTES = 1_800_000; // a header may have 2 MiB; the rest is for its other fields
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;

/** @param {TakenLogs} taken @returns {Logs} */
export function shapeLogs(taken) {
  if (taken === null) return null;
  const [stdout, stderr, truncated] = taken;
  const logs = { stdout, stderr, truncated };
  if (stdout.length + stderr.length < LOG_JSON_BYTES / 6 || Buffer.byteLength(JSON.stringify(logs)) < LOG_JSON_BYTES) return logs;
  // control characters take six bytes each in JSON, so a log full of them is truncated
  return { stdout: stdout.replace(CONTROL, '\uFFFD'), stderr: stderr.replace(CONTROL, '\uFFFD'), truncated: true };
}

/** @param {number} ms */
export function shapeMs(ms) {
  return Math.round(ms * 1000) / 1000;
}

/**
 * Return the error of a row for the error code that the worker reported.
 *
 * @param {string} code
 * @param {any} payload
 * @param {{positions: import('./positions.mjs').Positions, resultKb: number}} program
 * @returns {Failure}
 */
export function rowFailure(code, payload, { positions, resultKb }) {
  switch (code) {
    case 'cancelled': return failure('cancelled', 'the call was cancelled');
    case 'timeout': return failure('timeout', payload.message, { hint: 'settle the promise, or return a value without waiting' });
    case 'result_too_large':
      return failure('result_too_large', `the returned value is larger than ${resultKb} KB`, { hint: 'return less, or raise limits.result_kb' });
    default: return thrownFailure(code, payload, positions);
  }
}

/** @param {string} module the missing module: a package, or a path in a package */
export function pinHint(module) {
  if (/^(?:[@~]\/|#)/.test(module)) return 'it is a file of yours: send it in `files`, with the tsconfig.json (or package.json) that says where such files are';
  if (/^(?:bun|cloudflare|deno):/.test(module)) return `the host runs code with Node.js, which has no module ${module}: leave out what uses it`;
  return `add an exact pin of ${/^(?:@[^/]*\/)?[^/]*/.exec(module)?.[0]} to \`packages\``;
}

/** @param {number} ms @param {string} what */
export function timeoutFailure(ms, what) {
  return failure('timeout', `${what} did not finish within ${ms / 1000} s`, {
    hint: what === 'the row' ? 'make it faster, or raise limits.timeout_s' : 'do less at module level',
  });
}

/** @param {number} memoryMb */
export function memoryFailure(memoryMb) {
  return failure('memory_limit', `the evaluator used more than ${memoryMb} MB of memory and was stopped`, {
    hint: `use less memory at once, or raise limits.memory_mb to ${2 * memoryMb}`,
  });
}

/** @param {number} code @param {string} errorCode */
export function exitFailure(code, errorCode) {
  return failure(errorCode, `process.exit(${code}) was called`, { type: 'process.exit', hint: 'return a score instead of exiting' });
}

/** @param {string} detail @returns {Failure} */
export function crashFailure(detail) {
  if (/EAGAIN|ERR_WORKER_INIT_FAILED/.test(detail)) {
    return failure('process_limit', 'no thread could be started for the row', { hint: 'start fewer processes, or raise limits.processes' });
  }
  return failure('crashed', 'the evaluator ended the thread that ran it');
}
