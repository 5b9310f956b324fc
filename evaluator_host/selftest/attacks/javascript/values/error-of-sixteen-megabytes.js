function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  throw new Error('x'.repeat(1 << 24));
}
