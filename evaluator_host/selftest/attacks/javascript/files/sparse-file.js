const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };

const attack = () => tried(() => {
  fs.writeFileSync('/tmp/sparse', 'x');
  fs.truncateSync('/tmp/sparse', 2 ** 40);
  const found = fs.statSync('/tmp/sparse');
  return found.blocks * 512 > 2 ** 30;
});
