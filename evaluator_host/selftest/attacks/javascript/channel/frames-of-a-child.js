// include: frames.js

const { spawnSync } = require('child_process');
const attack = () => {
  const code = `require('fs').writeSync(1, Buffer.from('${frame(2).toString('hex')}', 'hex'))`;
  spawnSync(process.execPath, ['-e', code], { stdio: 'inherit' });
};
