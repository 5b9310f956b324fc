const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };

const PLACES = ['/', '/opt', '/opt/runner', '/opt/runner/javascript', '/opt/runner/worker', '/opt/node/bin', '/opt/esbuild', '/opt/packages',
  '/opt/packages/node_modules', '/usr', '/usr/lib', '/etc', '/dev', '/opt/open', '/var/tmp', '/run', '/node_modules', '/proc/self'];
const attack = () => PLACES.filter((folder) => tried(() => {
  fs.writeFileSync(`${folder}/left`, 'x');
  fs.unlinkSync(`${folder}/left`);
  return true;
})).join();
