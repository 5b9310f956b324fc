function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  const next = () => ({ then(done) { done(next()); } }); return Promise.resolve(next());
}
