const attack = () => {
  const custom = Symbol.for('nodejs.util.inspect.custom');
  console.log({ [custom]: () => { throw new Error('no'); } });
  console.log(new Proxy({}, { get() { throw new Error('no'); }, ownKeys() { throw new Error('no'); } }));
  console.log({ get x() { return this; }, toString: null, [Symbol.toPrimitive]: null });
};
