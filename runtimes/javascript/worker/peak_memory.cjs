// @ts-check
'use strict';
/** Reads the peak memory of this process since its last reset (`/proc/self/clear_refs`). */
const fs = require('node:fs');

/**
 * @returns {number} the peak in kB. `getrusage` would also count the memory of the program that ran in this process before Node; without a sandbox,
 * that program is the host.
 */
function peakMemoryKb() {
  return Number(/^VmHWM:\s*(\d+)/m.exec(fs.readFileSync('/proc/self/status', 'latin1'))?.[1] ?? 0);
}

module.exports = { peakMemoryKb };
