function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  const endless = () => new Proxy({}, { ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({ value: endless(), enumerable: true, configurable: true }), get: () => endless() }); return endless();
}
