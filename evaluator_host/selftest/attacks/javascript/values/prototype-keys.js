function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  return JSON.parse('{"score": 0, "__proto__": {"score": 1}, "constructor": {"prototype": {"score": 1}}}');
}
