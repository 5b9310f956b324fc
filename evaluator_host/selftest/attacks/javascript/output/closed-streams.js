const fs = require('fs');
const attack = () => {
  for (const fd of [0, 1, 2]) fs.closeSync(fd);
  for (const name of ['/tmp/a', '/tmp/b', '/tmp/c']) fs.openSync(name, 'w');
  console.log('to nobody');
  console.error('to nobody');
};
