// @ts-check
'use strict';
/**
 * Redirects what user code writes to descriptor 2 into the row's logs. Descriptor 2 itself stays reserved for the operator, because V8 writes to it
 * why it aborts the process.
 */
const fs = require('node:fs');

const TAKE_DESCRIPTOR = ['write', 'writeSync', 'writev', 'writevSync', 'writeFile', 'writeFileSync', 'appendFile', 'appendFileSync'];
const STANDARD_ERROR = new Set([2, '/dev/stderr', '/dev/fd/2', '/proc/self/fd/2']);

/** @param {number} errors descriptor that receives the output instead */
function captureStderr(errors) {
  const table = /** @type {any} */ (fs);
  for (const name of TAKE_DESCRIPTOR) {
    const original = table[name];
    table[name] = {
      /** @param {any} target @param {any[]} parts */
      [name](target, ...parts) {
        return original(STANDARD_ERROR.has(target) ? errors : target, ...parts);
      },
    }[name];
  }
}

/**
 * Redirect the output of children that inherit descriptor 2.
 *
 * @param {any} childProcess the module `child_process`
 * @param {number} errors
 */
function captureChildStderr(childProcess, errors) {
  const { spawn } = childProcess.ChildProcess.prototype;
  /** @param {any} options */
  childProcess.ChildProcess.prototype.spawn = function (options) {
    return spawn.call(this, { ...options, stdio: capturedStdio(options.stdio, errors) });
  };
  const { spawnSync } = childProcess;
  /** @param {string} file @param {any[]} parts */
  childProcess.spawnSync = (file, ...parts) => {
    const options = parts.at(-1);
    if (options && typeof options === 'object' && !Array.isArray(options)) {
      parts[parts.length - 1] = { ...options, stdio: capturedStdio(options.stdio, errors) };
    }
    return spawnSync(file, ...parts);
  };
  // `execSync` and `execFileSync` forward a child's standard error
  process.stderr.write = /** @type {any} */ ((/** @type {any} */ chunk) => {
    fs.writeSync(errors, chunk);
    return true;
  });
}

/** @param {any} stdio @param {number} errors */
function capturedStdio(stdio, errors) {
  if (stdio === 'inherit') return ['inherit', 'inherit', errors];
  if (!Array.isArray(stdio)) return stdio;
  return stdio.map((entry, index) => (entry === 2 || (index === 2 && entry === 'inherit') || entry === process.stderr ? errors : entry));
}

module.exports = { captureStderr, captureChildStderr };
