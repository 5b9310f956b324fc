function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  return { score: 0, value: new Proxy([], { get: (of, key) => (key === 'length' ? 2 ** 53 : 1) }) };
}
