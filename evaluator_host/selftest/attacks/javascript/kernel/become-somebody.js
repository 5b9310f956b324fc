const fs = require('fs');

const { spawnSync } = require('child_process');
const CODE = `const found = [];
for (const [name, ...args] of [['setuid', 0], ['setgid', 0], ['seteuid', 0], ['setgroups', [0]], ['initgroups', 'root', 0]]) {
  try { process[name](...args); found.push(name); } catch {}
}
console.log(found.join());`;
const attack = () => spawnSync(process.execPath, ['-e', CODE]).stdout.toString().trim();
