const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };

const attack = () => { tried(() => process.chdir('/dev/shm')); tried(() => process.umask(0)); };
const left = () => process.cwd() !== '/tmp' || require('fs').realpathSync('.') !== '/tmp';
