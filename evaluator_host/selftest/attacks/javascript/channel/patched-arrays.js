const attack = () => {
  for (const name of ['push', 'map', 'forEach', 'join', 'shift', 'slice', 'includes', 'indexOf']) Array.prototype[name] = () => 0.75;
  Array.prototype[Symbol.iterator] = function* () { yield 0.75; };
  Array.isArray = () => true;
  Object.defineProperty(Array.prototype, 0, { get: () => 0.75, set() {} });
};
const left = () => [1].map((x) => x)[0] !== 1;
