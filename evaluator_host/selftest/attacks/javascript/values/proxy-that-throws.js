function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  return new Proxy({}, { ownKeys() { throw new TypeError('mine'); }, get() { throw new TypeError('mine'); } });
}
