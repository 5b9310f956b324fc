function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  const value = { score: 1 }; value.more = [{ value }]; return value;
}
