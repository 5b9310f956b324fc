const fs = require('fs');

const attack = () => {
  const fields = Object.fromEntries(fs.readFileSync('/proc/self/status', 'utf8').split('\n').map((line) => line.split(':\t')));
  return ['CapPrm', 'CapEff', 'CapAmb'].filter((name) => BigInt('0x' + fields[name]) !== 0n)
    .concat(fields.NoNewPrivs === '1' ? [] : ['NoNewPrivs'], fields.Uid.split('\t')[0] === '0' ? ['uid 0'] : []).join();
};
