const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };

const { createHash } = require('crypto');
const attack = (inputs) => tried(() => createHash('sha256').update(fs.readFileSync('/etc/passwd')).digest('hex')) === inputs.passwd;
