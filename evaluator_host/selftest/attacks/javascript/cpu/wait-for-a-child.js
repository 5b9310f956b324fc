const attack = () => { require('child_process').spawnSync(process.execPath, ['-e', 'for (;;);']); };
