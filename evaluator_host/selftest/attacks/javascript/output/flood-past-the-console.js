const fs = require('fs');
const block = Buffer.alloc(1 << 16, 120);
const attack = () => { for (let n = 0; n < 300; n++) for (const fd of [1, 2]) fs.writeSync(fd, block); };
