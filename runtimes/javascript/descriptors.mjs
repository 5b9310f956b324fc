// @ts-check
/**
 * Moves the channel to private descriptors and gives user code other ones, before anything else happens.
 *
 * Without this a native library, a child process or a plain `fs.writeSync(1)` would write into the channel. Node cannot
 * duplicate a descriptor, so each is opened again by its path under /proc, which works for pipes and files and not for
 * sockets. Descriptor 2 stays the operator's: when the heap is full V8 can only print a line there and abort, and that
 * line is how the host learns the reason. What user code writes to 2 is diverted (worker/output.cjs).
 */

const fs = process.getBuiltinModule('node:fs'); // `import` would make a module of its properties: 0.6 MB

/**
 * @typedef {{input: number, output: number, errors: number, peakReset: number | null}} Descriptors
 * `errors` takes what user code writes to its standard error; `peakReset` resets the peak memory of the process.
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
 * Write a line for the operator; the host keeps the last of them to explain a crash.
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

/** A file without a name takes what is written; it is read and emptied after every row that could have done so. */
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
