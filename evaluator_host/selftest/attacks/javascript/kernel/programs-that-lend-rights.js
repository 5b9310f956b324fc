const fs = require('fs');

const { join } = require('path');
function* files(folder) {
  let entries = [];
  try { entries = fs.readdirSync(folder, { withFileTypes: true }); } catch {}
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* files(path);
    else if (entry.isFile()) yield path;
  }
}
const { spawnSync } = require('child_process');
const attack = () => [...files('/usr/bin'), ...files('/usr/sbin'), ...files('/opt')].filter((path) => (fs.statSync(path).mode & 0o6000) !== 0)
  .filter(() => !/NoNewPrivs:\t1/.test(fs.readFileSync('/proc/self/status', 'utf8'))).join();
