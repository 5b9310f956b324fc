function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  return { toJSON() { throw 1; } };
}
