function evaluate(ctx) {
  const right = ctx.observation.output === ctx.experiment?.itemExpectedOutput;
  return { scores: [{ name: "exact", value: right ? 1 : 0, dataType: "BOOLEAN" }] };
}
