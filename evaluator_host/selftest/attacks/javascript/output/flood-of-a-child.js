const { spawnSync } = require('child_process');
const CODE = "const b = Buffer.alloc(1 << 16, 120); for (let n = 0; n < 1000; n++) require('fs').writeSync(1, b)";
const attack = () => { spawnSync(process.execPath, ['-e', CODE], { stdio: 'inherit' }); };
