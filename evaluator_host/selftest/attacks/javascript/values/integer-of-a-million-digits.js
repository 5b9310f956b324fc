function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  return 1n << 4000000n;
}
