function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  const endless = () => ({ toJSON: endless }); return endless();
}
