const { spawn, spawnSync } = require('child_process');
const fs = require('fs');
const node = (...code) => [process.execPath, ['-e', ...code]];
