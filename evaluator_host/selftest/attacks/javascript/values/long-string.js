function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  return { score: 1, text: 'x'.repeat(1 << 21) };
}
