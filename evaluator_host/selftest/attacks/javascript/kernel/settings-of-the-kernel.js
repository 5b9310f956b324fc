const fs = require('fs');

const FILES = ['/proc/sys/kernel/hostname', '/proc/sys/kernel/core_pattern', '/proc/sys/vm/overcommit_memory', '/proc/sys/kernel/randomize_va_space',
  '/proc/sysrq-trigger', '/proc/self/uid_map', '/proc/self/gid_map', '/proc/self/setgroups', '/sys/kernel/profiling'];
const attack = () => FILES.filter((file) => {
  try { fs.writeFileSync(file, '1'); return fs.readFileSync(file, 'utf8') !== ''; } catch { return false; }
}).join();
