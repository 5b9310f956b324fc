const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };

const open = () => fs.readdirSync('/proc/self/fd').map((fd) => tried(() => fs.readlinkSync(`/proc/self/fd/${fd}`)) ?? '');
const attack = () => {
  fs.openSync('/tmp/kept', 'w');
  fs.unlinkSync('/tmp/kept');
};
const left = () => open().filter((path) => path.startsWith('/tmp/kept')).join();
