function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  let value = 0; for (let n = 0; n < 100000; n++) value = { value }; return value;
}
