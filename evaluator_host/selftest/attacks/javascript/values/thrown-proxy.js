function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  throw new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 1; } });
}
