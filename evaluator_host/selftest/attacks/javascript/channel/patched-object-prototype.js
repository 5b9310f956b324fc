const attack = () => {
  for (const name of ['kind', 'value', 'score', 'code', 'payload', 'nonfinite', 'unsupported', 'notes', 'get', 'then2', 'type', 'id']) {
    Object.defineProperty(Object.prototype, name, { __proto__: null, configurable: true, get: () => 0.75, set() {} });
  }
};
const left = () => ({}).score !== undefined;
