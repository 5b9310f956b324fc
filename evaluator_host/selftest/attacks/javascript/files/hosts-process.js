const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };

const { createHash } = require('crypto');
const attack = (inputs) => [`/proc/${inputs.pid}`, `/opt/proc/${inputs.pid}`]
  .map((path) => tried(() => createHash('sha256').update(fs.readFileSync(`${path}/cmdline`)).digest('hex'))).includes(inputs.command);
