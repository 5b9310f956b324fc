// @ts-check
/**
 * Moves the channel to private descriptors and opens other descriptors for user code, before anything else happens.
 *
 * Otherwise, a native library, a child process or a plain `fs.writeSync(1)` would write into the channel. Node cannot
 * duplicate a descriptor, so each descriptor is opened again by its path under /proc, which works for pipes and files
 * but not for sockets. Descriptor 2 stays the operator's: if the heap is full, V8 prints a line there and aborts, and
 * the host reads the reason from that line. Output of user code to 2 is captured elsewhere (worker/stderr_capture.cjs).
 */

const fs = process.getBuiltinModule('node:fs'); // `import` would build a module namespace, which takes 0.6 MB

/**
 * @typedef {{input: number, output: number, errors: number, peakReset: number | null}} Descriptors
 * `errors` receives the standard error of user code; `peakReset` resets the peak memory of the process.
 */

/** @returns {Descriptors} */
export function claimDescriptors() {
  const input = reopen(0, 'r');
  const output = reopen(1, 'w');
  const errors = unlinkedFile();
  const peakReset = attempt(() => fs.openSync('/proc/self/clear_refs', 'w'));
  for (const fd of [0, 1]) fs.closeSync(fd);
  if (fs.openSync('/dev/null', 'r') !== 0 || unlinkedFile() !== 1) fail('descriptors 0 and 1 could not be replaced');
  return { input, output, errors, peakReset };
}

/**
 * Write a line for the operator; the host keeps the last lines to explain a crash.
 *
 * @param {string} message
 */
export function tellOperator(message) {
  attempt(() => fs.writeSync(2, `runner: ${message}\n`));
}

/**
 * @param {string} message
 * @returns {never}
 */
export function fail(message) {
  tellOperator(message);
  process.exit(3);
}

/**
 * @param {number} fd
 * @param {string} mode
 */
function reopen(fd, mode) {
  try {
    return fs.openSync(`/proc/self/fd/${fd}`, mode);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return fail(`descriptor ${fd} cannot be opened again (${reason}); the channel has to be two pipes, not a socket`);
  }
}

/** Open an unnamed file for output; it is read and emptied after every row that could have written to it. */
function unlinkedFile() {
  const path = `/tmp/.output-${process.pid}-${process.hrtime.bigint()}`;
  const fd = attempt(() => fs.openSync(path, 'ax+', 0o600));
  if (fd === null) return fs.openSync('/dev/null', 'r+');
  attempt(() => fs.unlinkSync(path));
  return fd;
}

/**
 * @template T
 * @param {() => T} action
 * @returns {T | null}
 */
function attempt(action) {
  try {
    return action();
  } catch {
    return null;
  }
}
