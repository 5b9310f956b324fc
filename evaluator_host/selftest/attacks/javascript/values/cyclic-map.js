function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  const value = new Map(); value.set('score', 1).set('me', value); return value;
}
