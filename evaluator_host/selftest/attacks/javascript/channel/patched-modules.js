const attack = () => {
  const fs = require('fs');
  for (const name of ['readFileSync', 'openSync', 'closeSync', 'writeSync', 'rmSync', 'readdirSync']) fs[name] = () => { throw new Error('no'); };
  const path = require('path');
  path.join = path.dirname = () => '/';
};
const left = () => require('fs').readdirSync('/').length < 3 || require('path').join('a', 'b') !== 'a/b';
