const fs = require('fs');

const PATHS = ['/dev/mem', '/dev/kmsg', '/dev/sda', '/dev/vda', '/dev/fuse', '/dev/kvm', '/dev/net/tun', '/dev/ptmx', '/dev/mqueue', '/dev/tty', '/proc/kcore', '/proc/kmsg'];
const attack = () => PATHS.filter((path) => {
  try { return fs.statSync(path).isCharacterDevice() && !['/dev/ptmx', '/dev/tty'].includes(path) && fs.closeSync(fs.openSync(path, 'r')) === undefined; } catch { return false; }
}).join();
