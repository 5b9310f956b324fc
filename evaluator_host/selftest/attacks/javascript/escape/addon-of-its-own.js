const fs = require('fs');
const attack = () => {
  fs.writeFileSync('/tmp/x.node', Buffer.concat([Buffer.from('7f454c46020101', 'hex'), Buffer.alloc(4096)]));
  for (const file of ['/tmp/x.node', '/proc/self/exe', '/usr/lib/x86_64-linux-gnu/libc.so.6']) {
    try { require(file); return `loaded ${file}`; } catch {}
    try { process.dlopen({ exports: {} }, file); return `loaded ${file}`; } catch {}
  }
};
