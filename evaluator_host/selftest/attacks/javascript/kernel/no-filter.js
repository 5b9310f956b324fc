const fs = require('fs');
const attack = () => !/Seccomp:\t2/.test(fs.readFileSync('/proc/self/status', 'utf8'));
