function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  let n = 0; return { get score() { return n++ ? {} : 0; } };
}
