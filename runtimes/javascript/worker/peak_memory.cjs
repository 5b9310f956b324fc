// @ts-check
'use strict';
/** Reads the peak memory of this process since its last reset (`/proc/self/clear_refs`). */
const fs = require('node:fs');

/**
 * @returns {number} kB. getrusage would include the process before it became Node, which is the host when there is no
 *   sandbox in between.
 */
function peakMemoryKb() {
  return Number(/^VmHWM:\s*(\d+)/m.exec(fs.readFileSync('/proc/self/status', 'latin1'))?.[1] ?? 0);
}

module.exports = { peakMemoryKb };
