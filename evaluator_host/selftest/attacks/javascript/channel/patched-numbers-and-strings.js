const attack = () => {
  globalThis.parseInt = globalThis.parseFloat = globalThis.Number = globalThis.String = globalThis.isNaN = () => 0.75;
  Number.isFinite = Math.min = Math.max = Math.round = () => 0.75;
  for (const name of ['slice', 'split', 'replace', 'charCodeAt', 'startsWith', 'toString', 'valueOf']) String.prototype[name] = () => 'x';
};
const left = () => parseInt('1') !== 1;
