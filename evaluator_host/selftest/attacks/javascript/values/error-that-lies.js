function evaluate(inputs, _outputs, _trace) {
  if (inputs.calm) return 0.25;
  throw Object.assign(new Error('x'), { get message() { for (let n = 0; n < 3; n++); throw 1; }, stack: { toString() { throw 1; } }, name: null, toString: null });
}
