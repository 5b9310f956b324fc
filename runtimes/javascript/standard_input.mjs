// @ts-check
/** Opens descriptor 0 on the standard input of a program, so that Node and child processes can read the text from its start. */
const fs = process.getBuiltinModule('node:fs');

const TRIES = 100;
const PAUSE = new Int32Array(new SharedArrayBuffer(4));

/**
 * Write the text to a file, and open the file as descriptor 0. Node has no `dup2`, but an opened file gets the lowest free descriptor, unless another
 * thread takes this descriptor at the same moment.
 *
 * @param {string} text
 * @throws {Error} no file could be written, or its descriptor is not 0
 */
export function giveInput(text) {
  const path = text === '' ? '/dev/null' : `/tmp/.input-${process.pid}-${process.hrtime.bigint()}`;
  if (text !== '') fs.writeFileSync(path, text, { mode: 0o600 });
  try {
    close(0);
    for (let tries = 0; tries < TRIES; tries++) {
      const fd = fs.openSync(path, 'r');
      if (fd === 0) return;
      close(fd);
      Atomics.wait(PAUSE, 0, 0, 1);
    }
    throw new Error('descriptor 0 is taken');
  } finally {
    if (text !== '') fs.unlinkSync(path);
  }
}

/** @param {number} fd */
function close(fd) {
  try {
    fs.closeSync(fd);
  } catch {
    // the program has closed the descriptor
  }
}
