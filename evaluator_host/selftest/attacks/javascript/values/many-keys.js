function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  const value = { score: 1 }; for (let n = 0; n < 1e5; n++) value['k' + n] = n; return value;
}
