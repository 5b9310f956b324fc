// @ts-check
'use strict';
/** The peak memory of this process since it was last reset (`/proc/self/clear_refs`). */
const fs = require('node:fs');

/**
 * @returns {number} kB. Not getrusage's: that remembers what the process was before it became Node, which is the host
 *   where no sandbox lies between.
 */
function peakMemoryKb() {
  return Number(/^VmHWM:\s*(\d+)/m.exec(fs.readFileSync('/proc/self/status', 'latin1'))?.[1] ?? 0);
}

module.exports = { peakMemoryKb };
