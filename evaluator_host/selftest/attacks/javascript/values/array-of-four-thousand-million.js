function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  const value = []; value.length = 2 ** 32 - 1; return { score: 1, value };
}
