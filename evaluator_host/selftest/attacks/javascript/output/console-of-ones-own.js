const attack = () => {
  console.log = () => { throw new Error('no'); };
  process.stdout.write = () => { throw new Error('no'); };
  globalThis.console = null;
};
const left = () => typeof console?.log !== 'function' || String(console.log).includes('no');
