const { spawnSync } = require('child_process');
const CODE = 'const kept = []; for (;;) kept.push(Buffer.alloc(1 << 20, 1))';
const attack = () => spawnSync(process.execPath, ['-e', CODE], { timeout: 15000 }).signal === 'SIGTERM' && 'it lived for 15 s';
